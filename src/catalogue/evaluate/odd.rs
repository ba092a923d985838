//! Checks 70 to 86: how a server takes what a client must never send. What is sent is `catalogue::odd`'s.

use serde_json::Value;

use super::{Bench, Told, missing, outside};
use crate::catalogue::documents::{is_loopback, strings};
use crate::catalogue::heard::{self, Heard};
use crate::catalogue::id::CheckId;
use crate::catalogue::odd::{self, NO_VERSION, REMOVED};
use crate::catalogue::rule::Rule;
use crate::catalogue::situation::{address, capability};
use crate::catalogue::status::{Missing, Outside, Status};
use crate::envelope::Id;
use crate::exchange::{Exchange, Fault, Leg, Reply};
use crate::jsonrpc::{
    HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR, UNSUPPORTED_PROTOCOL_VERSION,
};
use crate::mcp;

impl<'a> Bench<'a> {
    pub(super) fn about_odd(&self, rule: &Rule) -> Told {
        self.odd(rule).unwrap_or_else(|told| told)
    }

    fn odd(&self, rule: &Rule) -> Result<Told, Told> {
        let seen = match rule.id {
            CheckId::NegUnknownMethod => unknown(&self.said(rule)?, self.is_odd_modern()),
            CheckId::NegRemovedMethods => return self.removed(rule),
            CheckId::NegUnsupportedVersion => self.unsupported(&self.said(rule)?),
            CheckId::NegHeaderMismatch | CheckId::NegMissingVersionHeader => {
                return self.headers(rule);
            }
            CheckId::NegMissingMcpMethod => refused(&self.said(rule)?, 400, HEADER_MISMATCH),
            CheckId::NegMissingMeta => refused(&self.said(rule)?, 400, INVALID_PARAMS),
            CheckId::NegNoClientInfoOk | CheckId::NegSessionHeaderIgnored => {
                served(&self.said(rule)?)
            }
            CheckId::NegBadVersionHeaderLegacy => status(&self.said(rule)?, 400),
            CheckId::NegNoVersionHeaderLegacy => served(&self.said(rule)?),
            CheckId::NegNoSession400 => {
                self.has_session()?;
                status(&self.said(rule)?, 400)
            }
            CheckId::NegTerminated404 => {
                self.has_session()?;
                self.has_ended()?;
                status(&self.said(rule)?, 404)
            }
            CheckId::NegBadCursor => {
                self.has_tools()?;
                code(&self.said(rule)?, INVALID_PARAMS)
            }
            CheckId::NegParseError => code(&self.said(rule)?, PARSE_ERROR),
            CheckId::NegOrigin403 => return self.origin(rule),
            _ => {
                if self.situation.gate().is_none() {
                    return Err(outside(Outside::Gate));
                }
                status(&self.said(rule)?, 401)
            }
        };
        Ok(Self::held(rule, seen))
    }

    /// The exchanges of a check.
    fn sent(&self, rule: &Rule) -> impl Iterator<Item = &'a Exchange> + use<'a> {
        let number = rule.number;
        self.situation
            .legs(Leg::Intrusive)
            .filter(move |it| odd::number(it) == Some(number))
    }

    /// The answer to the request of a check.
    fn said(&self, rule: &Rule) -> Result<Heard<'a>, Told> {
        let exchange = self.sent(rule).next().ok_or_else(|| self.unasked())?;
        answer(exchange)
    }

    fn is_odd_modern(&self) -> bool {
        self.situation.is_met_as_modern()
    }

    fn removed(&self, rule: &Rule) -> Result<Told, Told> {
        let mut asked = 0;
        for exchange in self.sent(rule) {
            let method = odd::method(exchange).unwrap_or_default();
            if let Err(seen) = unknown(&answer(exchange)?, true) {
                return Ok(Self::held(rule, Err(format!("{method}: {seen}"))));
            }
            asked += 1;
        }
        if asked < REMOVED.len() {
            return Err(self.unasked());
        }
        Ok(Self::held(rule, Ok(String::new())))
    }

    fn unsupported(&self, heard: &Heard<'_>) -> Result<String, String> {
        refused(heard, 400, UNSUPPORTED_PROTOCOL_VERSION)?;
        let data = heard.error().and_then(|it| it.get("data"));
        let named = data.map(mcp::supported).unwrap_or_default();
        if named.is_empty() {
            return Err("data.supported names no revision".to_owned());
        }
        match data.and_then(|it| it.get("requested")) {
            Some(Value::String(requested)) if requested == NO_VERSION => {}
            Some(other) => return Err(format!("data.requested is {other}")),
            None => return Err("data.requested is missing".to_owned()),
        }
        let discovered = self.situation.discovery.as_ref().and_then(Heard::result);
        let known = strings(discovered.and_then(|it| it.get("supportedVersions")));
        // A list without the revision that was used is told by its own check.
        let is_list = known.contains(&mcp::MODERN_VERSION);
        match named.iter().find(|it| !known.contains(&it.as_str())) {
            Some(other) if is_list => Err(format!(
                "{other} is offered, and server/discover has it not"
            )),
            Some(_) | None => Ok(named.join(", ")),
        }
    }

    /// A server that has a handshake as well may take a request for one of its earlier revisions'.
    fn headers(&self, rule: &Rule) -> Result<Told, Told> {
        if rule.id == CheckId::NegMissingVersionHeader && !self.situation.is_modern_only() {
            return Err((self.situation.not_modern_only(), String::new()));
        }
        let seen = refused(&self.said(rule)?, 400, HEADER_MISMATCH);
        if seen.is_err() && !self.situation.is_modern_only() {
            return Err((self.situation.not_modern_only(), String::new()));
        }
        Ok(Self::held(rule, seen))
    }

    fn has_session(&self) -> Result<(), Told> {
        match self.opening()?.exchange.session() {
            Some(_) => Ok(()),
            None => Err(outside(Outside::Session)),
        }
    }

    /// A session that its server does not let us end has not ended.
    fn has_ended(&self) -> Result<(), Told> {
        let closed = self.situation.legs(Leg::Close).next();
        let status = closed.and_then(Exchange::answer).map(|it| it.status);
        match status {
            None | Some(200..=299) => Ok(()),
            Some(_) => Err(outside(Outside::Session)),
        }
    }

    fn has_tools(&self) -> Result<(), Told> {
        let declaring = if self.is_odd_modern() {
            self.situation.discovery.as_ref()
        } else {
            Some(self.opening()?)
        };
        match capability(declaring.and_then(Heard::result), "tools") {
            Some(_) => Ok(()),
            None => Err(outside(Outside::Capability)),
        }
    }

    /// Which origins are foreign is for a server to say, unless it stands on this machine, where none but its own is.
    fn origin(&self, rule: &Rule) -> Result<Told, Told> {
        let heard = self.said(rule)?;
        let status = heard.answer.status;
        let is_local = address(heard.exchange).is_some_and(|it| is_loopback(&it));
        if status < 300 && !is_local {
            return Ok((Status::Warn, format!("HTTP {status}: any origin may do")));
        }
        Ok(Self::held(rule, self::status(&heard, 403)))
    }
}

/// What came back for one request.
fn answer(exchange: &Exchange) -> Result<Heard<'_>, Told> {
    match &exchange.reply {
        Reply::Fault(Fault::Deadline(_)) => Err(missing(Missing::TimedOut)),
        Reply::Fault(_) => Err(missing(Missing::NoMessage)),
        Reply::Answer(_) => Heard::of(exchange).ok_or_else(|| missing(Missing::NoMessage)),
    }
}

/// How an answer reads beside what was wanted.
fn told(heard: &Heard<'_>) -> String {
    let status = heard.answer.status;
    match (heard.code(), heard.result()) {
        (Some(code), _) => format!("code {code} under HTTP {status}"),
        (None, Some(_)) => format!("a result under HTTP {status}"),
        (None, None) => format!("HTTP {status} without a response"),
    }
}

fn status(heard: &Heard<'_>, wanted: u16) -> Result<String, String> {
    if heard.answer.status == wanted {
        Ok(String::new())
    } else {
        Err(told(heard))
    }
}

fn code(heard: &Heard<'_>, wanted: i64) -> Result<String, String> {
    if heard.code() == Some(wanted) {
        Ok(format!("HTTP {}", heard.answer.status))
    } else {
        Err(told(heard))
    }
}

fn refused(heard: &Heard<'_>, wanted: u16, with: i64) -> Result<String, String> {
    status(heard, wanted)?;
    code(heard, with)
}

/// An unknown method: in 2026-07-28 the status and the id are pinned as well.
fn unknown(heard: &Heard<'_>, modern: bool) -> Result<String, String> {
    code(heard, METHOD_NOT_FOUND)?;
    if !modern {
        return Ok(String::new());
    }
    status(heard, 404)?;
    let echoed = heard.response.as_ref().map(|it| heard::id(it, heard.ours));
    if echoed.is_some_and(Id::is_ours) {
        Ok(String::new())
    } else {
        Err("the id is not the request's".to_owned())
    }
}

fn served(heard: &Heard<'_>) -> Result<String, String> {
    if heard.result().is_some() && heard.answer.status < 300 {
        Ok(String::new())
    } else {
        Err(told(heard))
    }
}
