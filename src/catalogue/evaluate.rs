//! The exchanges of one attempt -> what became of each check. Total and deterministic; the intrusive checks are left
//! out where nothing was asked for them. What is asked is `plan`'s affair.

mod auth;
mod discovery;
mod follow_up;
mod members;
mod odd;
mod opening;
mod schema;
#[cfg(test)]
mod tests;
mod tools;

pub use auth::Discovery;

use super::heard::Heard;
use super::id::CheckId;
use super::rule::{Revision, Rule};
use super::situation::Situation;
use super::status::{Missing, Outside, Status};
use super::table::rules;
use crate::exchange::{BodyEnd, Exchange, Fault, Leg, Reply};
use crate::inquiry;
use crate::target::Target;

/// What became of a check, and what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The check.
    pub check: CheckId,
    /// What became of it.
    pub status: Status,
    /// The particulars; empty where there are none.
    pub detail: String,
}

impl Checked {
    /// Why it was not decided, where it was not, and what was seen.
    #[must_use]
    pub fn told(&self) -> String {
        match (self.status.why(), self.detail.as_str()) {
            (None, detail) => detail.to_owned(),
            (Some(why), "") => why.to_owned(),
            (Some(why), detail) => format!("{why}: {detail}"),
        }
    }
}

/// What became of a check, while its name is known.
type Told = (Status, String);

/// Holds one attempt at an endpoint against the catalogue, by the revision that was negotiated there.
#[must_use]
pub fn evaluate(target: &Target, exchanges: &[Exchange]) -> Vec<Checked> {
    let situation = Situation::of(exchanges);
    let bench = Bench {
        target,
        situation: &situation,
    };
    let is_own = situation.legs(Leg::Intrusive).next().is_some();
    rules()
        .filter(|rule| is_own || !rule.is_intrusive())
        .map(|rule| {
            let (status, detail) = bench.told(rule);
            Checked {
                check: rule.id,
                status,
                detail,
            }
        })
        .collect()
}

/// The attempt that speaks for an endpoint. `None` where nothing was exchanged.
#[must_use]
pub fn speaking<'a>(
    target: &Target,
    asked_version: &str,
    exchanges: &'a [Exchange],
) -> Option<&'a [Exchange]> {
    let speaks = inquiry::settled(target, asked_version, exchanges)?.speaks;
    inquiry::attempts(exchanges).get(speaks).copied()
}

/// How far the way in was found from a 401. `None` where there was none.
#[must_use]
pub fn discovered(exchanges: &[Exchange]) -> Option<Discovery> {
    auth::discovered(&Situation::of(exchanges))
}

fn pass(detail: impl Into<String>) -> Told {
    (Status::Pass, detail.into())
}

fn outside(why: Outside) -> Told {
    (Status::NotApplicable(why), String::new())
}

fn missing(why: Missing) -> Told {
    (Status::NotObserved(why), String::new())
}

/// Where one check is held against one attempt.
struct Bench<'a> {
    target: &'a Target,
    situation: &'a Situation<'a>,
}

impl<'a> Bench<'a> {
    fn told(&self, rule: &Rule) -> Told {
        let only_modern = rule.first == Revision::V2026_07;
        let is_auth = matches!(rule.number, 21..=27 | 61..=69);
        if only_modern && !is_auth && !self.situation.is_modern {
            let is_asked = self.situation.legs(Leg::Discover).next().is_some();
            return match self.situation.blank() {
                Some(why) => missing(why),
                // A server that answers `initialize` may speak 2026-07-28 as well; only asking tells.
                None if is_asked => outside(Outside::Era),
                None => self.unasked(),
            };
        }
        let about_handshake = !only_modern || is_auth;
        // `_meta` stands in the answers of both eras.
        let in_discovery = rule.id == CheckId::MetaKeyNames && self.situation.is_modern;
        // The older transport is held to its own rule, whatever revision is negotiated over it.
        let is_transport = rule.id == CheckId::Sse24EndpointFirst;
        let exempt = in_discovery || is_transport;
        if about_handshake && !exempt && !self.situation.covers(rule) {
            return outside(Outside::Revision);
        }
        if is_auth {
            return self.about_gate(rule);
        }
        match rule.number {
            1..=31 => self.about_opening(rule),
            32..=44 => self.about_discovery(rule),
            _ if rule.is_intrusive() => self.about_odd(rule),
            _ => self.about_follow_up(rule),
        }
    }

    /// Held to, or not as firmly as the rule's level says.
    fn held(rule: &Rule, seen: Result<String, String>) -> Told {
        match seen {
            Ok(detail) => (Status::Pass, detail),
            Err(detail) => (rule.level.broken(), detail),
        }
    }

    fn opening(&self) -> Result<&'a Heard<'a>, Told> {
        if let Some(why) = self.situation.blank() {
            return Err(missing(why));
        }
        self.situation
            .opening
            .as_ref()
            .ok_or_else(|| missing(Missing::NoMessage))
    }

    /// Why a request was not sent.
    fn unasked(&self) -> Told {
        if let Some(why) = self.situation.blank() {
            return missing(why);
        }
        let for_checks = self
            .situation
            .exchanges
            .iter()
            .any(|it| it.leg.is_for_checks());
        missing(if for_checks {
            Missing::Budget
        } else {
            Missing::NotAsked
        })
    }

    /// The answer to a further request, in one era of the protocol.
    fn answered(&self, leg: Leg, modern: bool) -> Result<Heard<'a>, Told> {
        let exchange = self
            .situation
            .legs(leg)
            .find(|it| super::heard::is_modern(it) == modern);
        exchange.map_or_else(|| Err(self.unasked()), Self::read)
    }

    /// An answer to what any client may ask.
    fn read(exchange: &'a Exchange) -> Result<Heard<'a>, Told> {
        let heard = match &exchange.reply {
            Reply::Fault(Fault::Deadline(_)) => return Err(missing(Missing::TimedOut)),
            Reply::Fault(_) => return Err(missing(Missing::NoMessage)),
            Reply::Answer(_) => Heard::of(exchange).ok_or_else(|| missing(Missing::NoMessage))?,
        };
        if matches!(heard.answer.status, 401..=403) {
            return Err(missing(Missing::Gated));
        }
        if heard.response.is_none()
            && matches!(heard.answer.end, BodyEnd::Broken(Fault::Deadline(_)))
        {
            return Err(missing(Missing::TimedOut));
        }
        Ok(heard)
    }
}
