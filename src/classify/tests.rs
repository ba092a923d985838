use super::*;
use crate::exchange::{Body as Bytes, DnsFault, Request, TlsFault};
use crate::exchange::{ConnectFault, Drop, Fault, LocalFault, Reply, Stage};
use crate::mcp::{self, DISCOVER_ID};
use crate::outcome::{Challenge, Framing};
use proptest::prelude::*;

/// An exchange of the first attempt that carried `leg` and was answered so.
fn exchange(
    leg: Leg,
    status: u16,
    headers: &[(&str, &str)],
    body: &[u8],
    end: BodyEnd,
) -> Exchange {
    let headers = headers
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let answer = Answer {
        version: "HTTP/1.1".into(),
        status,
        headers,
        body: Bytes(body.into()),
        end,
    };
    with_reply(leg, Reply::Answer(answer))
}

fn with_reply(leg: Leg, reply: Reply) -> Exchange {
    let request = Request {
        method: "POST".into(),
        url: "https://a.example/mcp".into(),
        headers: vec![],
        body: String::new(),
    };
    Exchange {
        endpoint: 0,
        attempt: 0,
        leg,
        started_at: jiff::Timestamp::UNIX_EPOCH,
        request,
        reply,
        timing: crate::exchange::Timing::default(),
        connection: crate::exchange::Connection::default(),
    }
}

fn ask(exchanges: &[Exchange]) -> Reading {
    classify(mcp::ASKED_VERSION, None, exchanges)
}

#[track_caller]
fn check(status: u16, headers: &[(&str, &str)], body: &str, want: &str) {
    let reading = ask(&[exchange(
        Leg::Initialize,
        status,
        headers,
        body.as_bytes(),
        BodyEnd::Complete,
    )]);
    assert_eq!(
        format!(
            "{} {} {}",
            reading.detail.outcome(),
            reading.detail,
            reading.verdict
        ),
        want,
        "{status} {body:.80}"
    );
}

const JSON: (&str, &str) = ("content-type", "application/json");
const SSE: (&str, &str) = ("content-type", "text/event-stream");
const HTML: (&str, &str) = ("content-type", "text/html");

fn ok() -> String {
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"a","version":"1"}}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{INITIALIZE_ID},"result":{result}}}"#)
}

fn error(code: i64, message: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{INITIALIZE_ID},"error":{{"code":{code},"message":"{message}"}}}}"#
    )
}

#[test]
fn a_valid_result_is_success_however_it_is_framed() {
    check(200, &[JSON], &ok(), "success json working");
    check(
        200,
        &[SSE],
        &format!("data: {}\n\n", ok()),
        "success sse working",
    );
    check(201, &[], &ok(), "success json working");
    check(200, &[HTML], &ok(), "success json working");
}

#[test]
fn the_body_beats_the_status() {
    check(
        404,
        &[JSON],
        &error(-32601, "Method not found"),
        "jsonrpc_error -32601 faulty",
    );
    check(
        503,
        &[JSON],
        &error(-32000, "Server is starting"),
        "jsonrpc_error -32000 faulty",
    );
    check(
        400,
        &[JSON],
        &ok(),
        "protocol_violation result_with_http_error faulty",
    );
}

#[test]
fn four_statuses_beat_the_body() {
    let refusal = error(-32001, "Unauthorized");
    check(401, &[JSON], &refusal, "auth_required no_challenge gated");
    check(
        401,
        &[("www-authenticate", "Bearer")],
        "",
        "auth_required bearer gated",
    );
    check(
        402,
        &[JSON],
        r#"{"x402Version":2}"#,
        "payment_required x402_v2 gated",
    );
    check(403, &[JSON], &refusal, "forbidden 403 gated");
    check(
        429,
        &[("retry-after", "7")],
        &refusal,
        "rate_limited retry_after=7 unmeasured",
    );
}

#[test]
fn a_challenge_for_browsers_measures_nothing() {
    check(
        403,
        &[HTML, ("cf-mitigated", "challenge")],
        "<html></html>",
        "forbidden bot_challenge unmeasured",
    );
    check(
        403,
        &[HTML, ("server", "cloudflare")],
        "<html>Sorry, you have been blocked</html>",
        "forbidden edge_block unmeasured",
    );
}

#[test]
fn a_refusal_for_want_of_a_key_is_a_gate_whatever_its_status() {
    check(
        200,
        &[JSON],
        &error(-32001, "invalid api key"),
        "jsonrpc_error -32001 gated",
    );
    check(
        200,
        &[JSON],
        &error(-32001, "Session not found"),
        "jsonrpc_error -32001 faulty",
    );
    check(
        200,
        &[JSON],
        &error(402, "Payment required"),
        "jsonrpc_error 402 gated",
    );
}

#[test]
fn without_an_envelope_a_2xx_is_what_its_bytes_are() {
    check(
        200,
        &[HTML],
        "<!doctype html><html></html>",
        "html_page html not_mcp",
    );
    check(200, &[JSON], "[1]", "non_envelope array not_mcp");
    check(
        200,
        &[JSON],
        r#"{"tools":[]}"#,
        "non_envelope unrelated_json not_mcp",
    );
    check(200, &[], "running", "invalid_json plain_text not_mcp");
    check(202, &[], "", "empty_body 202 not_mcp");
    check(200, &[SSE], "", "empty_body sse_no_events not_mcp");
    check(
        200,
        &[SSE],
        "id: 1\ndata:\n\n",
        "connection_dropped sse_closed_before_response down",
    );
    check(
        200,
        &[SSE],
        "data: {\"broken\":\n\n",
        "invalid_json sse_data not_mcp",
    );
}

#[test]
fn without_an_envelope_any_other_status_speaks() {
    check(404, &[HTML], "<html></html>", "not_found 404 not_mcp");
    check(405, &[], "", "method_not_allowed 405 not_mcp");
    check(500, &[HTML], "<html></html>", "http_error 500 down");
    check(422, &[JSON], "{}", "http_error 422 not_mcp");
    check(301, &[("location", "/x")], "", "redirect 301 not_mcp");
    check(
        302,
        &[("location", "https://team.example/cdn-cgi/access/login/x")],
        "",
        "redirect 302_login not_mcp",
    );
    check(308, &[], "", "redirect no_location not_mcp");
}

#[test]
fn among_several_messages_ours_is_the_answer() {
    let other = r#"{"jsonrpc":"2.0","id":999,"result":{}}"#;
    check(
        200,
        &[SSE],
        &format!("data: {other}\n\ndata: {}\n\n", ok()),
        "success sse working",
    );
    check(
        200,
        &[SSE],
        &format!("data: [{other},{}]\n\n", ok()),
        "success sse working",
    );
    check(
        200,
        &[SSE],
        &format!("data: {other}\n\n"),
        "protocol_violation id_mismatch faulty",
    );
}

#[test]
fn a_fault_is_placed_by_the_stage_it_was_met_at() {
    for (fault, want) in [
        (Fault::Dns(DnsFault::NxDomain), "dns_failure nxdomain down"),
        (
            Fault::Connect(ConnectFault::Refused),
            "connect_failure refused down",
        ),
        (
            Fault::Connect(ConnectFault::NoRoute),
            "connect_failure no_route unmeasured",
        ),
        (Fault::Tls(TlsFault::Expired), "tls_failure expired down"),
        (Fault::Deadline(Stage::FirstByte), "timeout first_byte down"),
        (
            Fault::Dropped(Drop::EmptyReply),
            "connection_dropped empty_reply down",
        ),
        (
            Fault::PrivateAddress([10, 0, 0, 8].into()),
            "unprobeable private_address unprobeable",
        ),
        (
            Fault::Local(LocalFault::Exhausted),
            "unmeasured instrument_error unmeasured",
        ),
    ] {
        let reading = ask(&[with_reply(Leg::Initialize, Reply::Fault(fault))]);
        assert_eq!(
            format!(
                "{} {} {}",
                reading.detail.outcome(),
                reading.detail,
                reading.verdict
            ),
            want
        );
    }
}

#[test]
fn a_body_that_broke_off_is_not_believed_and_a_stream_that_had_answered_is() {
    let fault = BodyEnd::Broken(Fault::Dropped(Drop::IncompleteBody));
    let of = |header, body: String| {
        ask(&[exchange(
            Leg::Initialize,
            200,
            &[header],
            body.as_bytes(),
            fault,
        )])
        .detail
    };
    assert_eq!(of(JSON, ok()), Detail::Drop(Drop::IncompleteBody));
    assert_eq!(
        of(SSE, format!("data: {}\n\n", ok())),
        Detail::Framing(Framing::Sse)
    );
}

#[test]
fn a_discovery_makes_a_refusal_work_and_tells_the_era() {
    let result = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}"#;
    let discovered = format!(r#"{{"jsonrpc":"2.0","id":{DISCOVER_ID},"result":{result}}}"#);
    let answer = |leg, status, body: &str| {
        exchange(leg, status, &[JSON], body.as_bytes(), BodyEnd::Complete)
    };
    let refused = answer(Leg::Initialize, 404, &error(-32601, "Method not found"));
    let reading = ask(&[refused.clone(), answer(Leg::Discover, 200, &discovered)]);
    assert_eq!(
        (reading.verdict, reading.era),
        (Verdict::Working, Era::Modern)
    );
    let both = ask(&[
        answer(Leg::Initialize, 200, &ok()),
        answer(Leg::Discover, 200, &discovered),
    ]);
    assert_eq!((both.verdict, both.era), (Verdict::Working, Era::Dual));
    let neither = ask(&[
        refused,
        answer(
            Leg::Discover,
            404,
            &error(-32601, "Method not found").replace("7341", "7342"),
        ),
    ]);
    assert_eq!(
        (neither.verdict, neither.era),
        (Verdict::Faulty, Era::Unknown)
    );
    let gated = ask(&[answer(Leg::Initialize, 401, "")]);
    assert_eq!(gated.era, Era::Unknown, "a 401 says nothing about era");
}

#[test]
fn a_discovery_alone_is_a_success_of_the_modern_era() {
    let result = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}"#;
    let body = format!(r#"{{"jsonrpc":"2.0","id":{DISCOVER_ID},"result":{result}}}"#);
    let reading = ask(&[exchange(
        Leg::Discover,
        200,
        &[JSON],
        body.as_bytes(),
        BodyEnd::Complete,
    )]);
    assert_eq!(
        (reading.detail, reading.verdict, reading.era),
        (
            Detail::Framing(Framing::Json),
            Verdict::Working,
            Era::Modern
        )
    );
    let gated = ask(&[exchange(
        Leg::Discover,
        401,
        &[("www-authenticate", "Bearer")],
        b"",
        BodyEnd::Complete,
    )]);
    assert_eq!((gated.verdict, gated.era), (Verdict::Gated, Era::Unknown));
}

#[test]
fn a_405_to_a_post_is_right_on_an_endpoint_of_the_older_transport() {
    let stream = format!("event: endpoint\ndata: /messages?s=1\n\ndata: {}\n\n", ok());
    let posted = exchange(Leg::Initialize, 405, &[], b"", BodyEnd::Complete);
    let opened = exchange(
        Leg::SseStream,
        200,
        &[SSE],
        stream.as_bytes(),
        BodyEnd::Left,
    );
    let accepted = exchange(Leg::SseMessage, 202, &[], b"Accepted", BodyEnd::Complete);
    let reading = ask(&[posted, opened, accepted]);
    assert_eq!(
        (reading.detail, reading.transport),
        (Detail::Framing(Framing::HttpSse), Some(Transport::HttpSse))
    );
}

#[test]
fn a_stream_that_wants_a_key_is_a_gate() {
    let posted = exchange(Leg::Initialize, 405, &[], b"", BodyEnd::Complete);
    let gated = exchange(
        Leg::SseStream,
        401,
        &[("www-authenticate", "Bearer")],
        b"",
        BodyEnd::Complete,
    );
    assert_eq!(
        ask(&[posted, gated]).detail,
        Detail::Challenge(Challenge::Bearer)
    );
    let missing = exchange(Leg::Initialize, 404, &[], b"", BodyEnd::Complete);
    let gated = exchange(Leg::SseStream, 401, &[], b"", BodyEnd::Complete);
    assert_eq!(ask(&[missing, gated]).detail, Detail::Status(404));
}

proptest! {
    #[test]
    fn any_answer_has_exactly_one_reading(
        status in 100u16..1000,
        body in proptest::collection::vec(any::<u8>(), 0..200),
        media in "(application/json|text/event-stream|text/html|)",
        coding in "(gzip|br|)",
        leg in 0usize..Leg::ALL.len(),
    ) {
        let headers = [("content-type", media.as_str()), ("content-encoding", coding.as_str())];
        for end in [BodyEnd::Complete, BodyEnd::Left, BodyEnd::OverLimit, BodyEnd::Broken(Fault::Deadline(Stage::Body))] {
            let exchanges = [exchange(Leg::Initialize, status, &headers, &body, end), exchange(Leg::ALL[leg], status, &headers, &body, end)];
            prop_assert_eq!(ask(&exchanges), ask(&exchanges));
        }
    }

    #[test]
    fn any_json_object_has_a_reading(
        jsonrpc in "(\"2.0\"|2.0|null)", id in "(7341|7341.0|\"7341\"|null|0|\\{\\})", result in "(null|\\{\\}|\"x\"|7)", error in "(null|\\{\"code\":1\\}|\"x\")", has in 0u8..16,
    ) {
        let members = [("jsonrpc", jsonrpc), ("id", id), ("result", result), ("error", error)];
        let kept: Vec<String> =
            members.iter().enumerate().filter(|(at, _)| has & (1 << at) != 0).map(|(_, (name, value))| format!("\"{name}\":{value}")).collect();
        let body = format!("{{{}}}", kept.join(","));
        let reading = ask(&[exchange(Leg::Initialize, 200, &[JSON], body.as_bytes(), BodyEnd::Complete)]);
        prop_assert!(reading.http_status == Some(200));
    }
}
