//! Scripted servers that are good, and one rule of them broken at a time: exactly the checks that name it tell.

mod asked;
mod gate;
mod handshake;
mod later;

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
    if crate::catalogue::heard::is_modern(&exchange_of(ask)) {
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
