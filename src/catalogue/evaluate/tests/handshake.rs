//! One rule of the handshake broken, and of the streams and errors it can come in.

use super::*;

#[test]
fn breaking_one_rule_of_the_handshake_turns_the_checks_that_name_it() {
    use Break::{Drop, Header, Instead, Set, Status};
    let at = |how: &Break, want: &[&str]| breaks(plain, Leg::Initialize, how, want);
    at(&Header("content-type", "text/html"), &["init.content-type"]);
    at(&Break::NoHeader("content-type"), &["init.content-type"]);
    let mut array = plain_opening();
    array.message = array.message.map(|it| json!([it]));
    at(&Instead(array), &["init.single-object"]);
    at(&Set("/jsonrpc", json!(2.0)), &["env.jsonrpc"]);
    at(&Drop("/jsonrpc"), &["env.jsonrpc"]);
    at(&Set("/id", json!("7341")), &["env.id-echo"]);
    at(&Set("/id", json!(1)), &["env.id-echo"]);
    at(&Drop("/id"), &["env.id-echo"]);
    at(&Set("/error", Value::Null), &["env.result-xor-error"]);
    at(
        &Set("/error", json!({"code": 1, "message": "x"})),
        &["env.result-xor-error"],
    );
    at(&Drop("/result"), &["env.result-xor-error"]);
    at(&Set("/result", json!("fine")), &["env.result-object"]);
    for member in ["/result/protocolVersion", "/result/capabilities"] {
        at(&Drop(member), &["init.required-fields"]);
        at(&Set(member, json!(7)), &["init.required-fields"]);
    }
    for member in ["/result/serverInfo", "/result/serverInfo/name"] {
        at(&Drop(member), &["init.required-fields"]);
    }
    at(
        &Set("/result/serverInfo/version", Value::Null),
        &["init.required-fields"],
    );
    for member in [
        "/result/instructions",
        "/result/serverInfo/title",
        "/result/serverInfo/websiteUrl",
        "/result/serverInfo/description",
        "/result/serverInfo/icons",
    ] {
        at(&Set(member, Value::Null), &["init.optional-types"]);
    }
    at(
        &Drop("/result/serverInfo/icons/0/src"),
        &["init.optional-types"],
    );
    at(
        &Set("/result/capabilities/logging", json!(true)),
        &["init.capability-types"],
    );
    at(
        &Set("/result/capabilities/tools/listChanged", json!("yes")),
        &["init.capability-types"],
    );
    for version in ["2026-07-28", "2024-10-07", "1.0"] {
        at(
            &Set("/result/protocolVersion", json!(version)),
            &["init.version-echo"],
        );
    }
    at(
        &Header("mcp-session-id", "a b-not-visible-ascii"),
        &["sess.ascii"],
    );
    at(&Header("mcp-session-id", "1234567"), &["sess.strength"]);
    at(
        &Header("mcp-session-id", "12345678901234567890"),
        &["sess.strength"],
    );
    at(
        &Set("/result/_meta", json!({"com.mcp.x/y": 1, "ok": 2})),
        &["meta.key-names"],
    );
    at(
        &Set("/result/_meta", json!({"-bad-/x": 1})),
        &["meta.key-names"],
    );
    at(&Status(200), &[]);
}

fn plain_opening() -> Says {
    Says::json(200, result(crate::mcp::INITIALIZE_ID, granted())).with("mcp-session-id", SESSION)
}

#[test]
fn breaking_one_rule_of_a_stream_turns_the_checks_that_name_it() {
    let at = |how: &Break, want: &[&str]| breaks(streaming, Leg::Initialize, how, want);
    at(&Break::Before(""), &["sse.priming"]);
    at(&Break::Before("id: 1\ndata: {}\n\n"), &["sse.priming"]);
    at(&Break::End(BodyEnd::Left), &["sse.terminates"]);
    at(
        &Break::Before(
            "id: 1\ndata: \n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n",
        ),
        &["sse.no-early-requests"],
    );
    at(
        &Break::Before(
            "id: 1\ndata: \n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n",
        ),
        &[],
    );
    at(&Break::Raw(b"id: 1\ndata: \n\n"), &["sse.has-response"]);
    breaks(
        plain,
        Leg::Initialize,
        &Break::Raw(b"{\"jsonrpc\":\"2.0\",\"id\":7341,\"result\":{\"x\":\"\xE9\"}}"),
        &["enc.utf8"],
    );
}

#[test]
fn a_refusal_is_held_to_the_shape_of_errors() {
    let refusing = |error: Value| {
        let terms = terms(Profile::Compliance, BUDGET);
        let exchanges = inquire(&terms, |ask| {
            let mut message = json!({"jsonrpc": "2.0", "id": id_of(ask), "error": error.clone()});
            if let Some(id) = error.get("id") {
                message["id"] = id.clone();
            }
            Says::json(200, message)
        });
        broken(&exchanges)
    };
    let want = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(refusing(json!({"code": -32603, "message": "x"})), want(&[]));
    assert_eq!(
        refusing(json!({"code": -32603})),
        want(&["env.error-shape"])
    );
    assert_eq!(
        refusing(json!({"code": "E1", "message": "x"})),
        want(&["env.error-shape"])
    );
    assert_eq!(
        refusing(json!({"code": -32603, "message": "x", "id": null})),
        want(&["env.id-echo"])
    );
    assert_eq!(
        refusing(json!({"code": -32602, "message": "x", "data": {"supported": ["2025-06-18"]}})),
        want(&["init.version-no-error"])
    );
    assert_eq!(
        refusing(json!({"code": -32602, "message": "Unsupported protocol version"})),
        want(&["init.version-no-error"])
    );
    assert_eq!(
        refusing(json!({"code": -32001, "message": "Unauthorized"})),
        want(&["auth.refusal-is-401"])
    );
    assert_eq!(
        refusing(json!({"code": 401, "message": "no"})),
        want(&["auth.refusal-is-401"])
    );
}

#[test]
fn another_version_in_answer_is_a_pass_only_where_it_differs() {
    let terms = terms(Profile::Census, BUDGET);
    let echoed = statuses(&inquire(&terms, plain));
    assert_eq!(echoed["init.version-no-error"], "not_applicable:version");
    let offered = statuses(&inquire(&terms, older("2025-06-18")));
    assert_eq!(offered["init.version-no-error"], "pass");
}
