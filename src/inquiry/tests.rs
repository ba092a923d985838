use super::*;
use crate::exchange::{Answer, Body, Connection, Stage, Timing};
use crate::mcp::{ASKED_VERSION, DISCOVER_ID, INITIALIZE_ID};

fn target(declared: Option<Transport>) -> Target {
    Target {
        endpoint: 0,
        url: Url::parse("https://a.example/mcp").unwrap(),
        declared,
    }
}

fn terms(confirm: u8) -> Terms {
    Terms {
        identity: Identity { contact: None },
        version: ASKED_VERSION.into(),
        confirm,
        profile: Profile::Census,
        budget: BUDGET,
        own: None,
        opening: Opening::Initialize,
    }
}

/// What a server answers: status, headers, body, end.
type Said = (
    u16,
    &'static [(&'static str, &'static str)],
    String,
    BodyEnd,
);

fn says(status: u16, headers: &'static [(&'static str, &'static str)], body: &str) -> Said {
    (status, headers, body.to_owned(), BodyEnd::Complete)
}

/// Runs an inquiry against scripted answers; gives what was asked, as `METHOD url leg`.
fn asked(
    declared: Option<Transport>,
    confirm: u8,
    answer: impl FnMut(&Ask) -> Said,
) -> Vec<String> {
    asked_under(declared, &terms(confirm), answer)
}

fn asked_under(
    declared: Option<Transport>,
    terms: &Terms,
    mut answer: impl FnMut(&Ask) -> Said,
) -> Vec<String> {
    let target = target(declared);
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut log = Vec::new();
    for _ in 0..40 {
        let (ask, later) = match next(&target, &exchanges, terms) {
            Next::Ask(ask) => (ask, ""),
            Next::Later(ask) => (ask, " later"),
            Next::Done(_) => return log,
        };
        let path = ask
            .request
            .url
            .strip_prefix("https://a.example")
            .unwrap_or(&ask.request.url)
            .to_owned();
        log.push(format!("{} {path} {}{later}", ask.request.method, ask.leg));
        let (status, headers, body, end) = answer(&ask);
        let headers = headers
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let reply = Reply::Answer(Answer {
            version: "HTTP/1.1".into(),
            status,
            headers,
            body: Body(body.into_bytes()),
            end,
        });
        exchanges.push(Exchange {
            endpoint: 0,
            attempt: ask.attempt,
            leg: ask.leg,
            started_at: jiff::Timestamp::UNIX_EPOCH,
            request: ask.request,
            reply,
            timing: Timing::default(),
            connection: Connection::default(),
        });
    }
    panic!("an inquiry ends: {log:?}");
}

fn ok() -> String {
    let result = r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"a","version":"1"}}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{INITIALIZE_ID},"result":{result}}}"#)
}

fn error(code: i64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{INITIALIZE_ID},"error":{{"code":{code},"message":"no"}}}}"#)
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
const SSE: &[(&str, &str)] = &[("content-type", "text/event-stream")];

#[test]
fn an_endpoint_that_answers_is_asked_once() {
    assert_eq!(
        asked(None, 1, |_| says(200, JSON, &ok())),
        ["POST /mcp initialize"]
    );
    assert_eq!(
        asked(None, 1, |_| says(401, &[], "")),
        ["POST /mcp initialize"]
    );
}

#[test]
fn a_session_we_were_given_is_closed() {
    let given: &[(&str, &str)] = &[
        ("content-type", "application/json"),
        ("mcp-session-id", "s1"),
    ];
    assert_eq!(
        asked(None, 1, |_| says(200, given, &ok())),
        ["POST /mcp initialize", "DELETE /mcp close"]
    );
    let refused: &[(&str, &str)] = &[("mcp-session-id", "s1")];
    assert_eq!(
        asked(None, 0, |ask| if ask.leg == Leg::Close {
            says(405, &[], "")
        } else {
            says(401, refused, "")
        }),
        ["POST /mcp initialize", "DELETE /mcp close"]
    );
}

#[test]
fn the_older_transport_is_tried_after_a_refusal_without_an_envelope() {
    for status in [400, 404, 405] {
        let log = asked(None, 0, |_| says(status, &[], ""));
        assert_eq!(
            log[..2],
            ["POST /mcp initialize", "GET /mcp sse_stream"],
            "{status}"
        );
    }
    assert_eq!(
        asked(None, 0, |_| says(404, JSON, &error(-32000)))[1],
        "POST /mcp discover"
    );
    assert_eq!(
        asked(None, 0, |_| says(500, &[], "")),
        ["POST /mcp initialize"]
    );
}

#[test]
fn a_declared_sse_endpoint_is_opened_first() {
    let opened: Said = (
        200,
        SSE,
        "event: endpoint\ndata: /m\n\n".into(),
        BodyEnd::Left,
    );
    assert_eq!(
        asked(Some(Transport::HttpSse), 0, |_| opened.clone()),
        ["GET /mcp sse_stream"]
    );
    let posts = |ask: &Ask| {
        if ask.request.method == "GET" {
            says(405, &[], "")
        } else {
            says(200, JSON, &ok())
        }
    };
    assert_eq!(
        asked(Some(Transport::HttpSse), 0, posts),
        ["GET /mcp sse_stream", "POST /mcp initialize"]
    );
    let gated = |_: &Ask| says(401, &[], "");
    assert_eq!(
        asked(Some(Transport::HttpSse), 0, gated),
        ["GET /mcp sse_stream"]
    );
    let silent = |ask: &Ask| match ask.request.method.as_str() {
        "GET" => (
            200,
            SSE,
            ": ping\n\n".into(),
            BodyEnd::Broken(Fault::Deadline(Stage::SseNoEndpoint)),
        ),
        _ => says(200, JSON, &ok()),
    };
    assert_eq!(
        asked(Some(Transport::HttpSse), 0, silent),
        ["GET /mcp sse_stream", "POST /mcp initialize"]
    );
}

#[test]
fn a_307_is_followed_five_times_and_a_301_is_only_looked_at() {
    const TO: [&[(&str, &str)]; 3] = [
        &[("location", "/x")],
        &[("location", "/mcp")],
        &[("location", "/login")],
    ];
    let looping = |ask: &Ask| {
        says(
            307,
            if ask.request.url.ends_with("/x") {
                TO[1]
            } else {
                TO[0]
            },
            "",
        )
    };
    assert_eq!(
        asked(None, 0, looping),
        ["POST /mcp initialize", "POST /x initialize"]
    );
    let moved = |ask: &Ask| {
        if ask.leg == Leg::Initialize {
            says(301, TO[0], "")
        } else {
            says(200, JSON, &ok())
        }
    };
    assert_eq!(
        asked(None, 0, moved),
        ["POST /mcp initialize", "POST /x redirect_target"]
    );
    assert_eq!(
        asked(None, 0, |_| says(302, TO[2], "")),
        ["POST /mcp initialize"],
        "a login page is not asked"
    );
    let mut hop = 0;
    let names: Vec<&'static [(&'static str, &'static str)]> = vec![
        &[("location", "/1")],
        &[("location", "/2")],
        &[("location", "/3")],
        &[("location", "/4")],
        &[("location", "/5")],
        &[("location", "/6")],
    ];
    let log = asked(None, 0, |_| {
        hop += 1;
        says(308, names[hop - 1], "")
    });
    assert_eq!(log.len(), 1 + redirect::HOPS);
}

#[test]
fn a_downgrade_is_not_followed() {
    let down: &[(&str, &str)] = &[("location", "http://a.example/mcp")];
    assert_eq!(
        asked(None, 0, |_| says(307, down, "")),
        ["POST /mcp initialize"]
    );
}

#[test]
fn a_stream_that_closes_after_priming_is_resumed_once() {
    let primed = |_: &Ask| says(200, SSE, "id: 7\nretry: 60000\ndata:\n\n");
    assert_eq!(
        asked(None, 0, primed),
        ["POST /mcp initialize", "GET /mcp sse_resume"]
    );
}

#[test]
fn an_accusation_is_asked_again_later_and_an_acquittal_is_not() {
    assert_eq!(
        asked(None, 2, |_| says(500, &[], "")),
        [
            "POST /mcp initialize",
            "POST /mcp initialize later",
            "POST /mcp initialize later"
        ]
    );
    let recovers = |ask: &Ask| {
        if ask.attempt == 0 {
            says(502, &[], "")
        } else {
            says(200, JSON, &ok())
        }
    };
    assert_eq!(
        asked(None, 2, recovers),
        ["POST /mcp initialize", "POST /mcp initialize later"]
    );
}

fn discovered() -> String {
    let result = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"public"}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{DISCOVER_ID},"result":{result}}}"#)
}

#[test]
fn an_opening_discovery_ends_with_what_it_finds_and_goes_on_where_it_finds_nothing() {
    let terms = Terms {
        opening: Opening::Discover,
        ..terms(0)
    };
    assert_eq!(
        asked_under(None, &terms, |_| says(200, JSON, &discovered())),
        ["POST /mcp discover"]
    );
    let legacy = |ask: &Ask| match ask.leg {
        Leg::Discover => says(400, JSON, &error(-32000)),
        _ => says(200, JSON, &ok()),
    };
    assert_eq!(
        asked_under(None, &terms, legacy),
        ["POST /mcp discover", "POST /mcp initialize"]
    );
    assert_eq!(
        asked_under(None, &terms, |_| says(401, &[], "")),
        ["POST /mcp discover"]
    );
}

#[test]
fn a_version_that_is_offered_is_asked_for_once() {
    let terms = Terms {
        opening: Opening::Discover,
        ..terms(0)
    };
    let offer = format!(
        r#"{{"jsonrpc":"2.0","id":{DISCOVER_ID},"error":{{"code":-32022,"message":"no","data":{{"supported":["2027-01-01"],"requested":"x"}}}}}}"#
    );
    let mut versions = Vec::new();
    let log = asked_under(None, &terms, |ask| {
        versions.extend(
            ask.request
                .headers
                .iter()
                .filter(|(name, _)| name == "MCP-Protocol-Version")
                .map(|(_, value)| value.clone()),
        );
        if ask.leg == Leg::Discover {
            says(400, JSON, &offer)
        } else {
            says(200, JSON, &ok())
        }
    });
    assert_eq!(
        log,
        [
            "POST /mcp discover",
            "POST /mcp discover",
            "POST /mcp initialize"
        ]
    );
    assert_eq!(versions, [MODERN_VERSION, "2027-01-01"]);
}
