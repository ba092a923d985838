//! A small census, in every format.

use super::*;
use crate::manifest::Setting;
use crate::outcome::{BodyKind, Era, Hint, Outcome, Transport, Verdict};
use crate::row::Row;
use crate::sampling::Unit;
use crate::tally::sample::{at, row};
use crate::tally::{Drawn, RunFacts, Tally};

/// What did not work, and what was not measured.
fn refusals() -> Vec<Row> {
    use Outcome as O;
    use Verdict as V;
    let mut rows = Vec::new();
    for (code, hint, message) in [
        (-32001, Some(Hint::AuthLike), "API key missing"),
        (-32601, None, "=cmd|' /C calc'!A0"),
    ] {
        rows.push(Row {
            http_status: Some(200),
            rpc_code: Some(code),
            rpc_message: Some(message.to_owned()),
            hint,
            body_kind: Some(BodyKind::Json),
            total_ms: Some(250.5),
            ..at(
                "rpc.test",
                "/",
                row(
                    O::JsonrpcError,
                    &code.to_string(),
                    if hint.is_some() { V::Gated } else { V::Faulty },
                ),
            )
        });
    }
    let status = |status: u16, row: Row| Row {
        http_status: Some(status),
        total_ms: Some(80.0),
        ..row
    };
    for kind in ["bearer", "bearer", "no_challenge"] {
        rows.push(status(
            401,
            at("gated.test", "/", row(O::AuthRequired, kind, V::Gated)),
        ));
    }
    for path in ["/a", "/b", "/c"] {
        rows.push(status(
            404,
            at("gone.test", path, row(O::NotFound, "404", V::NotMcp)),
        ));
    }
    rows.push(at(
        "dead.test",
        "/",
        row(O::DnsFailure, "nxdomain", V::Down),
    ));
    rows.push(Row {
        total_ms: Some(15_000.0),
        ..at("slow.test", "/", row(O::Timeout, "first_byte", V::Down))
    });
    rows.push(status(
        403,
        at(
            "edge.test",
            "/",
            row(O::Forbidden, "edge_block", V::Unmeasured),
        ),
    ));
    for _ in 0..2 {
        rows.push(status(
            429,
            at(
                "busy.test",
                "/",
                row(O::RateLimited, "retry_after=30", V::Unmeasured),
            ),
        ));
    }
    rows.push(row(O::Unprobeable, "template", V::Unprobeable));
    rows.push(row(O::Unprobeable, "scheme", V::Unprobeable));
    rows
}

/// A census of 25 rows, with something hostile in it.
fn census() -> Summary {
    counted().summary(&facts())
}

/// The same census as a sample, from two places, with a control arm: every table there is.
fn everything() -> Summary {
    let mut tally = counted();
    let works = row(Outcome::Success, "json", Verdict::Working);
    let gone = row(Outcome::NotFound, "404", Verdict::NotMcp);
    tally.add_said(&[Verdict::Working, Verdict::Working]);
    tally.add_said(&[Verdict::Working, Verdict::Down]);
    tally.add_again(&works, &works);
    tally.add_again(&works, &gone);
    tally.summary(&RunFacts {
        drawn: Some(Drawn {
            by: Some(Unit::Site),
        }),
        sample: Some("2 sites, drawn by seed 7".to_owned()),
        vantages: vec!["here".to_owned(), "there|<b>\x1b[2J\u{202e}".to_owned()],
        instrument: vec![(Setting::Vantage, "`|<b>\x1b[2J\u{202e}".to_owned(), 1)],
        ..facts()
    })
}

fn facts() -> RunFacts {
    RunFacts {
        tool: "mcp-census 0.1.0".to_owned(),
        rules_version: 1,
        asked_version: "2025-11-25".to_owned(),
        lists: vec!["remotes.csv".to_owned()],
        complete: true,
        requests: Some(41),
        ..RunFacts::default()
    }
}

fn counted() -> Tally {
    use Outcome as O;
    use Verdict as V;
    let mut rows = Vec::new();
    for (number, version) in [
        "2025-11-25",
        "2025-11-25",
        "2025-06-18",
        "2024-11-05",
        "1|`<b>`\x1b[2J\u{202e}",
    ]
    .iter()
    .cycle()
    .take(10)
    .enumerate()
    {
        rows.push(Row {
            http_status: Some(200),
            protocol_version: Some((*version).to_owned()),
            era: Era::Legacy,
            declared_transport: Some(if number == 3 {
                Transport::HttpSse
            } else {
                Transport::StreamableHttp
            }),
            transport: Some(Transport::StreamableHttp),
            body_kind: Some(BodyKind::Json),
            total_ms: Some(100.0 + 10.0 * f64::from(u8::try_from(number).unwrap())),
            ..at(
                &format!("mcp{}.works.test", number % 4),
                &format!("/{number}"),
                row(O::Success, "json", V::Working),
            )
        });
    }
    rows.extend(refusals());
    let mut tally = Tally::default();
    for row in &rows {
        tally.add(row);
    }
    tally
}

#[test]
fn a_scan_ends_with_what_a_reader_came_for() {
    let want = "\
10 of 20 measured rows speak MCP to anyone: 50.0 % (95 % interval 29.9 % to
70.1 %). 25 rows were listed.
Asked for protocol version 2025-11-25 by mcp-census 0.1.0, reading rules 1, in
41 requests; list: remotes.csv.

Outcomes of the answer to `initialize`
(unit: input rows; shares of 20 measured rows)
outcome               rows   share  95 % interval
success                 10  50.0 %   [29.9, 70.1]  ##########
jsonrpc_error            2  10.0 %    [2.8, 30.1]  ##
auth_required            3  15.0 %    [5.2, 36.0]  ###
not_found                3  15.0 %    [5.2, 36.0]  ###
timeout                  1   5.0 %   [0.89, 23.6]  #
dns_failure              1   5.0 %   [0.89, 23.6]  #
forbidden/unmeasured     1
rate_limited             2
unprobeable              2
Not measured: 3 rows; the share that works is 43.5 % if none of them does,
56.5 % if all do.

JSON-RPC errors by code and name
(unit: input rows; shares of 20 measured rows)
code    rows  share  95 % interval  name
-32001     1  5.0 %   [0.89, 23.6]  legacy_range
-32601     1  5.0 %   [0.89, 23.6]  Method not found

Verdicts: working 10 (50.0 % [29.9, 70.1]), gated 4 (20.0 % [8.1, 41.6]),
faulty 1 (5.0 % [0.89, 23.6]), not_mcp 3 (15.0 % [5.2, 36.0]),
down 2 (10.0 % [2.8, 30.1]), unmeasured 3, unprobeable 2.

What was not measured, and why
(unit: input rows; shares of 25 input rows)
verdict      outcome       detail       rows  share  95 % interval
unmeasured   rate_limited  retry_after     2  8.0 %    [2.2, 25.0]  #
unmeasured   forbidden     edge_block      1  4.0 %   [0.71, 19.5]
unprobeable  unprobeable   scheme          1  4.0 %   [0.71, 19.5]
unprobeable  unprobeable   template        1  4.0 %   [0.71, 19.5]
";
    assert_eq!(text(&census(), 80, false), want);
}

#[test]
fn a_wider_terminal_is_told_more_and_a_narrower_one_no_less() {
    let summary = everything();
    for width in [0, 80, 100, 120, 1000] {
        let shown = text(&summary, width, false);
        let widest = shown.lines().map(|it| it.chars().count()).max();
        assert!(widest <= Some(width.clamp(80, 200)), "{width}: {widest:?}");
    }
    assert!(text(&summary, 120, false).contains("A JSON-RPC error response"));
    for &name in TableName::ALL {
        let table = one_table(&summary, name, Format::Text).unwrap();
        assert!(
            table.lines().all(|it| it.chars().count() <= WIDTH),
            "{table}"
        );
    }
}

#[test]
fn a_key_is_cut_where_it_would_push_figures_out() {
    let long = "x".repeat(300);
    let mut tally = Tally::default();
    tally.add(&Row {
        rpc_message: Some(format!("{long} {long}")),
        protocol_version: Some(long.clone()),
        ..at(
            &format!("{long}.test"),
            "/",
            row(Outcome::JsonrpcError, "-32603", Verdict::Faulty),
        )
    });
    let summary = tally.summary(&RunFacts::default());
    for &name in TableName::ALL {
        let Some(table) = one_table(&summary, name, Format::Text) else {
            continue;
        };
        for line in table.lines().filter(|it| !it.starts_with("    ")) {
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
    }
}

#[test]
fn colour_adds_nothing_but_colour() {
    let coloured = text(&everything(), 80, true);
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    assert_eq!(bare + rest, text(&everything(), 80, false));
}

#[test]
fn nothing_a_server_said_acts_on_anyone() {
    let summary = everything();
    let mut written = vec![
        text(&summary, 80, false),
        markdown(&summary),
        csv_long(&summary),
        json(&summary),
    ];
    for &name in TableName::ALL {
        for &format in Format::ALL {
            written.push(one_table(&summary, name, format).unwrap());
        }
    }
    for text in written {
        let acts =
            |it: char| (it.is_control() && it != '\n') || matches!(it, '\u{202a}'..='\u{202e}');
        assert!(!text.contains(acts), "{text}");
    }
    assert!(!markdown(&summary).contains("<b>"));
    assert!(
        csv::table(summary.table(TableName::JsonrpcErrorMessages).unwrap()).contains(",'=cmd|")
    );
}

#[test]
fn the_long_form_is_read_back() {
    let summary = everything();
    let long = csv_long(&summary);
    let want = [
        "table,key,count,share,low,high,denominator",
        "outcomes,success,10,0.500000,0.299298,0.700702,20",
        "outcomes,jsonrpc_error,2,0.100000,0.027866,0.301034,20",
        "outcomes,protocol_violation,0,0.000000,0.000000,0.161125,20",
    ];
    assert_eq!(long.lines().take(4).collect::<Vec<_>>(), want);
    assert!(long.contains("\noutcomes,not_measured,3,,0.434783,0.565217,23\n"));
    assert!(long.contains("\njsonrpc_errors,-32601,1,0.050000,0.008881,0.236131,20\n"));
    assert!(long.contains("\njsonrpc_error_messages,200/-32001/auth_like,1,"));
    assert!(long.contains("\nlatency,working/p50,140,,,,\n"));
    let mut reader = ::csv::Reader::from_reader(long.as_bytes());
    for record in reader.records() {
        let record = record.unwrap();
        assert_eq!(record.len(), 7);
        if let Ok(share) = record[3].parse::<f64>() {
            let figure = |at: usize| record[at].parse::<f64>().unwrap();
            assert!((share - figure(2) / figure(6)).abs() < 1e-6, "{record:?}");
            assert!(figure(4) <= share && share <= figure(5), "{record:?}");
        }
    }
}

#[test]
fn one_table_has_a_column_for_each_key() {
    assert_eq!(
        one_table(&census(), TableName::JsonrpcErrors, Format::Csv).unwrap(),
        "code,rows,share,low,high,denominator,about\n\
         -32001,1,0.050000,0.008881,0.236131,20,legacy_range\n\
         -32601,1,0.050000,0.008881,0.236131,20,Method not found\n"
    );
    assert_eq!(
        one_table(&census(), TableName::ProtocolVersions, Format::Markdown).unwrap(),
        "\
## Protocol versions that servers answered with (asked for: 2025-11-25)

`protocol_versions`, unit: input rows; shares of 10 measured rows that answered with a version.

| protocol_version | rows | share | 95 % interval | meaning |
|---|---:|---:|---:|---|
| 2025-11-25 | 4 | 40.0 % | [16.8, 68.7] | the version asked for |
| 1\\|&#96;&lt;b&gt;&#96; &#91;2J | 2 | 20.0 % | [5.7, 51.0] | no revision of the specification |
| 2024-11-05 | 2 | 20.0 % | [5.7, 51.0] |  |
| 2025-06-18 | 2 | 20.0 % | [5.7, 51.0] |  |

Not measured: 3 rows; the share that works is 43.5 % if none of them does, 56.5 % if all do.
"
    );
    assert_eq!(
        one_table(&census(), TableName::Latency, Format::Text).unwrap(),
        "\
Time to the end of the exchange, by verdict
(unit: input rows, and then milliseconds)
verdict  rows     p50     p90     p99     max
working    10     140     180     190     190
gated       4      80     250     250     250
faulty      1     250     250     250     250
not_mcp     3      80      80      80      80
down        1  15,000  15,000  15,000  15,000
all        19     130     250  15,000  15,000
Not measured: 3 rows; the share that works is 43.5 % if none of them does,
56.5 % if all do.
"
    );
}

#[test]
fn every_row_of_a_markdown_table_has_as_many_cells_as_its_head() {
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    let mut head = 0;
    for line in markdown(&everything()).lines() {
        if !line.starts_with('|') {
            head = 0;
        } else if head == 0 {
            head = cells(line);
        } else {
            assert_eq!(cells(line), head, "{line}");
        }
    }
}

#[test]
fn json_says_it_all_in_a_fixed_order() {
    let written = json(&everything());
    let value: serde_json::Value = serde_json::from_str(&written).unwrap();
    let names: Vec<&str> = value["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert!(
        names.iter().eq(TableName::ALL
            .iter()
            .map(|it| it.name())
            .collect::<Vec<_>>()
            .iter())
    );
    assert_eq!(value["facts"]["asked_version"], "2025-11-25");
    assert_eq!(value["tables"][0]["lines"][1]["share"]["low"], 0.027_866);
    let order = [
        "\"facts\"",
        "\"rows\"",
        "\"measured\"",
        "\"working\"",
        "\"share\"",
        "\"not_measured\"",
        "\"tables\"",
    ];
    let at: Vec<usize> = order.iter().map(|it| written.find(it).unwrap()).collect();
    assert!(at.is_sorted(), "{at:?}");
}

#[test]
fn what_differs_between_two_runs_can_be_left_out() {
    let bare = census().without_timings();
    assert!(!csv_long(&bare).contains("latency"));
    assert!(one_table(&bare, TableName::Latency, Format::Text).is_none());
}

#[test]
fn limits_of_a_run_are_said_with_its_headline() {
    let mut tally = Tally::default();
    tally.add(&row(Outcome::Unprobeable, "template", Verdict::Unprobeable));
    let nothing = tally.summary(&RunFacts {
        partial: true,
        ..RunFacts::default()
    });
    let said = text(&nothing, 80, false);
    for part in [
        "None of 1 rows was measured.",
        "not whole",
        "not complete",
        "JSON-RPC errors by code and name\n(unit: input rows; shares of 0 measured rows)\nnone\n",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn the_readme_explains_every_name() {
    let readme = readme();
    let columns = Row::COLUMNS.iter().map(|(name, _)| *name);
    for name in columns
        .chain(Outcome::ALL.iter().map(|it| it.name()))
        .chain(TableName::ALL.iter().map(|it| it.name()))
    {
        assert!(readme.contains(&format!("| `{name}` | ")), "{name}");
    }
}

#[test]
fn a_share_is_read_in_percent() {
    for (fraction, want) in [
        (0.0, "0.0 %"),
        (0.005_454_5, "0.55 %"),
        (0.0099, "0.99 %"),
        (0.009_96, "1.0 %"),
        (0.443, "44.3 %"),
        (1.0, "100.0 %"),
    ] {
        assert_eq!(percent(fraction), want);
    }
}

/// What a summary breaks of the published schema, if it breaks anything.
fn against_schema(text: &str) -> Result<(), String> {
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.enable_format_assertions();
    let id = schema["$id"].as_str().unwrap().to_owned();
    compiler.add_resource(&id, schema).unwrap();
    let index = compiler.compile(&id, &mut schemas).unwrap();
    let summary = serde_json::from_str(text).unwrap();
    schemas
        .validate(&summary, index)
        .map_err(|error| error.to_string())
}

#[test]
fn a_summary_keeps_to_the_published_schema() {
    let sample = include_str!("../../reports/demo/summary.json");
    let nothing = json(&Tally::default().summary(&RunFacts::default()));
    for text in [json(&everything()), sample.to_owned(), nothing] {
        against_schema(&text).unwrap();
    }
    let further = sample.replacen("\"rows\"", "\"lines\"", 1);
    assert!(
        against_schema(&further).is_err(),
        "a schema that lets anything through holds nothing"
    );
    let schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    let names: Vec<&str> = TableName::ALL.iter().map(|it| it.name()).collect();
    assert_eq!(
        schema["$defs"]["table"]["properties"]["name"]["enum"],
        serde_json::json!(names)
    );
}

#[test]
fn the_data_package_names_every_column_in_order() {
    let package = data_package(
        &census(),
        &["at_here".to_owned()],
        &["input_rank".to_owned()],
        true,
    );
    let package: serde_json::Value = serde_json::from_str(&package).unwrap();
    let fields = |at: usize| -> Vec<(String, String)> {
        let fields = package["resources"][at]["schema"]["fields"]
            .as_array()
            .unwrap();
        let text = |it: &serde_json::Value| it.as_str().unwrap().to_owned();
        fields
            .iter()
            .map(|it| (text(&it["name"]), text(&it["type"])))
            .collect()
    };
    let results = fields(0);
    let names: Vec<&str> = results.iter().map(|(name, _)| name.as_str()).collect();
    let own: Vec<&str> = Row::COLUMNS.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, [own, vec!["at_here", "input_rank"]].concat());
    for (name, kind) in [
        ("outcome", "string"),
        ("http_status", "integer"),
        ("flaky", "boolean"),
        ("total_ms", "number"),
        ("started_at", "datetime"),
    ] {
        assert!(
            results.contains(&(name.to_owned(), kind.to_owned())),
            "{name}"
        );
    }
    let header = csv_long(&census()).lines().next().unwrap().to_owned();
    let summary: Vec<String> = fields(2).into_iter().map(|(name, _)| name).collect();
    assert_eq!(summary.join(","), header);
    let head = |table: String| table.lines().next().unwrap().to_owned();
    for (at, table) in [
        (3, checks::by_check(&crate::catalogue::Tally::default())),
        (4, checks::by_server(&[])),
    ] {
        let names: Vec<String> = fields(at).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names.join(","), head(table));
    }
}
