//! What an attempt has shown so far: what was negotiated, in which era, and who stands at the gate. `plan` decides by
//! it what to ask next, `evaluate` which checks are a matter of this server.

use serde_json::Value;
use url::Url;

use super::heard::{self, Heard};
use super::rule::{Revision, Rule};
use super::status::{Missing, Outside, Status};
use crate::challenge::{self, Challenge};
use crate::classify::{self, Reading};
use crate::exchange::{BodyEnd, Exchange, Fault, Leg, Reply};
use crate::finding::Check;
use crate::mcp;
use crate::outcome::{Detail, Framing, Transport};

/// What the revision of the handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spoken {
    /// One of the specification's.
    Known(Revision),
    /// The server speaks `initialize` and names no revision that has it: what all of those have in common holds.
    AnyLegacy,
}

/// An attempt, read.
#[derive(Debug)]
pub(super) struct Situation<'a> {
    pub(super) exchanges: &'a [Exchange],
    pub(super) reading: Reading,
    /// The exchange that decided the outcome.
    pub(super) decided: Option<&'a Exchange>,
    /// The answer to `initialize`, where there was one.
    pub(super) opening: Option<Heard<'a>>,
    /// The answer to `server/discover`.
    pub(super) discovery: Option<Heard<'a>>,
    /// The revision that the handshake is held to: the negotiated one; where nothing was negotiated the one asked for.
    pub(super) spoken: Spoken,
    /// The server is shown to speak 2026-07-28.
    pub(super) is_modern: bool,
    /// The handshake gave a result.
    pub(super) is_legacy: bool,
}

impl<'a> Situation<'a> {
    pub(super) fn of(exchanges: &'a [Exchange]) -> Self {
        let asked = asked(exchanges);
        let reading = classify::classify(asked.name(), None, exchanges);
        let decided = exchanges.get(reading.decided_by);
        let opening = decided.and_then(Heard::of);
        let discovery = exchanges
            .iter()
            .rfind(|it| it.leg == Leg::Discover)
            .and_then(Heard::of);
        let granted = opening
            .as_ref()
            .filter(|it| it.exchange.leg != Leg::Discover && !is_gate(it.answer.status))
            .and_then(Heard::result);
        let is_legacy = granted.is_some();
        let is_modern = opening.as_ref().is_some_and(refuses_as_modern)
            || discovery.as_ref().is_some_and(discovers);
        let spoken = match granted.map(|it| it.get("protocolVersion").and_then(Value::as_str)) {
            Some(version) => version
                .and_then(Revision::named)
                .filter(|it| !it.is_modern())
                .map_or(Spoken::AnyLegacy, Spoken::Known),
            None if is_modern => Spoken::Known(Revision::V2026_07),
            None => Spoken::Known(asked),
        };
        Self {
            exchanges,
            reading,
            decided,
            opening,
            discovery,
            spoken,
            is_modern,
            is_legacy,
        }
    }

    /// Whether a rule belongs to the revision that the handshake is held to.
    pub(super) fn covers(&self, rule: &Rule) -> bool {
        match self.spoken {
            Spoken::Known(revision) => rule.covers(revision),
            Spoken::AnyLegacy => {
                rule.first == Revision::V2024_11 && rule.last >= Revision::NEWEST_LEGACY
            }
        }
    }

    /// Whether the revision is at least this one; not where it is unknown.
    pub(super) fn is_since(&self, revision: Revision) -> bool {
        matches!(self.spoken, Spoken::Known(spoken) if spoken >= revision)
    }

    /// Shown to have no handshake: it was asked for one. Who was only asked to discover may have both.
    pub(super) fn is_modern_only(&self) -> bool {
        self.is_met_as_modern() && self.legs(Leg::Initialize).next().is_some()
    }

    /// Speaks 2026-07-28, and no handshake was seen.
    pub(super) fn is_met_as_modern(&self) -> bool {
        self.is_modern && !self.is_legacy
    }

    /// Why a check of servers without a handshake says nothing here.
    pub(super) fn not_modern_only(&self) -> Status {
        if self.is_met_as_modern() {
            Status::NotObserved(Missing::NotAsked)
        } else {
            Status::NotApplicable(Outside::Era)
        }
    }

    pub(super) fn is_http_sse(&self) -> bool {
        self.reading.transport == Some(Transport::HttpSse)
    }

    /// The handshake succeeded over the transport whose sessions can be followed up.
    pub(super) fn is_open(&self) -> bool {
        self.is_legacy
            && matches!(
                self.reading.detail,
                Detail::Framing(Framing::Json | Framing::Sse)
            )
    }

    /// `server/discover` gave a valid result, and there is no handshake.
    pub(super) fn is_open_as_modern(&self) -> bool {
        self.is_met_as_modern()
            && self
                .reading
                .findings
                .iter()
                .any(|it| it.check == Check::DiscoverOk)
    }

    /// The exchange that answered 401.
    pub(super) fn gate(&self) -> Option<&'a Exchange> {
        self.decided
            .filter(|it| it.answer().is_some_and(|answer| answer.status == 401))
    }

    /// The Bearer challenge of the 401.
    pub(super) fn bearer(&self) -> Option<Challenge> {
        let answer = self.gate()?.answer()?;
        let (found, _) = challenge::challenges(answer.all("www-authenticate"));
        found.into_iter().find(|it| it.scheme == "bearer")
    }

    /// Exchanges of a leg, in order.
    pub(super) fn legs(&self, leg: Leg) -> impl Iterator<Item = &'a Exchange> + use<'a> {
        self.exchanges.iter().filter(move |it| it.leg == leg)
    }

    /// The pages of tools of one era, in order.
    pub(super) fn pages(&self, modern: bool) -> impl Iterator<Item = &'a Exchange> + use<'a> {
        self.legs(Leg::Tools)
            .filter(move |it| heard::is_modern(it) == modern)
    }

    /// Why the handshake shows nothing, where it does not.
    pub(super) fn blank(&self) -> Option<Missing> {
        let Some(decided) = self.decided else {
            return Some(Missing::NotAsked);
        };
        let answer = match &decided.reply {
            Reply::Fault(Fault::Deadline(_)) => return Some(Missing::TimedOut),
            Reply::Fault(_) => return Some(Missing::NoMessage),
            Reply::Answer(answer) => answer,
        };
        if matches!(answer.status, 401..=403) {
            return Some(Missing::Gated);
        }
        let has_response = self
            .opening
            .as_ref()
            .is_some_and(|it| it.response.is_some());
        match answer.end {
            _ if has_response => None,
            BodyEnd::Broken(Fault::Deadline(_)) => Some(Missing::TimedOut),
            BodyEnd::Complete
            | BodyEnd::Left
            | BodyEnd::Page
            | BodyEnd::OverLimit
            | BodyEnd::Broken(_) => Some(Missing::NoMessage),
        }
    }
}

const fn is_gate(status: u16) -> bool {
    matches!(status, 401..=403 | 429)
}

/// The revision that our first request asked for.
fn asked(exchanges: &[Exchange]) -> Revision {
    let only_discovered = exchanges
        .iter()
        .all(|it| it.leg == Leg::Discover || it.leg == Leg::Close || it.leg.is_for_checks());
    if only_discovered && !exchanges.is_empty() {
        return Revision::V2026_07;
    }
    exchanges
        .iter()
        .filter(|it| matches!(it.leg, Leg::Initialize | Leg::SseMessage))
        .find_map(|it| {
            let body: Value = serde_json::from_str(&it.request.body).ok()?;
            Revision::named(body.get("params")?.get("protocolVersion")?.as_str()?)
        })
        .unwrap_or(Revision::NEWEST_LEGACY)
}

/// Whether a refusal of `initialize` is in words that only 2026-07-28 has.
fn refuses_as_modern(opening: &Heard<'_>) -> bool {
    if is_gate(opening.answer.status) {
        return false;
    }
    let Some(error) = opening.error() else {
        return false;
    };
    let supported = error.get("data").map(mcp::supported).unwrap_or_default();
    matches!(opening.code(), Some(-32022..=-32020)) || mcp::names_modern(&supported)
}

/// Whether an answer to `server/discover` comes from a server that knows the method.
fn discovers(discovery: &Heard<'_>) -> bool {
    if is_gate(discovery.answer.status) {
        return false;
    }
    let has = |member: &str| {
        discovery
            .result()
            .is_some_and(|it| it.get(member).is_some())
    };
    has("supportedVersions") || has("resultType") || refuses_as_modern(discovery)
}

/// The capabilities that a result declares.
pub(super) fn capability<'a>(result: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    result?
        .get("capabilities")?
        .get(name)
        .filter(|it| !it.is_null())
}

/// The endpoint whose handshake it was, at the end of its redirects.
pub(super) fn address(exchange: &Exchange) -> Option<Url> {
    Url::parse(&exchange.request.url).ok()
}
