use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::catalogue::plan;
use crate::exchange::{Answer, Body, Connection, LocalFault, Stage, Timing};
use crate::inquiry::{self, Ask, BUDGET, Next, Profile, Terms};
use crate::mcp::{ASKED_VERSION, Identity};
use serde_json::{Value, json};
use url::Url;

/// What a scripted server says to one request.
#[derive(Debug, Clone)]
struct Says {
    status: u16,
    headers: Vec<(String, String)>,
    /// The JSON body, or the last event of a stream.
    message: Option<Value>,
    /// Events before the message, where it comes in a stream.
    before: Option<String>,
    /// The bytes, instead of all that.
    raw: Option<Vec<u8>>,
    end: BodyEnd,
    fault: Option<Fault>,
}

impl Says {
    fn json(status: u16, message: Value) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            message: Some(message),
            before: None,
            raw: None,
            end: BodyEnd::Complete,
            fault: None,
        }
    }

    fn stream(before: &str, message: Value) -> Self {
        Self {
            headers: vec![("content-type".into(), EVENTS.into())],
            before: Some(before.into()),
            ..Self::json(200, message)
        }
    }

    fn bare(status: u16) -> Self {
        Self {
            headers: Vec::new(),
            message: None,
            ..Self::json(status, Value::Null)
        }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn reply(self) -> Reply {
        if let Some(fault) = self.fault {
            return Reply::Fault(fault);
        }
        let bytes = self.raw.unwrap_or_else(|| {
            let text = self.message.map(|it| it.to_string()).unwrap_or_default();
            match self.before {
                Some(before) if text.is_empty() => before.into_bytes(),
                Some(before) => format!("{before}event: message\ndata: {text}\n\n").into_bytes(),
                None => text.into_bytes(),
            }
        });
        Reply::Answer(Answer {
            version: "HTTP/1.1".into(),
            status: self.status,
            headers: self.headers,
            body: Body(bytes),
            end: self.end,
        })
    }
}

const EVENTS: &str = "text/event-stream";
const PRIMED: &str = "id: 1\nretry: 1000\ndata: \n\n";
const SESSION: &str = "3b0f7c1e-77aa-4a58-9a3e-0f4a3f6f6f01";
const HERE: &str = "https://a.example/mcp";

fn target() -> Target {
    Target {
        endpoint: 0,
        url: Url::parse(HERE).unwrap(),
        declared: None,
    }
}

fn terms(profile: Profile, budget: usize) -> Terms {
    Terms {
        identity: Identity { contact: None },
        version: ASKED_VERSION.into(),
        confirm: 0,
        profile,
        budget,
        opening: inquiry::Opening::Initialize,
        own: None,
    }
}

/// Runs an inquiry against a scripted server.
fn inquire(terms: &Terms, server: impl Fn(&Ask) -> Says) -> Vec<Exchange> {
    let target = target();
    let mut exchanges: Vec<Exchange> = Vec::new();
    for _ in 0..40 {
        let ask = match inquiry::next(&target, &exchanges, terms) {
            Next::Ask(ask) | Next::Later(ask) => *ask,
            Next::Done(_) => return exchanges,
        };
        let reply = server(&ask).reply();
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
    panic!("an inquiry ends");
}

fn legs(exchanges: &[Exchange]) -> String {
    let names: Vec<&str> = exchanges.iter().map(|it| it.leg.name()).collect();
    names.join(" ")
}

/// The statuses, `name` or `name:why`, by check.
fn statuses(exchanges: &[Exchange]) -> BTreeMap<&'static str, String> {
    evaluate(&target(), exchanges)
        .into_iter()
        .map(|it| {
            let why = it.status.why().map(|why| format!(":{why}"));
            let text = format!("{}{}", it.status, why.unwrap_or_default());
            (it.check.name(), text)
        })
        .collect()
}

/// The checks that are not held to.
fn broken(exchanges: &[Exchange]) -> BTreeSet<&'static str> {
    evaluate(&target(), exchanges)
        .into_iter()
        .filter(|it| matches!(it.status, Status::Fail | Status::Warn))
        .map(|it| it.check.name())
        .collect()
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is called with what was just made"
)]
fn result(id: i64, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error(id: i64, code: i64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}})
}

fn id_of(ask: &Ask) -> i64 {
    let body: Value = serde_json::from_str(&ask.request.body).unwrap_or_default();
    body["id"].as_i64().unwrap_or_default()
}

fn tools() -> Value {
    json!([
        {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
         "outputSchema": {"type": "object"}},
        {"name": "sub.two", "inputSchema": {"type": "object"}},
    ])
}

fn granted() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
           "serverInfo": {"name": "a", "version": "1", "title": "A", "icons": [{"src": "https://a.example/i.png"}]},
           "instructions": "none", "_meta": {"com.example/build": "7"}})
}

/// A good server of 2025-11-25 that answers in one object.
fn plain(ask: &Ask) -> Says {
    let id = id_of(ask);
    match ask.leg {
        Leg::Initialize => Says::json(200, result(id, granted())).with("mcp-session-id", SESSION),
        Leg::Initialized => Says::bare(202),
        Leg::Ping => Says::json(200, result(id, json!({}))),
        Leg::Tools => Says::json(200, result(id, json!({"tools": tools()}))),
        Leg::Discover => Says::json(400, error(id, -32000)),
        Leg::Close => Says::bare(200),
        _ => Says::bare(405),
    }
}

/// The same, in event streams.
fn streaming(ask: &Ask) -> Says {
    let said = plain(ask);
    match ask.leg {
        Leg::Initialize => Says::stream(PRIMED, said.message.clone().unwrap_or_default())
            .with("mcp-session-id", SESSION),
        _ => said,
    }
}

/// The same, with an older revision.
fn older(version: &str) -> impl Fn(&Ask) -> Says {
    move |ask| {
        let mut said = plain(ask);
        if ask.leg == Leg::Initialize
            && let Some(message) = &mut said.message
        {
            message["result"]["protocolVersion"] = json!(version);
        }
        said
    }
}

fn complete(mut members: Value) -> Value {
    members["resultType"] = json!("complete");
    members["ttlMs"] = json!(0);
    members["cacheScope"] = json!("private");
    members["_meta"] = json!({"io.modelcontextprotocol/serverInfo": {"name": "a", "version": "1"}});
    members
}

/// A good server of 2026-07-28 and nothing else.
fn modern(ask: &Ask) -> Says {
    let id = id_of(ask);
    match ask.leg {
        Leg::Initialize => {
            let mut refusal = error(id, -32022);
            refusal["error"]["data"] =
                json!({"supported": ["2026-07-28"], "requested": "2025-11-25"});
            Says::json(400, refusal)
        }
        Leg::Discover => {
            let members = json!({"supportedVersions": ["2026-07-28"],
                                 "capabilities": {"tools": {}, "extensions": {"com.example/x": {}}}});
            Says::stream("", result(id, complete(members))).with("x-accel-buffering", "no")
        }
        Leg::Tools | Leg::ToolsAgain => {
            Says::json(200, result(id, complete(json!({"tools": tools()}))))
        }
        Leg::Prompts | Leg::Resources => Says::json(404, error(id, -32601)),
        _ => Says::bare(405),
    }
}

/// A server of both eras.
fn dual(ask: &Ask) -> Says {
    if super::super::heard::is_modern(&exchange_of(ask)) {
        modern(ask)
    } else {
        plain(ask)
    }
}

fn exchange_of(ask: &Ask) -> Exchange {
    Exchange {
        endpoint: 0,
        attempt: 0,
        leg: ask.leg,
        started_at: jiff::Timestamp::UNIX_EPOCH,
        request: ask.request.clone(),
        reply: Reply::Fault(Fault::Local(LocalFault::Instrument)),
        timing: Timing::default(),
        connection: Connection::default(),
    }
}

const METADATA: &str = "https://a.example/.well-known/oauth-protected-resource/mcp";
const ISSUER: &str = "https://auth.example/t";

/// A good server that wants a token.
fn gated(ask: &Ask) -> Says {
    match ask.leg {
        Leg::ResourceMetadata => Says::json(
            200,
            json!({"resource": HERE, "authorization_servers": [ISSUER]}),
        ),
        Leg::IssuerMetadata => Says::json(
            200,
            json!({"issuer": ISSUER, "authorization_endpoint": "https://auth.example/a",
                   "token_endpoint": "https://auth.example/t", "code_challenge_methods_supported": ["S256"],
                   "client_id_metadata_document_supported": true}),
        ),
        _ => Says::bare(401).with(
            "www-authenticate",
            &format!("Bearer resource_metadata=\"{METADATA}\", scope=\"read\""),
        ),
    }
}

/// A good server of HTTP+SSE.
fn older_transport(ask: &Ask) -> Says {
    match ask.leg {
        Leg::SseStream => {
            let mut answer = granted();
            answer["protocolVersion"] = json!("2024-11-05");
            Says {
                end: BodyEnd::Left,
                ..Says::stream(
                    "event: endpoint\ndata: /messages?s=1\n\n",
                    result(crate::mcp::INITIALIZE_ID, answer),
                )
            }
        }
        _ => Says::bare(404),
    }
}

type Server = fn(&Ask) -> Says;

/// One rule of a good server broken.
enum Break {
    /// A member of the message, by its path, set to a value.
    Set(&'static str, Value),
    /// A member taken out.
    Drop(&'static str),
    Status(u16),
    Header(&'static str, &'static str),
    NoHeader(&'static str),
    Raw(&'static [u8]),
    /// Events before the message.
    Before(&'static str),
    End(BodyEnd),
    /// An answer instead.
    Instead(Says),
}

impl Break {
    fn apply(&self, said: &mut Says) {
        match self {
            Self::Set(path, value) => {
                let (holder, member) = path.rsplit_once('/').unwrap();
                let message = said.message.as_mut().unwrap();
                match message.pointer_mut(holder).unwrap() {
                    Value::Array(items) => items[member.parse::<usize>().unwrap()] = value.clone(),
                    holder => holder[member] = value.clone(),
                }
            }
            Self::Drop(path) => {
                let (holder, member) = path.rsplit_once('/').unwrap();
                let message = said.message.as_mut().unwrap();
                let holder = message
                    .pointer_mut(holder)
                    .unwrap()
                    .as_object_mut()
                    .unwrap();
                holder.shift_remove(member).unwrap();
            }
            Self::Status(status) => said.status = *status,
            Self::Header(name, value) => {
                said.headers.retain(|(key, _)| key != name);
                said.headers.push(((*name).into(), (*value).into()));
            }
            Self::NoHeader(name) => said.headers.retain(|(key, _)| key != name),
            Self::Raw(bytes) => said.raw = Some(bytes.to_vec()),
            Self::Before(events) => said.before = Some((*events).into()),
            Self::End(end) => said.end = *end,
            Self::Instead(other) => *said = other.clone(),
        }
    }
}

/// Breaks one rule, and expects that exactly these checks tell.
#[track_caller]
fn breaks(server: Server, leg: Leg, how: &Break, want: &[&str]) {
    let terms = terms(Profile::Compliance, BUDGET);
    let exchanges = inquire(&terms, |ask| {
        let mut said = server(ask);
        if ask.leg == leg {
            how.apply(&mut said);
        }
        said
    });
    let want: BTreeSet<&str> = want.iter().copied().collect();
    assert_eq!(broken(&exchanges), want, "{leg} of {}", legs(&exchanges));
}

#[test]
fn good_servers_break_nothing() {
    let terms = terms(Profile::Compliance, BUDGET);
    let servers: [(Server, &str); 6] = [
        (
            plain,
            "initialize initialized tools_list ping listen discover close",
        ),
        (
            streaming,
            "initialize initialized tools_list ping listen discover close",
        ),
        (
            modern,
            "initialize discover tools_list prompts_list resources_list tools_list_again listen",
        ),
        (
            dual,
            "initialize initialized tools_list ping listen discover tools_list close",
        ),
        (gated, "initialize resource_metadata issuer_metadata"),
        (older_transport, "initialize sse_stream"),
    ];
    let mut passed = BTreeSet::new();
    for (server, want) in servers {
        let exchanges = inquire(&terms, server);
        assert_eq!(legs(&exchanges), want);
        assert_eq!(broken(&exchanges), BTreeSet::new(), "{want}");
        passed.extend(
            statuses(&exchanges)
                .into_iter()
                .filter(|(_, status)| status == "pass")
                .map(|(check, _)| check),
        );
    }
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let exchanges = inquire(&terms, older(version));
        assert_eq!(broken(&exchanges), BTreeSet::new(), "{version}");
        passed.extend(
            statuses(&exchanges)
                .into_iter()
                .filter(|(_, status)| status == "pass")
                .map(|(check, _)| check),
        );
    }
    // Whatever a good server can show is shown by one of these.
    let unseen: Vec<&str> = rules()
        .filter(|it| !it.is_intrusive() && !passed.contains(it.id.name()))
        .map(|it| it.id.name())
        .collect();
    assert_eq!(
        unseen,
        ["auth.no-offline-access", "as.iss-param"],
        "nothing negotiates 2026-07-28 at a gate"
    );
}

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

#[test]
fn breaking_one_rule_of_a_gate_turns_the_checks_that_name_it() {
    let challenge = |value: &'static str| Break::Header("www-authenticate", value);
    let at = |how: &Break, want: &[&str]| breaks(gated, Leg::Initialize, how, want);
    at(
        &Break::NoHeader("www-authenticate"),
        &["auth.www-authenticate"],
    );
    at(&challenge("Bearer scope=\"x\""), &[]);
    at(
        &challenge(
            "Bearer resource_metadata=\"https://a.example/.well-known/oauth-protected-resource/mcp\"",
        ),
        &["auth.scope-param"],
    );
    at(
        &challenge("Bearer scope=\"x\", error=\"invalid_token\""),
        &["auth.no-error-without-creds"],
    );
    at(&Break::Status(403), &["auth.refusal-is-401"]);
    at(
        &challenge("Bearer scope=\"x\", resource_metadata=\"http://10.0.0.7/x\""),
        &["prm.fetch"],
    );
    let document = |how: &Break, want: &[&str]| breaks(gated, Leg::ResourceMetadata, how, want);
    document(&Break::Status(404), &["prm.fetch"]);
    document(&Break::Header("content-type", "text/html"), &["prm.fetch"]);
    document(
        &Break::Set("/resource", json!("https://a.example/")),
        &["prm.resource-match"],
    );
    document(&Break::Drop("/resource"), &["prm.resource-match"]);
    document(
        &Break::Set("/authorization_servers", json!([])),
        &["prm.authorization-servers"],
    );
    document(
        &Break::Set("/authorization_servers", json!(["http://10.0.0.7/"])),
        &["as.metadata"],
    );
    let issuer = |how: &Break, want: &[&str]| breaks(gated, Leg::IssuerMetadata, how, want);
    issuer(&Break::Status(404), &["as.metadata"]);
    issuer(
        &Break::Set("/issuer", json!("https://auth.example/t/")),
        &["as.issuer-match"],
    );
    issuer(
        &Break::Drop("/code_challenge_methods_supported"),
        &["as.pkce"],
    );
    issuer(
        &Break::Set("/code_challenge_methods_supported", json!(["plain"])),
        &["as.pkce"],
    );
    issuer(
        &Break::Set("/token_endpoint", json!("http://auth.example/t")),
        &["as.https"],
    );
    issuer(
        &Break::Drop("/client_id_metadata_document_supported"),
        &["as.cimd"],
    );
}

#[test]
fn a_gate_over_http_is_told() {
    let mut target = target();
    target.url = Url::parse("http://a.example/mcp").unwrap();
    let terms = terms(Profile::Census, BUDGET);
    let ask = inquiry::next(&target, &[], &terms);
    let Next::Ask(ask) = ask else { panic!() };
    let exchange = Exchange {
        reply: gated(&ask).reply(),
        ..exchange_of(&ask)
    };
    assert_eq!(broken(&[exchange]), BTreeSet::from(["tls.https"]));
}

#[test]
fn a_gate_is_held_to_the_revision_that_was_asked_for() {
    let asking = |version: &str| Terms {
        version: version.into(),
        ..terms(Profile::Compliance, BUDGET)
    };
    let offline = |ask: &Ask| match ask.leg {
        Leg::Initialize => {
            Says::bare(401).with("www-authenticate", "Bearer scope=\"offline_access\"")
        }
        _ => gated(ask),
    };
    assert_eq!(
        broken(&inquire(&asking("2026-07-28"), offline)),
        BTreeSet::from(["auth.no-offline-access", "as.iss-param"])
    );
    assert_eq!(
        broken(&inquire(&asking("2025-11-25"), offline)),
        BTreeSet::new()
    );
    assert_eq!(
        broken(&inquire(&asking("2025-06-18"), offline)),
        BTreeSet::from(["auth.resource-metadata-param"])
    );
    let good = |ask: &Ask| {
        let mut said = gated(ask);
        if let (Leg::IssuerMetadata, Some(message)) = (ask.leg, &mut said.message) {
            message["authorization_response_iss_parameter_supported"] = json!(true);
        }
        said
    };
    let good = statuses(&inquire(&asking("2026-07-28"), good));
    assert_eq!(good["as.iss-param"], "pass");
    assert_eq!(good["auth.no-offline-access"], "pass");
}

#[test]
fn the_way_in_is_looked_for_in_order_and_named() {
    const INSERTED: &str = "a.example/.well-known/oauth-protected-resource/mcp";
    const ROOT: &str = "a.example/.well-known/oauth-protected-resource";
    const SERVER: &str = "auth.example/.well-known/oauth-authorization-server/t";
    let looked = |challenge: Option<&str>, found: Option<&str>, issuer: bool| {
        let exchanges = inquire(&terms(Profile::Compliance, BUDGET), |ask| match ask.leg {
            Leg::ResourceMetadata if Some(ask.request.url.as_str()) != found => Says::bare(404),
            Leg::IssuerMetadata if !issuer => Says::bare(404),
            Leg::Initialize => {
                let said = Says::bare(401);
                match challenge {
                    Some(it) => said.with("www-authenticate", it),
                    None => said,
                }
            }
            _ => gated(ask),
        });
        let urls: Vec<String> = exchanges
            .iter()
            .skip(1)
            .map(|it| it.request.url.replace("https://", ""))
            .collect();
        (
            discovered(&exchanges).map_or("", Discovery::name),
            urls.join(" "),
        )
    };
    let named = "Basic realm=\"x\", Bearer resource_metadata=\"https://a.example/prm\"";
    assert_eq!(
        looked(Some(named), Some("https://a.example/prm"), true),
        ("oauth_full", format!("a.example/prm {SERVER}"))
    );
    assert_eq!(
        looked(Some(named), None, true),
        (
            "oauth_header_broken_prm",
            format!("a.example/prm {INSERTED} {ROOT}")
        )
    );
    assert_eq!(
        looked(Some("Bearer"), Some(METADATA), true),
        ("oauth_prm_wellknown_only", format!("{INSERTED} {SERVER}"))
    );
    assert_eq!(
        looked(Some("Bearer"), Some(METADATA), false),
        (
            "oauth_no_as_metadata",
            format!(
                "{INSERTED} {SERVER} auth.example/.well-known/openid-configuration/t auth.example/t/.well-known/openid-configuration"
            )
        )
    );
    assert_eq!(
        looked(Some("Basic realm=\"x\""), None, true).0,
        "www_auth_other"
    );
    assert_eq!(
        looked(None, None, true),
        ("bare_401", format!("{INSERTED} {ROOT}"))
    );
}

#[test]
fn what_a_stranger_points_to_is_not_asked_unless_it_is_public_and_https() {
    for metadata in [
        "http://b.example/x",
        "https://127.0.0.1/x",
        "https://10.1.2.3/x",
        "https://localhost/x",
        "https://u:p@b.example/x",
        "ftp://b.example/x",
    ] {
        let challenge = format!("Bearer resource_metadata=\"{metadata}\"");
        let exchanges = inquire(&terms(Profile::Compliance, BUDGET), |ask| match ask.leg {
            Leg::Initialize => Says::bare(401).with("www-authenticate", &challenge),
            _ => Says::bare(404),
        });
        assert!(
            exchanges
                .iter()
                .all(|it| it.request.url.starts_with("https://a.example/")),
            "{metadata}"
        );
        assert_eq!(statuses(&exchanges)["prm.fetch"], "fail", "{metadata}");
    }
}

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

#[test]
fn a_check_is_applied_to_the_revision_that_was_negotiated() {
    let terms = terms(Profile::Compliance, BUDGET);
    let with = |version: &'static str, path: &'static str, value: Value| {
        let exchanges = inquire(&terms, |ask| {
            let mut said = older(version)(ask);
            if ask.leg == Leg::Initialize {
                Break::Set(path, value.clone()).apply(&mut said);
            }
            said
        });
        broken(&exchanges).into_iter().collect::<Vec<_>>()
    };
    let title = "/result/serverInfo/title";
    assert_eq!(with("2025-03-26", title, json!(1)), [""; 0]);
    assert_eq!(with("2025-06-18", title, json!(1)), ["init.optional-types"]);
    let completions = "/result/capabilities/completions";
    assert_eq!(with("2024-11-05", completions, json!(1)), [""; 0]);
    assert_eq!(
        with("2025-03-26", completions, json!(1)),
        ["init.capability-types"]
    );
    let tasks = "/result/capabilities/tasks";
    assert_eq!(with("2025-06-18", tasks, json!(1)), [""; 0]);
    assert_eq!(
        with("2025-11-25", tasks, json!(1)),
        ["init.capability-types"]
    );
    let none = statuses(&inquire(&terms, older("2024-11-05")));
    for check in [
        "init.content-type",
        "sess.ascii",
        "enc.utf8",
        "notif.202",
        "get.sse-or-405",
    ] {
        assert_eq!(none[check], "not_applicable:revision", "{check}");
    }
}

#[test]
fn what_was_not_seen_is_told_apart_from_what_does_not_apply() {
    let census = terms(Profile::Census, BUDGET);
    let asked = statuses(&inquire(&census, plain));
    assert_eq!(asked["ping.empty-result"], "not_observed:not_asked");
    assert_eq!(asked["disc.implemented"], "not_observed:not_asked");
    assert_eq!(asked["sse.priming"], "not_applicable:framing");
    assert_eq!(asked["delete.ok-or-405"], "pass");
    let behind = statuses(&inquire(&census, gated));
    assert_eq!(behind["env.jsonrpc"], "not_observed:gated");
    assert_eq!(behind["prm.fetch"], "not_observed:not_asked");
    let tight = statuses(&inquire(&terms(Profile::Compliance, 4), plain));
    assert_eq!(tight["notif.202"], "pass");
    assert_eq!(tight["ping.empty-result"], "not_observed:budget");
    let silent = |_: &Ask| Says {
        fault: Some(Fault::Deadline(Stage::FirstByte)),
        ..Says::bare(200)
    };
    let late = statuses(&inquire(&census, silent));
    assert!(
        late.values()
            .all(|it| it == "not_observed:timed_out" || it == "not_applicable:revision"),
        "{late:?}"
    );
    let page = |_: &Ask| Says {
        raw: Some(b"<!doctype html><title>x</title>".to_vec()),
        ..Says::bare(200)
    };
    let page = inquire(&census, page);
    assert_eq!(
        broken(&page),
        BTreeSet::new(),
        "a web page is no server to be held to this"
    );
}

#[test]
fn a_server_that_is_asked_to_discover_first_is_held_to_the_same() {
    let first = Terms {
        opening: inquiry::Opening::Discover,
        ..terms(Profile::Compliance, BUDGET)
    };
    let found = inquire(&first, modern);
    assert_eq!(
        legs(&found),
        "discover tools_list prompts_list resources_list tools_list_again"
    );
    assert_eq!(broken(&found), BTreeSet::new());
    // It may have a handshake too: nobody asked for one.
    for check in ["modern-only.status", "disc.no-session", "get.405-modern"] {
        assert_eq!(statuses(&found)[check], "not_observed:not_asked", "{check}");
    }
    let fallen_back = inquire(&first, plain);
    assert_eq!(
        legs(&fallen_back),
        "discover initialize initialized tools_list ping listen close"
    );
    assert_eq!(broken(&fallen_back), BTreeSet::new());
    assert_eq!(
        broken(&inquire(&first, gated)),
        BTreeSet::from(["as.iss-param"]),
        "2026-07-28 was asked for"
    );
}

#[test]
fn the_budget_holds_and_the_session_is_closed_last() {
    for budget in 0..12 {
        let exchanges = inquire(&terms(Profile::Compliance, budget), dual);
        assert!(exchanges.len() <= budget.max(2), "{}", legs(&exchanges));
        assert_eq!(exchanges.last().unwrap().leg, Leg::Close);
    }
    let whole = inquire(&terms(Profile::Compliance, 20), dual);
    assert_eq!(
        legs(&whole),
        "initialize initialized tools_list ping listen discover tools_list prompts_list resources_list tools_list_again \
         close"
    );
    for check in ["list.cache-fields", "caps.match", "tools.deterministic"] {
        assert_eq!(statuses(&whole)[check], "pass", "{check}");
    }
}

#[test]
fn pages_are_followed_as_far_as_the_budget_goes_and_in_no_circle() {
    // A page has the next one's number for its cursor; the fourth leads back.
    let paged = |ask: &Ask| {
        let mut said = plain(ask);
        if ask.leg == Leg::Tools {
            let body: Value = serde_json::from_str(&ask.request.body).unwrap();
            let here: u32 = body["params"]["cursor"]
                .as_str()
                .map_or(0, |it| it.parse().unwrap());
            let tool = json!({"name": format!("t{here}"), "inputSchema": {"type": "object"}});
            let next = if here < 3 { here + 1 } else { 1 };
            said.message = Some(result(
                id_of(ask),
                json!({"tools": [tool], "nextCursor": next.to_string()}),
            ));
        }
        said
    };
    let few = inquire(&terms(Profile::Compliance, 9), paged);
    assert_eq!(
        legs(&few),
        "initialize initialized tools_list ping listen discover tools_list tools_list close"
    );
    let detail = |exchanges: &[Exchange]| {
        let told = evaluate(&target(), exchanges);
        let found = told
            .iter()
            .find(|it| it.check == CheckId::ToolsListWorks)
            .unwrap();
        (found.status, found.detail.clone())
    };
    assert_eq!(
        detail(&few),
        (Status::Pass, "3 tools, and more pages".to_owned())
    );
    let all = inquire(&terms(Profile::Compliance, 30), paged);
    assert_eq!(all.iter().filter(|it| it.leg == Leg::Tools).count(), 4);
    let ids: BTreeSet<i64> = all
        .iter()
        .filter_map(|it| super::super::heard::id_of(&it.request))
        .collect();
    let asked = all.iter().filter(|it| it.request.body.contains("\"id\""));
    assert_eq!(ids.len(), asked.count(), "no id is used twice in a session");
}

#[test]
fn what_is_wrong_on_purpose_is_asked_of_ones_own_servers_alone() {
    let asking = |host: &str, budget: usize| Terms {
        own: Some(crate::catalogue::Own {
            nets: Vec::new(),
            hosts: vec![host.into()],
        }),
        ..terms(Profile::Compliance, budget)
    };
    let odd = |exchanges: &[Exchange]| {
        let odd = exchanges.iter().filter(|it| it.leg == Leg::Intrusive);
        odd.count()
    };
    let mine = inquire(&asking("a.example", 40), plain);
    assert_eq!(odd(&mine), 8, "{}", legs(&mine));
    assert!(legs(&mine).ends_with("close intrusive"), "{}", legs(&mine));
    assert_eq!(odd(&inquire(&asking("b.example", 40), plain)), 0);
    assert_eq!(odd(&inquire(&terms(Profile::Compliance, 40), plain)), 0);
    // A redirect to somebody else's server takes nothing odd along.
    let moved = inquire(&asking("a.example", 40), |ask| {
        if ask.request.url == HERE {
            Says::bare(307).with("location", "https://b.example/mcp")
        } else {
            plain(ask)
        }
    });
    assert!(moved.len() > 4, "{}", legs(&moved));
    assert_eq!(odd(&moved), 0, "{}", legs(&moved));
    // The budget holds for them too, and what it left out is told as such.
    let few = inquire(&asking("a.example", 10), plain);
    assert_eq!((few.len(), odd(&few)), (10, 3), "{}", legs(&few));
    assert_eq!(statuses(&few)["neg.terminated-404"], "not_observed:budget");
}

#[test]
fn a_server_that_has_enough_is_left_alone() {
    let busy = inquire(&terms(Profile::Compliance, BUDGET), |ask| match ask.leg {
        Leg::Tools => Says::bare(429),
        _ => plain(ask),
    });
    assert_eq!(legs(&busy), "initialize initialized tools_list close");
    let silent = inquire(&terms(Profile::Compliance, BUDGET), |ask| match ask.leg {
        Leg::Initialized => Says {
            fault: Some(Fault::Deadline(Stage::FirstByte)),
            ..Says::bare(200)
        },
        _ => plain(ask),
    });
    assert_eq!(legs(&silent), "initialize initialized close");
    assert!(plan::next(&busy, &terms(Profile::Compliance, 99), 99).is_none());
}

#[test]
fn the_session_of_the_handshake_is_the_one_that_counts() {
    let exchanges = inquire(&terms(Profile::Compliance, BUDGET), |ask| {
        let minted = "7d0d6f2e-0000-4000-8000-0f4a3f6f6f02";
        let closes_minted = ask.request.headers.iter().any(|(_, value)| value == minted);
        match ask.leg {
            Leg::Discover => plain(ask).with("mcp-session-id", minted),
            Leg::Close if closes_minted => Says::bare(404),
            _ => plain(ask),
        }
    });
    assert!(legs(&exchanges).ends_with("discover close close"));
    assert_eq!(statuses(&exchanges)["delete.ok-or-405"], "pass");
}

#[test]
fn the_older_transport_is_held_to_its_own_rule_whatever_is_negotiated_over_it() {
    let exchanges = inquire(&terms(Profile::Census, BUDGET), |ask| {
        let mut said = older_transport(ask);
        if let Some(message) = &mut said.message {
            message["result"]["protocolVersion"] = json!("2025-11-25");
        }
        said
    });
    let told = statuses(&exchanges);
    assert_eq!(told["sse24.endpoint-first"], "pass");
    assert_eq!(told["notif.202"], "not_observed:not_asked");
}

#[test]
fn a_document_cannot_send_the_delete_elsewhere() {
    let exchanges = inquire(&terms(Profile::Compliance, BUDGET), |ask| {
        gated(ask).with(
            "mcp-session-id",
            if ask.leg.is_document() { "evil" } else { "" },
        )
    });
    assert!(exchanges.iter().all(|it| it.leg != Leg::Close));
}

proptest::proptest! {
    #[test]
    fn any_answers_are_told_of(
        status in 100u16..600,
        body in "(\\{\"jsonrpc\":\"2.0\",\"id\":73[0-9]{2},\"result\":\\{(\"tools\":\\[[0-9]?\\])?\\}\\}|[ -~]{0,40})",
        leg in 0usize..Leg::ALL.len(),
        media in "(application/json|text/event-stream|)",
    ) {
        let exchange = |leg: Leg| Exchange {
            reply: Says { raw: Some(body.clone().into_bytes()), ..Says::bare(status).with("content-type", &media) }.reply(),
            ..exchange_of(&Ask {
                attempt: 0, leg, wait_ms: 0, half_time: false, version: String::new(),
                request: Identity { contact: None }.discover(&Url::parse(HERE).unwrap(), "2026-07-28"),
            })
        };
        let exchanges = [exchange(Leg::Initialize), exchange(Leg::ALL[leg])];
        let told = evaluate(&target(), &exchanges);
        let is_own = Leg::ALL[leg] == Leg::Intrusive;
        proptest::prop_assert_eq!(told.len(), rules().filter(|it| is_own || !it.is_intrusive()).count());
        let _ = plan::next(&exchanges, &terms(Profile::Compliance, BUDGET), BUDGET);
    }
}
