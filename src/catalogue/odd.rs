//! Requests that are wrong on purpose, for the checks that need them: what a client must never send, and how a server
//! should refuse it. Asked of one's own servers alone, after everything else.

use serde_json::{Value, json};
use url::Url;

use super::heard::id_of;
use super::id::CheckId;
use super::plan::standing;
use super::situation::{Situation, address, capability};
use crate::exchange::{Exchange, Leg, Request};
use crate::inquiry::Terms;
use crate::mcp::{
    ASKED_VERSION, INTRUSIVE_ID, Identity, MODERN_VERSION, SESSION_HEADER, Standing, VERSION_HEADER,
};

/// A revision that no server serves.
pub(super) const NO_VERSION: &str = "1900-01-01";

/// A method that no server has.
const NO_METHOD: &str = "census/no-such-method";

/// A cursor that no server has given, a session that none has, a token that none takes.
const MADE_UP: &str = "made-up-by-mcp-census";

/// An origin that is no server's.
const FOREIGN: &str = "https://origin.invalid";

/// Methods of earlier revisions that 2026-07-28 has not.
pub(super) const REMOVED: [&str; 5] = [
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
    "initialize",
];

/// What is no JSON.
const BROKEN: &str = "{";

const METHOD_HEADER: &str = "Mcp-Method";

/// The next request, where the server is one's own and there is one left. `is_closed`: the session is over.
pub(super) fn next(
    situation: &Situation<'_>,
    terms: &Terms,
    is_closed: bool,
) -> Option<(Leg, Request)> {
    let own = terms.own.as_ref()?;
    let url = address(situation.decided?)?;
    if !own.covers(&url) {
        return None;
    }
    let mut asking = Asking {
        identity: &terms.identity,
        url: &url,
        requests: Vec::new(),
    };
    if is_closed {
        asking.ended(situation);
    } else if situation.gate().is_some() {
        asking.gated();
    } else if situation.is_open() {
        asking.in_session(situation);
        if situation.is_modern {
            asking.modern(situation);
        }
    } else if situation.is_open_as_modern() {
        asking.either(situation, true);
        asking.modern(situation);
    }
    let is_new = |request: &Request| {
        situation
            .legs(Leg::Intrusive)
            .all(|it| it.request.body != request.body)
    };
    let request = asking.requests.into_iter().find(is_new)?;
    Some((Leg::Intrusive, request))
}

/// The check that a request was sent for, by its number.
pub(super) fn number(exchange: &Exchange) -> Option<u8> {
    if exchange.request.body == BROKEN {
        return Some(CheckId::NegParseError.rule().number);
    }
    u8::try_from(id_of(&exchange.request)? - INTRUSIVE_ID).ok()
}

/// The method that a request of ours named.
pub(super) fn method(exchange: &Exchange) -> Option<String> {
    let body: Value = serde_json::from_str(&exchange.request.body).ok()?;
    Some(body.get("method")?.as_str()?.to_owned())
}

fn id(check: CheckId) -> i64 {
    INTRUSIVE_ID + i64::from(check.rule().number)
}

/// Requests that are being put together.
struct Asking<'a> {
    identity: &'a Identity,
    url: &'a Url,
    requests: Vec<Request>,
}

impl Asking<'_> {
    fn send(&mut self, body: &Value, further: &[(&str, &str)]) {
        self.requests
            .push(self.identity.any(self.url, body.to_string(), further));
    }

    /// `ping` of the earlier revisions.
    fn ping(&mut self, check: CheckId, further: &[(&str, &str)]) {
        let body = json!({ "jsonrpc": "2.0", "id": id(check), "method": "ping" });
        self.send(&body, further);
    }

    /// `server/discover`, bent before it is sent.
    fn discover(
        &mut self,
        check: CheckId,
        further: &[(&str, &str)],
        bend: impl FnOnce(&mut Value),
    ) {
        let mut body = self
            .identity
            .described("server/discover", id(check), MODERN_VERSION);
        bend(&mut body);
        self.send(&body, further);
    }

    /// What servers of either era are asked.
    fn either(&mut self, situation: &Situation<'_>, modern: bool) {
        let standing = if modern {
            Standing::default()
        } else {
            standing(situation)
        };
        let identity = self.identity;
        let body = |check: CheckId, method: &str| {
            if modern {
                identity.described(method, id(check), MODERN_VERSION)
            } else {
                json!({ "jsonrpc": "2.0", "id": id(check), "method": method, "params": {} })
            }
        };
        let headers = |method: &'static str| -> Vec<(&str, &str)> {
            if modern {
                vec![(VERSION_HEADER, MODERN_VERSION), (METHOD_HEADER, method)]
            } else {
                standing.headers()
            }
        };
        self.send(
            &body(CheckId::NegUnknownMethod, NO_METHOD),
            &headers(NO_METHOD),
        );
        let declaring = if modern {
            situation.discovery.as_ref()
        } else {
            situation.opening.as_ref()
        };
        if capability(declaring.and_then(|it| it.result()), "tools").is_some() {
            let mut page = body(CheckId::NegBadCursor, "tools/list");
            page["params"]["cursor"] = json!(MADE_UP);
            self.send(&page, &headers("tools/list"));
        }
        let further = headers("tools/list");
        self.requests
            .push(identity.any(self.url, BROKEN.to_owned(), &further));
        let method = if modern { "server/discover" } else { "ping" };
        let mut further = headers(method);
        further.push(("Origin", FOREIGN));
        self.send(&body(CheckId::NegOrigin403, method), &further);
    }

    /// What a server of the earlier revisions is asked in a session.
    fn in_session(&mut self, situation: &Situation<'_>) {
        let standing = standing(situation);
        self.either(situation, false);
        let session = standing.session.as_deref();
        if standing.version.is_some() {
            let without: Vec<(&str, &str)> =
                session.iter().map(|it| (SESSION_HEADER, *it)).collect();
            let mut wrong = without.clone();
            wrong.push((VERSION_HEADER, NO_VERSION));
            self.ping(CheckId::NegBadVersionHeaderLegacy, &wrong);
            self.ping(CheckId::NegNoVersionHeaderLegacy, &without);
        }
        if session.is_some() {
            let without: Vec<(&str, &str)> = standing
                .version
                .iter()
                .map(|it| (VERSION_HEADER, it.as_str()))
                .collect();
            self.ping(CheckId::NegNoSession400, &without);
        }
    }

    /// What is asked in a session that has ended.
    fn ended(&mut self, situation: &Situation<'_>) {
        let standing = standing(situation);
        let Some(session) = standing.session.as_deref() else {
            return;
        };
        let has_ended = situation.legs(Leg::Close).any(|it| {
            let is_done = it.answer().is_some_and(|it| matches!(it.status, 200..=299));
            is_done && it.closes() == Some(session)
        });
        if has_ended {
            self.ping(CheckId::NegTerminated404, &standing.headers());
        }
    }

    /// What a server that wants a token is asked.
    fn gated(&mut self) {
        let check = CheckId::NegInvalidToken401;
        let token = format!("Bearer {MADE_UP}");
        let request = self.identity.initialize(self.url, ASKED_VERSION);
        let mut body: Value = serde_json::from_str(&request.body).unwrap_or_default();
        body["id"] = json!(id(check));
        self.send(&body, &[("Authorization", &token)]);
    }

    /// What a server of 2026-07-28 is asked.
    fn modern(&mut self, situation: &Situation<'_>) {
        const META: &str = "_meta";
        let named = [
            (VERSION_HEADER, MODERN_VERSION),
            (METHOD_HEADER, "server/discover"),
        ];
        for method in REMOVED {
            let body =
                self.identity
                    .described(method, id(CheckId::NegRemovedMethods), MODERN_VERSION);
            let further = [(VERSION_HEADER, MODERN_VERSION), (METHOD_HEADER, method)];
            self.send(&body, &further);
        }
        self.discover(
            CheckId::NegUnsupportedVersion,
            &[(VERSION_HEADER, NO_VERSION), named[1]],
            |body| {
                body["params"][META]["io.modelcontextprotocol/protocolVersion"] = json!(NO_VERSION);
            },
        );
        self.discover(
            CheckId::NegHeaderMismatch,
            &[(VERSION_HEADER, ASKED_VERSION), named[1]],
            |_| {},
        );
        self.discover(CheckId::NegMissingMcpMethod, &named[..1], |_| {});
        if situation.is_modern_only() {
            self.discover(CheckId::NegMissingVersionHeader, &named[1..], |_| {});
        }
        self.discover(CheckId::NegMissingMeta, &named, |body| {
            body["params"] = json!({});
        });
        self.discover(CheckId::NegNoClientInfoOk, &named, |body| {
            if let Some(meta) = body["params"][META].as_object_mut() {
                meta.shift_remove("io.modelcontextprotocol/clientInfo");
            }
        });
        let session = [named[0], named[1], (SESSION_HEADER, MADE_UP)];
        self.discover(CheckId::NegSessionHeaderIgnored, &session, |_| {});
    }
}
