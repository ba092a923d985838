//! What the pure parts cost: reading answers, event streams and lists, and counting rows. `cargo bench`.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use mcp_census::classify::classify;
use mcp_census::exchange::{Answer, Body, BodyEnd, Connection, Exchange, Leg, Reply, Timing};
use mcp_census::forecast::{Conduct, Forecast, Tempo};
use mcp_census::inquiry::{self, Opening, Profile, Terms};
use mcp_census::list::{Item, Source};
use mcp_census::mcp::{ASKED_VERSION, Identity};
use mcp_census::outcome::{Detail, Unmeasured};
use mcp_census::report;
use mcp_census::roll::{Aim, Freezer, Listed};
use mcp_census::row::Row;
use mcp_census::sse::Parser;
use mcp_census::tally::{RunFacts, Tally};
use mcp_census::target::{AddressPolicy, Suffixes, Target};
use url::Url;

fn main() {
    divan::main();
}

const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true}},"serverInfo":{"name":"weather","title":"Weather","version":"1.4.2"},"instructions":"Ask for a place and a day. Places are named in English; days are dates. Forecasts reach ten days, records go back to 1950, and nothing is kept of what was asked."}}"#;

const REFUSAL: &str =
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;

fn page() -> String {
    let mut page = String::from(
        "<!doctype html><html lang=en><head><title>404 Not Found</title></head><body>",
    );
    for paragraph in 0..40 {
        let _ = write!(
            page,
            "<p class=\"p{paragraph}\">The page you were looking for is not here, and never was.</p>"
        );
    }
    page + "</body></html>"
}

fn gzipped(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(text.as_bytes())
        .expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything")
}

fn target(endpoint: u32) -> Target {
    let url = format!("https://s{}.example.com/mcp/{endpoint}", endpoint % 7919);
    Target {
        endpoint,
        url: Url::parse(&url).expect("an address"),
        declared: None,
    }
}

/// What was exchanged with a server that answers so.
fn exchange(
    endpoint: u32,
    status: u16,
    media_type: &str,
    coding: Option<&str>,
    body: Vec<u8>,
) -> Exchange {
    let target = target(endpoint);
    let mut headers = vec![
        (
            "date".to_owned(),
            "Mon, 30 Nov 2026 08:00:00 GMT".to_owned(),
        ),
        ("server".to_owned(), "nginx".to_owned()),
        ("content-type".to_owned(), media_type.to_owned()),
        ("content-length".to_owned(), body.len().to_string()),
    ];
    headers.extend(coding.map(|it| ("content-encoding".to_owned(), it.to_owned())));
    Exchange {
        endpoint,
        attempt: 0,
        leg: Leg::Initialize,
        started_at: Timestamp::UNIX_EPOCH,
        request: Identity { contact: None }.initialize(&target.url, ASKED_VERSION),
        reply: Reply::Answer(Answer {
            version: "HTTP/1.1".to_owned(),
            status,
            headers,
            body: Body(body),
            end: BodyEnd::Complete,
        }),
        timing: Timing {
            total_ms: Some(f64::from(endpoint % 997)),
            ..Timing::default()
        },
        connection: Connection {
            peer: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
            ..Connection::default()
        },
    }
}

const ANSWERS: [&str; 5] = [
    "json_success",
    "sse_success",
    "json_error",
    "html_404",
    "gzip",
];

fn answer(name: &str, endpoint: u32) -> Exchange {
    match name {
        "json_success" => exchange(endpoint, 200, "application/json", None, RESULT.into()),
        "sse_success" => {
            let stream = format!(": hello\n\nevent: message\nid: 1\ndata: {RESULT}\n\n");
            exchange(endpoint, 200, "text/event-stream", None, stream.into())
        }
        "json_error" => exchange(endpoint, 404, "application/json", None, REFUSAL.into()),
        "html_404" => exchange(
            endpoint,
            404,
            "text/html; charset=utf-8",
            None,
            page().into(),
        ),
        "gzip" => exchange(
            endpoint,
            200,
            "application/json",
            Some("gzip"),
            gzipped(RESULT),
        ),
        other => unreachable!("no answer is called {other}"),
    }
}

#[divan::bench(args = ANSWERS)]
fn classify_one(bencher: Bencher, name: &str) {
    let exchanges = [answer(name, 0)];
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench(|| classify(ASKED_VERSION, None, black_box(&exchanges)));
}

#[divan::bench(args = [64, 1448, 65_536])]
fn event_stream_of_a_megabyte(bencher: Bencher, chunk: usize) {
    let event = format!("event: message\nid: 17\ndata: {RESULT}\n\n");
    let stream = event.repeat((1 << 20) / event.len()).into_bytes();
    bencher.counter(BytesCount::new(stream.len())).bench(|| {
        let mut parser = Parser::default();
        let events: usize = stream
            .chunks(chunk)
            .map(|bytes| parser.push(black_box(bytes)).len())
            .sum();
        (events, parser.finish())
    });
}

#[divan::bench]
fn event_stream_of_one_large_event(bencher: Bencher) {
    let stream = format!("data: {}\n\n", "x".repeat(1 << 20)).into_bytes();
    bencher
        .counter(BytesCount::new(stream.len()))
        .bench(|| Parser::default().push(black_box(&stream)));
}

/// A dump of the registry, as its API pages are joined.
fn registry(entries: u32) -> Vec<u8> {
    let mut text = String::from(r#"{"servers":["#);
    for entry in 0..entries {
        let comma = if entry == 0 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}{{"server":{{"$schema":"https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json","name":"com.example{}/server-{entry}","description":"Forecasts and records of the weather, anywhere, for ten days","title":"Weather {entry}","version":"1.{}.0","repository":{{"url":"https://github.com/example/weather","source":"github"}},"remotes":[{{"type":"streamable-http","url":"https://s{}.example.com/mcp/{entry}"}}]}},"_meta":{{"io.modelcontextprotocol.registry/official":{{"status":"active","publishedAt":"2026-05-01T12:00:00Z","updatedAt":"2026-05-01T12:00:00Z","isLatest":true}}}}}}"#,
            entry % 97,
            entry % 13,
            entry % 7919,
        );
    }
    text.push_str(r#"],"metadata":{"count":0}}"#);
    text.into_bytes()
}

fn table(rows: u32) -> Vec<u8> {
    let mut text = String::from("name,url,transport,stars\n");
    for row in 0..rows {
        let _ = writeln!(
            text,
            "\"Weather, no. {row}\",https://s{}.example.com/mcp/{row},streamable-http,{}",
            row % 7919,
            row % 100
        );
    }
    text.into_bytes()
}

fn read(name: &str, list: &[u8]) -> u64 {
    let source = Source {
        name,
        number: 0,
        format: None,
    };
    let mut seen = 0;
    let contents = source
        .read(Cursor::new(list), &mut |item| {
            seen += u64::from(matches!(black_box(item), Item::Listing(_)));
        })
        .expect("it is a list");
    assert_eq!(contents.listings, seen);
    seen
}

#[divan::bench]
fn list_of_the_registry_10k(bencher: Bencher) {
    let list = registry(10_000);
    assert_eq!(read("registry.json", &list), 10_000);
    bencher
        .counter(BytesCount::new(list.len()))
        .bench(|| read("registry.json", black_box(&list)));
}

#[divan::bench]
fn list_in_csv_100k(bencher: Bencher) {
    let list = table(100_000);
    assert_eq!(read("table.csv", &list), 100_000);
    bencher
        .counter(BytesCount::new(list.len()))
        .bench(|| read("table.csv", black_box(&list)));
}

fn listed(endpoint: u32) -> Listed {
    Listed {
        line: u64::from(endpoint) + 1,
        name: format!("com.example/server-{endpoint}"),
        url: target(endpoint).url.to_string(),
        ..Listed::default()
    }
}

#[divan::bench]
fn freeze_10k(bencher: Bencher) {
    bencher
        .counter(ItemsCount::new(10_000_usize))
        .with_inputs(|| (0..10_000).map(listed).collect::<Vec<_>>())
        .bench_values(|rows| {
            let mut freezer = Freezer::new(AddressPolicy::default());
            rows.into_iter()
                .filter(|row| {
                    let entry = freezer.freeze(row.clone());
                    matches!(entry.aim, Aim::Endpoint { .. })
                })
                .count()
        });
}

/// A list of addresses -> what a scan of them would do. What a million of them take of time and memory, all of
/// the program, is told by `harness table million`.
#[divan::bench]
fn dry_run_of_100k(bencher: Bencher) {
    let mut list = String::new();
    for endpoint in 0..100_000 {
        let _ = writeln!(list, "{}", target(endpoint).url);
    }
    let terms = Terms {
        identity: Identity { contact: None },
        version: ASKED_VERSION.to_owned(),
        confirm: 1,
        profile: Profile::Census,
        budget: inquiry::BUDGET,
        opening: Opening::Initialize,
        own: None,
    };
    let conduct = Conduct {
        terms: &terms,
        robots: false,
        tempo: Tempo {
            gap: Duration::from_millis(500),
            rate: 100,
            per_operator: 10,
            per_address: 20,
        },
    };
    bencher.counter(ItemsCount::new(100_000_usize)).bench(|| {
        let (mut freezer, mut forecast) = (Freezer::default(), Forecast::default());
        let source = Source {
            name: "list.txt",
            number: 0,
            format: None,
        };
        source
            .read(Cursor::new(black_box(&list)), &mut |item| {
                if let Item::Listing(listing) = item {
                    forecast.add(&freezer.freeze(Listed {
                        url: listing.url,
                        ..Listed::default()
                    }));
                }
            })
            .expect("a list");
        forecast.outlook(&freezer.into_targets(), &Suffixes::default(), &conduct)
    });
}

/// Rows of a census, as they are reckoned from evidence.
fn rows(count: u32) -> Vec<Row> {
    let mut freezer = Freezer::new(AddressPolicy::default());
    (0..count)
        .map(|endpoint| {
            let entry = freezer.freeze(listed(endpoint));
            let name = ANSWERS[endpoint as usize % ANSWERS.len()];
            let exchanges = [answer(name, endpoint)];
            let settled = inquiry::settled(&target(endpoint), ASKED_VERSION, &exchanges);
            Row::new(
                &entry,
                Some(format!("s{}.example.com", endpoint % 7919)),
                settled.as_ref(),
                &exchanges,
                Detail::Unmeasured(Unmeasured::Interrupted),
            )
        })
        .collect()
}

#[divan::bench]
fn report_of_25k_rows(bencher: Bencher) {
    let rows = rows(25_000);
    let facts = RunFacts::default();
    bencher.counter(ItemsCount::new(rows.len())).bench(|| {
        let mut tally = Tally::default();
        for row in &rows {
            tally.add(black_box(row));
        }
        let summary = tally.summary(&facts);
        (report::markdown(&summary), report::csv_long(&summary))
    });
}

#[divan::bench]
fn cells_of_25k_rows(bencher: Bencher) {
    let rows = rows(25_000);
    bencher
        .counter(ItemsCount::new(rows.len()))
        .bench(|| rows.iter().map(|row| row.cells().len()).sum::<usize>());
}

/// A line of evidence, written and read back.
#[divan::bench(args = ANSWERS)]
fn evidence_written(bencher: Bencher, name: &str) {
    let exchange = answer(name, 0);
    bencher.bench(|| serde_json::to_vec(black_box(&exchange)).expect("it can be written"));
}

#[divan::bench(args = ANSWERS)]
fn evidence_read(bencher: Bencher, name: &str) {
    let line = serde_json::to_vec(&answer(name, 0)).expect("it can be written");
    bencher.bench(|| {
        serde_json::from_slice::<Exchange>(black_box(&line)).expect("it can be read back")
    });
}
