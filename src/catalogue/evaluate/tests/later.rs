//! One rule broken of what comes after the handshake, and of the modern era.

use super::*;

#[test]
fn breaking_one_rule_after_the_handshake_turns_the_checks_that_name_it() {
    use Break::{Drop, Set, Status};
    let at = |leg: Leg, how: &Break, want: &[&str]| breaks(plain, leg, how, want);
    at(Leg::Initialized, &Status(200), &["notif.202"]);
    at(Leg::Initialized, &Break::Raw(b"{}"), &["notif.202"]);
    at(Leg::Initialized, &Status(400), &[]);
    at(Leg::Close, &Status(500), &["delete.ok-or-405"]);
    at(Leg::Close, &Status(405), &[]);
    at(
        Leg::Ping,
        &Set("/result/x", json!(1)),
        &["ping.empty-result"],
    );
    at(
        Leg::Ping,
        &Break::Instead(Says::json(200, error(crate::mcp::PING_ID, -32601))),
        &["ping.empty-result"],
    );
    at(Leg::Listen, &Status(400), &["get.sse-or-405"]);
    at(Leg::Listen, &Status(200), &["get.sse-or-405"]);
    at(Leg::Tools, &Drop("/result/tools"), &["tools.list-works"]);
    at(
        Leg::Tools,
        &Break::Instead(Says::json(200, error(crate::mcp::TOOLS_ID, -32601))),
        &["tools.list-works"],
    );
    at(Leg::Tools, &Drop("/result/tools/0/name"), &["tools.shape"]);
    at(
        Leg::Tools,
        &Drop("/result/tools/1/inputSchema"),
        &["tools.shape"],
    );
    at(
        Leg::Tools,
        &Set("/result/tools/1/inputSchema/type", json!("string")),
        &["tools.shape"],
    );
    at(
        Leg::Tools,
        &Set(
            "/result/tools/0/inputSchema/properties/a/required",
            json!(true),
        ),
        &["tools.schema-valid"],
    );
    at(
        Leg::Tools,
        &Set(
            "/result/tools/0/inputSchema/properties/a/type",
            json!("float"),
        ),
        &["tools.schema-valid"],
    );
    at(
        Leg::Tools,
        &Set("/result/tools/0/name", json!("a b")),
        &["tools.name-rules"],
    );
    at(
        Leg::Tools,
        &Set("/result/tools/0/name", json!("sub.two")),
        &["tools.name-rules"],
    );
    at(
        Leg::Tools,
        &Set("/result/tools/0/outputSchema/type", json!("array")),
        &["tools.output-schema"],
    );
    at(
        Leg::Tools,
        &Set("/result/nextCursor", Value::Null),
        &["list.cursor-type"],
    );
    breaks(
        older_transport,
        Leg::SseStream,
        &Break::Before(": hello\n\nevent: hello\ndata: x\n\nevent: endpoint\ndata: /messages\n\n"),
        &["sse24.endpoint-first"],
    );
}

#[test]
fn breaking_one_rule_of_the_modern_era_turns_the_checks_that_name_it() {
    use Break::{Drop, Set, Status};
    let at = |leg: Leg, how: &Break, want: &[&str]| breaks(modern, leg, how, want);
    at(
        Leg::Initialize,
        &Drop("/error/data"),
        &["modern-only.names-versions"],
    );
    at(Leg::Initialize, &Status(200), &["modern-only.status"]);
    at(
        Leg::Initialize,
        &Set("/error/code", json!(-32042)),
        &["code.reserved-range"],
    );
    at(
        Leg::Initialize,
        &Set("/error/code", json!(-32004)),
        &["code.legacy-range"],
    );
    let disc = |how: &Break, want: &[&str]| at(Leg::Discover, how, want);
    disc(
        &Break::Instead(Says::json(404, error(crate::mcp::DISCOVER_ID, -32601))),
        &["disc.implemented"],
    );
    disc(&Break::NoHeader("x-accel-buffering"), &["sse.x-accel"]);
    disc(&Drop("/result/resultType"), &["disc.resultType"]);
    disc(
        &Set("/result/resultType", json!("input_required")),
        &["disc.resultType"],
    );
    disc(
        &Drop("/result/supportedVersions"),
        &["disc.supportedVersions"],
    );
    disc(
        &Set("/result/supportedVersions", json!(["2025-11-25"])),
        &["disc.supportedVersions"],
    );
    disc(
        &Set("/result/capabilities/extensions", json!({"x": {}})),
        &["disc.capabilities"],
    );
    disc(
        &Set("/result/capabilities/prompts", json!(false)),
        &["disc.capabilities"],
    );
    disc(
        &Set("/result/capabilities/resources", json!({})),
        &["caps.match"],
    );
    disc(&Drop("/result/ttlMs"), &["disc.ttlMs"]);
    disc(&Set("/result/ttlMs", json!(-1)), &["disc.ttlMs"]);
    disc(&Set("/result/ttlMs", json!(1.5)), &["disc.ttlMs"]);
    disc(
        &Set("/result/cacheScope", json!("all")),
        &["disc.cacheScope"],
    );
}

#[test]
fn breaking_one_rule_of_what_is_beside_the_discovery_turns_the_checks_that_name_it() {
    use Break::{Drop, Header, Set, Status};
    let at = |leg: Leg, how: &Break, want: &[&str]| breaks(modern, leg, how, want);
    let disc = |how: &Break, want: &[&str]| at(Leg::Discover, how, want);
    disc(&Drop("/result/_meta"), &["disc.serverInfo-meta"]);
    disc(
        &Set("/result/serverInfo", json!({"name": "a", "version": "1"})),
        &["disc.rc-serverInfo"],
    );
    disc(
        &Set("/result/_meta/org.mcp~x", json!(1)),
        &["meta.key-names"],
    );
    disc(&Header("mcp-session-id", SESSION), &["disc.no-session"]);
    disc(
        &Break::Before("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n"),
        &["disc.no-server-requests"],
    );
    disc(
        &Break::Before("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"),
        &["disc.no-log-messages"],
    );
    disc(
        &Set("/result/capabilities/logging", json!({})),
        &["dep.features"],
    );
    let tools = |how: &Break, want: &[&str]| at(Leg::Tools, how, want);
    tools(&Drop("/result/resultType"), &["list.cache-fields"]);
    tools(&Drop("/result/cacheScope"), &["list.cache-fields"]);
    let marked = |name: &str, kind: &str| json!({"type": kind, "x-mcp-header": name});
    tools(
        &Set(
            "/result/tools/0/inputSchema/properties/a",
            marked("A", "string"),
        ),
        &[],
    );
    tools(
        &Set(
            "/result/tools/0/inputSchema/properties/a",
            marked("A", "number"),
        ),
        &["tools.x-mcp-header"],
    );
    tools(
        &Set(
            "/result/tools/0/inputSchema/properties/a",
            marked("A b", "string"),
        ),
        &["tools.x-mcp-header"],
    );
    tools(
        &Set(
            "/result/tools/0/inputSchema/properties/a",
            json!({"type": "array", "items": marked("A", "string")}),
        ),
        &["tools.x-mcp-header"],
    );
    at(
        Leg::ToolsAgain,
        &Set("/result/tools/0/name", json!("other")),
        &["tools.deterministic"],
    );
    at(Leg::Listen, &Status(400), &["get.405-modern"]);
    at(
        Leg::Prompts,
        &Set("/error/code", json!(-32602)),
        &["caps.match"],
    );
}
