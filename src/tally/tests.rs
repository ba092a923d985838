//! Whatever the rows, the counts add up.

use proptest::prelude::*;

use super::sample::{at, row};
use super::*;
use crate::outcome::{BodyKind, Hint};

fn facts() -> RunFacts {
    RunFacts {
        asked_version: "2025-11-25".to_owned(),
        complete: true,
        ..RunFacts::default()
    }
}

fn summary(rows: &[Row]) -> Summary {
    let mut tally = Tally::default();
    for row in rows {
        tally.add(row);
    }
    tally.summary(&facts())
}

/// The lines of a table as text: keys, count, and what the share is of.
#[track_caller]
fn check(summary: &Summary, name: TableName, want: &[&str]) {
    let lines: Vec<String> = summary
        .table(name)
        .unwrap()
        .lines
        .iter()
        .filter(|it| it.count > 0)
        .map(|it| {
            let of = it
                .share
                .map_or_else(String::new, |it| format!("/{}", it.of));
            format!("{} {}{of}", it.key.join(" "), it.count)
        })
        .collect();
    assert_eq!(lines, want);
}

#[test]
fn what_was_not_measured_is_in_no_denominator() {
    use Outcome as O;
    use Verdict as V;
    let rows = [
        row(O::Success, "json", V::Working),
        row(O::Success, "sse", V::Working),
        row(O::Forbidden, "403", V::Gated),
        row(O::Forbidden, "bot_challenge", V::Unmeasured),
        row(O::RateLimited, "retry_after=30", V::Unmeasured),
        row(O::RateLimited, "retry_after=60", V::Unmeasured),
        row(O::Unprobeable, "template", V::Unprobeable),
    ];
    let summary = summary(&rows);
    check(
        &summary,
        TableName::Outcomes,
        &[
            "success 2/3",
            "forbidden 1/3",
            "forbidden/unmeasured 1",
            "rate_limited 2",
            "unprobeable 1",
        ],
    );
    check(
        &summary,
        TableName::Verdicts,
        &["working 2/3", "gated 1/3", "unmeasured 3", "unprobeable 1"],
    );
    check(
        &summary,
        TableName::NotMeasured,
        &[
            "unmeasured rate_limited retry_after 2/7",
            "unmeasured forbidden bot_challenge 1/7",
            "unprobeable unprobeable template 1/7",
        ],
    );
    let open = summary
        .table(TableName::Outcomes)
        .unwrap()
        .not_measured
        .unwrap();
    assert_eq!((open.rows, open.of), (3, 6));
    assert!((open.working_if_none - 2.0 / 6.0).abs() < 1e-12);
    assert!((open.working_if_all - 5.0 / 6.0).abs() < 1e-12);
}

#[test]
fn errors_are_counted_by_code_and_by_what_they_say() {
    let error = |code: i64, message: &str| Row {
        rpc_code: Some(code),
        rpc_message: Some(message.to_owned()),
        http_status: Some(200),
        ..row(Outcome::JsonrpcError, &code.to_string(), Verdict::Faulty)
    };
    let gated = |message: &str| Row {
        hint: Some(Hint::AuthLike),
        verdict: Verdict::Gated,
        ..error(-32001, message)
    };
    let summary = summary(&[
        error(-32603, "Internal error"),
        gated("API key missing"),
        gated("invalid api key"),
        gated("Authentication failed"),
        error(-32601, "Unknown method: initialize"),
        error(-32602, "Request 7: unsupported"),
    ]);
    check(
        &summary,
        TableName::JsonrpcErrors,
        &["-32001 3/6", "-32601 1/6", "-32602 1/6", "-32603 1/6"],
    );
    check(
        &summary,
        TableName::JsonrpcErrorMessages,
        &[
            "200 -32001 auth_like 3/6",
            "200 -32603 internal error 1/6",
            "200 -32602 request #: unsupported 1/6",
            "200 -32601 unknown method: initialize 1/6",
        ],
    );
    check(
        &summary,
        TableName::Funnel,
        &[
            "asked 6/6",
            "resolved 6/6",
            "connected 6/6",
            "tls 6/6",
            "http 6/6",
            "json 6/6",
            "envelope 6/6",
            "mcp 3/6",
        ],
    );
}

#[test]
fn gates_are_told_from_refusals_that_should_be_gates() {
    use Outcome as O;
    let summary = summary(&[
        row(O::AuthRequired, "bearer", Verdict::Gated),
        row(O::AuthRequired, "no_challenge", Verdict::Gated),
        row(O::PaymentRequired, "x402_v2", Verdict::Gated),
        row(O::Forbidden, "edge_block", Verdict::Unmeasured),
        Row {
            findings: "html_body;auth_in_jsonrpc_not_401".to_owned(),
            ..row(O::JsonrpcError, "-32001", Verdict::Gated)
        },
    ]);
    check(
        &summary,
        TableName::Authentication,
        &[
            "401 bearer 1/4",
            "401 no_challenge 1/4",
            "402 x402_v2 1/4",
            "should_be_401 auth_in_jsonrpc_not_401 1/4",
        ],
    );
    check(
        &summary,
        TableName::Findings,
        &["auth_in_jsonrpc_not_401 1/5", "html_body 1/5"],
    );
}

#[test]
fn one_census_is_told_in_four_units_and_without_its_largest() {
    let working = || row(Outcome::Success, "json", Verdict::Working);
    let gone = || row(Outcome::NotFound, "404", Verdict::NotMcp);
    let rows = [
        at("a.big.test", "/1", working()),
        at("a.big.test", "/1", working()),
        at("b.big.test", "/2", working()),
        at("x.small.test", "/", gone()),
        at("one.vercel.app", "/", gone()),
        row(Outcome::Unprobeable, "template", Verdict::Unprobeable),
    ];
    let summary = summary(&rows);
    check(
        &summary,
        TableName::Units,
        &[
            "rows listed 6",
            "rows measured 5",
            "rows working 3/5",
            "endpoints listed 4",
            "endpoints measured 4",
            "endpoints working 2/4",
            "hosts listed 4",
            "hosts measured 4",
            "hosts working 2/4",
            "sites listed 3",
            "sites measured 3",
            "sites working 1/3",
        ],
    );
    check(&summary, TableName::Concentration, &["nothing 3/5"]);
    let concentration = summary.table(TableName::Concentration).unwrap();
    let without: Vec<(u64, Option<u64>, &str)> = concentration.lines[1..4]
        .iter()
        .map(|it| (it.count, it.share.map(|it| it.of), it.about.as_str()))
        .collect();
    assert_eq!(
        without,
        [
            (0, Some(2), "big.test"),
            (0, Some(1), "big.test, small.test"),
            (0, None, "big.test, small.test, vercel.app"),
        ]
    );
}

#[test]
fn rows_to_act_on_are_grouped_by_mechanism_and_place() {
    let gone = || row(Outcome::NotFound, "404", Verdict::NotMcp);
    let working = || row(Outcome::Success, "json", Verdict::Working);
    let deployment = || Row {
        hint: Some(Hint::DeploymentGone),
        ..gone()
    };
    let rows = [
        at("dead.test", "/1", gone()),
        at("dead.test", "/2", gone()),
        at("dead.test", "/3", gone()),
        at("half.test", "/1", gone()),
        at("half.test", "/2", gone()),
        at("half.test", "/3", working()),
        at("single.test", "/", gone()),
        Row {
            site: Some("one.vercel.app".to_owned()),
            ..at("one.vercel.app", "/", deployment())
        },
        Row {
            site: Some("two.vercel.app".to_owned()),
            ..at("two.vercel.app", "/", deployment())
        },
        row(Outcome::Unprobeable, "template", Verdict::Unprobeable),
    ];
    check(
        &summary(&rows),
        TableName::RowsToActOn,
        &[
            "host_not_found dead.test 3/10",
            "deployment_gone vercel.app 2/10",
            "path_not_found half.test 2/10",
            "template_left_in the list 1/10",
            "host_not_found others 1/10",
        ],
    );
}

#[test]
fn times_are_told_by_verdict_and_can_be_left_out() {
    let took = |ms: f64| Row {
        total_ms: Some(ms),
        findings: "slow_first_byte;html_body".to_owned(),
        ..row(Outcome::Success, "json", Verdict::Working)
    };
    let rows: Vec<Row> = [10.9, 20.0, 30.0, 40.0, 900_000.0, f64::NAN]
        .map(took)
        .to_vec();
    let summary = summary(&rows);
    let latency: Vec<(String, u64)> = summary.table(TableName::Latency).unwrap().lines[..5]
        .iter()
        .map(|it| (it.key[1].clone(), it.count))
        .collect();
    let want = [
        ("rows", 6),
        ("p50", 20),
        ("p90", 60_000),
        ("p99", 60_000),
        ("max", 60_000),
    ];
    assert_eq!(latency, want.map(|(name, count)| (name.to_owned(), count)));
    check(
        &summary,
        TableName::LatencyHistogram,
        &["50 5/6", "longer 1/6"],
    );
    let bare = summary.without_timings();
    assert!(bare.table(TableName::Latency).is_none());
    check(&bare, TableName::Findings, &["html_body 6/6"]);
}

fn any_row() -> impl Strategy<Value = Row> {
    let outcome = prop::sample::select(Outcome::ALL);
    let verdict = prop::sample::select(Verdict::ALL);
    let host = prop::option::of(prop::sample::select(vec![
        "a.b.test",
        "c.vercel.app",
        "127.0.0.1",
        "x",
    ]));
    let detail = prop::sample::select(vec![
        "json",
        "404",
        "-32001",
        "bearer",
        "template",
        "retry_after=3",
        "connect",
        "",
    ]);
    let status = prop::option::of(prop::sample::select(vec![200_u16, 401, 404, 429, 503]));
    let time = prop::option::of(0.0..100_000.0);
    let text = prop::option::of(".{0,80}");
    (outcome, verdict, host, detail, status, time, text).prop_map(
        |(outcome, verdict, host, detail, status, time, text)| Row {
            http_status: status,
            total_ms: time,
            rpc_message: text.clone(),
            protocol_version: text,
            body_kind: status.map(|_| BodyKind::Json),
            endpoint: host.map(|it| format!("https://{it}/")),
            host: host.map(str::to_owned),
            site: host.map(str::to_owned),
            ..row(outcome, detail, verdict)
        },
    )
}

proptest! {
    #[test]
    fn counts_add_up(rows in prop::collection::vec(any_row(), 0..60)) {
        let summary = summary(&rows);
        let total = rows.len() as u64;
        let sum = |name| -> u64 {
            summary.table(name).unwrap().lines.iter().map(|it| it.count).sum()
        };
        prop_assert_eq!(summary.rows, total);
        prop_assert_eq!(sum(TableName::Outcomes), total);
        prop_assert_eq!(sum(TableName::Verdicts), total);
        prop_assert_eq!(sum(TableName::Details), total);
        prop_assert_eq!(sum(TableName::EraTransport), summary.measured);
        prop_assert_eq!(sum(TableName::NotMeasured), total - summary.measured);
        let measured: u64 = summary.table(TableName::Outcomes).unwrap().lines.iter()
            .filter(|it| it.share.is_some()).map(|it| it.count).sum();
        prop_assert!(summary.measured == 0 || measured == summary.measured);
        for table in &summary.tables {
            let mut keys: Vec<&Vec<String>> = table.lines.iter().map(|it| &it.key).collect();
            keys.sort_unstable();
            keys.dedup();
            // What a server said may look like what another said once it is made plain.
            if table.name != TableName::ProtocolVersions && table.name != TableName::JsonrpcErrorMessages {
                prop_assert_eq!(keys.len(), table.lines.len(), "{}", table.name);
            }
            for line in &table.lines {
                prop_assert_eq!(line.key.len() + 1, table.columns.len(), "{}", table.name);
                if let Some(share) = line.share {
                    prop_assert!(share.low <= share.fraction && share.fraction <= share.high);
                    prop_assert!(line.count <= share.of);
                }
            }
        }
    }

    #[test]
    fn the_order_of_rows_does_not_matter(rows in prop::collection::vec(any_row(), 0..40)) {
        let reversed: Vec<Row> = rows.iter().rev().cloned().collect();
        prop_assert_eq!(summary(&rows), summary(&reversed));
    }
}
