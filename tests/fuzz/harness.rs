//! What is fuzzed: what a stranger's bytes reach. Each function panics where an invariant breaks.
#![allow(
    clippy::allow_attributes,
    dead_code,
    reason = "each target uses one of these"
)]

use mcp_census::classify::classify as read;
use mcp_census::exchange::{Answer, Body, BodyEnd, Exchange, Leg, Reply, Request};
use mcp_census::jsonrpc;
use mcp_census::list::{Item, Source};
use mcp_census::mcp::ASKED_VERSION;
use mcp_census::sse::Parser;

/// Media types and content codings that a body is read under.
const LABELS: [(&str, &str); 6] = [
    ("application/json", ""),
    ("text/event-stream", ""),
    ("text/html", ""),
    ("", ""),
    ("application/json", "gzip"),
    ("application/json", "br"),
];

/// Any chunking of a stream gives the same events.
pub(crate) fn sse(bytes: &[u8]) {
    let (Some(&cut), stream) = (bytes.first(), bytes.get(1..).unwrap_or_default()) else {
        return;
    };
    let mut whole = Parser::default();
    let want = whole.push(stream);
    let (mut parser, mut got) = (Parser::default(), Vec::new());
    for piece in stream.chunks(usize::from(cut).max(1)) {
        got.extend(parser.push(piece));
    }
    assert_eq!(got, want);
    assert_eq!(parser.finish(), whole.finish());
}

/// Any answer has one reading, and the evidence file gives it back.
pub(crate) fn classify(bytes: &[u8]) {
    let [label, high, low, leg, body @ ..] = bytes else {
        return;
    };
    let (media, coding) = LABELS[usize::from(*label) % LABELS.len()];
    let headers = [("content-type", media), ("content-encoding", coding)];
    let headers = headers
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|&(name, value)| (name.to_owned(), value.to_owned()));
    let status = 100 + u16::from_be_bytes([*high, *low]) % 900;
    let answer = Answer {
        version: "HTTP/1.1".into(),
        status,
        headers: headers.collect(),
        body: Body(body.into()),
        end: BodyEnd::Complete,
    };
    let exchange = |leg| Exchange {
        endpoint: 0,
        attempt: 0,
        leg,
        started_at: jiff::Timestamp::UNIX_EPOCH,
        request: Request {
            method: "POST".into(),
            url: "https://a.example/mcp".into(),
            headers: vec![],
            body: String::new(),
        },
        reply: Reply::Answer(answer.clone()),
        timing: mcp_census::exchange::Timing::default(),
        connection: mcp_census::exchange::Connection::default(),
    };
    let exchanges = vec![
        exchange(Leg::Initialize),
        exchange(Leg::ALL[usize::from(*leg) % Leg::ALL.len()]),
    ];
    let line = serde_json::to_vec(&exchanges).expect("evidence can be written");
    let kept: Vec<Exchange> = serde_json::from_slice(&line).expect("evidence can be read back");
    assert_eq!(kept, exchanges);
    assert_eq!(
        read(ASKED_VERSION, None, &kept),
        read(ASKED_VERSION, None, &exchanges)
    );
}

/// Any file is a list, or an error that names it.
pub(crate) fn list(bytes: &[u8]) {
    let source = Source {
        name: "fuzzed",
        number: 0,
        format: None,
    };
    let mut rows = 0u64;
    let read = source.read(bytes, &mut |item| {
        rows += 1;
        if let Item::Bad(row) = item {
            assert!(!row.why.is_empty());
        }
    });
    match read {
        Ok(contents) => assert_eq!(contents.listings + contents.bad_rows, rows),
        Err(error) => assert!(error.to_string().contains("fuzzed")),
    }
}

/// Any line is a message or is not, and only a request is answered with `supported`.
pub(crate) fn jsonrpc(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let shape = jsonrpc::Shape::of(&text);
    let answer = jsonrpc::answer(&text, &["tools/list".to_owned()]);
    if answer.as_deref() == Some(jsonrpc::SUPPORTED) {
        assert_eq!(shape, jsonrpc::Shape::Request);
    }
    if let Some(answer) = answer.filter(|it| it != jsonrpc::SUPPORTED) {
        assert_eq!(
            jsonrpc::Shape::of(&answer),
            jsonrpc::Shape::Error,
            "{answer}"
        );
    }
}
