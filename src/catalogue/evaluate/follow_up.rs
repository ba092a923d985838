//! Checks 45 to 60: what the requests after the handshake show. Lists of tools are `tools`'s.

use std::collections::BTreeSet;

use serde_json::Value;

use super::discovery::{cache_scope, first_fault, result_type, ttl};
use super::{Bench, Told, missing, outside, pass};
use crate::body::{self, Content, EVENT_STREAM};
use crate::catalogue::heard::Heard;
use crate::catalogue::id::CheckId;
use crate::catalogue::rule::Rule;
use crate::catalogue::situation::{address, capability};
use crate::catalogue::status::{Missing, Outside};
use crate::exchange::{BodyEnd, Exchange, Fault, Leg, Reply};
use crate::mcp;

/// The code for a method that is not there.
const METHOD_NOT_FOUND: i64 = -32601;

impl Bench<'_> {
    pub(super) fn about_follow_up(&self, rule: &Rule) -> Told {
        if rule.id == CheckId::Sse24EndpointFirst {
            return self.endpoint_first(rule).unwrap_or_else(|told| told);
        }
        // What is asked after a handshake over HTTP+SSE is asked over its stream, which is closed.
        if self.situation.is_http_sse() {
            return self
                .opening()
                .err()
                .unwrap_or_else(|| missing(Missing::NotAsked));
        }
        let told = match rule.id {
            CheckId::Notif202 => self.notified(rule),
            CheckId::DeleteOkOr405 => self.closed(rule),
            CheckId::PingEmptyResult => self.pinged(rule),
            CheckId::ListCacheFields => self.cache_fields(rule),
            CheckId::CapsMatch => self.capabilities_match(rule),
            CheckId::GetSseOr405 | CheckId::Get405Modern => self.listened(rule),
            _ => self.about_tools(rule),
        };
        told.unwrap_or_else(|told| told)
    }

    fn notified(&self, rule: &Rule) -> Result<Told, Told> {
        let heard = self.answered(Leg::Initialized, false)?;
        let status = heard.answer.status;
        let is_empty = matches!(body::read(heard.answer).content, Content::Empty);
        Ok(Self::held(
            rule,
            match status {
                202 if is_empty => Ok(String::new()),
                202 => Err("HTTP 202 with a body".to_owned()),
                400..=499 => Ok(format!("refused with HTTP {status}")),
                _ => Err(format!("HTTP {status}")),
            },
        ))
    }

    fn closed(&self, rule: &Rule) -> Result<Told, Told> {
        // Some servers give a session to whatever is asked without one; the handshake's is the one that counts.
        let Some(session) = self.opening()?.exchange.session() else {
            return Err(outside(Outside::Session));
        };
        let closed = self
            .situation
            .legs(Leg::Close)
            .find(|it| it.closes() == Some(session));
        let Some(closed) = closed else {
            return Err(missing(Missing::NotAsked));
        };
        let status = match &closed.reply {
            Reply::Fault(Fault::Deadline(_)) => return Err(missing(Missing::TimedOut)),
            Reply::Fault(_) => return Err(missing(Missing::NoMessage)),
            Reply::Answer(answer) => answer.status,
        };
        let seen = format!("HTTP {status}");
        Ok(Self::held(
            rule,
            match status {
                200..=299 | 405 => Ok(seen),
                _ => Err(seen),
            },
        ))
    }

    fn pinged(&self, rule: &Rule) -> Result<Told, Told> {
        let heard = self.answered(Leg::Ping, false)?;
        let seen = match (heard.result(), heard.code()) {
            (Some(Value::Object(members)), _) if members.keys().all(|it| it == "_meta") => {
                Ok(String::new())
            }
            (Some(_), _) => Err("the result is not empty".to_owned()),
            (None, Some(code)) => Err(format!("refused with {code}")),
            (None, None) => Err(format!("HTTP {} without a response", heard.answer.status)),
        };
        Ok(Self::held(rule, seen))
    }

    fn cache_fields(&self, rule: &Rule) -> Result<Told, Told> {
        let pages = self.tools(true)?;
        let results: Vec<&Value> = pages.iter().filter_map(Heard::result).collect();
        if results.is_empty() {
            return Err(missing(Missing::Basis));
        }
        let fields = results
            .iter()
            .flat_map(|it| [result_type(it), ttl(it), cache_scope(it)]);
        let scopes: BTreeSet<&str> = results
            .iter()
            .filter_map(|it| it.get("cacheScope")?.as_str())
            .collect();
        let alike = if scopes.len() > 1 {
            Err("cacheScope differs from page to page".to_owned())
        } else {
            Ok(String::new())
        };
        Ok(first_fault(rule, fields.chain([alike])))
    }

    /// What is declared is there, and what is not declared is not.
    fn capabilities_match(&self, rule: &Rule) -> Result<Told, Told> {
        let discovered = self
            .situation
            .discovery
            .as_ref()
            .and_then(Heard::result)
            .ok_or_else(|| missing(Missing::Basis))?;
        let mut seen = Vec::new();
        for (leg, name) in [(Leg::Prompts, "prompts"), (Leg::Resources, "resources")] {
            let heard = self.answered(leg, true)?;
            let lists = heard
                .result()
                .is_some_and(|it| it.get(name).is_some_and(Value::is_array));
            let is_declared = capability(Some(discovered), name).is_some();
            seen.push(match (is_declared, heard.code()) {
                (true, _) if lists => Ok(String::new()),
                (true, _) => Err(format!("{name} are declared and not listed")),
                (false, Some(METHOD_NOT_FOUND)) => Ok(String::new()),
                (false, _) if lists => Err(format!("{name} are listed and not declared")),
                (false, Some(code)) => {
                    Err(format!("{name} are not declared and refused with {code}"))
                }
                (false, None) => Err(format!(
                    "{name} are not declared and answered with HTTP {}",
                    heard.answer.status
                )),
            });
        }
        Ok(first_fault(rule, seen.into_iter()))
    }

    fn listened(&self, rule: &Rule) -> Result<Told, Told> {
        if rule.id == CheckId::Get405Modern && !self.situation.is_modern_only() {
            return Err((self.situation.not_modern_only(), String::new()));
        }
        let heard = self.answered(Leg::Listen, false)?;
        let (status, media) = (heard.answer.status, heard.answer.media_type());
        let seen = if status == 405 {
            Ok("HTTP 405".to_owned())
        } else if rule.id == CheckId::GetSseOr405 && status == 200 && media == EVENT_STREAM {
            Ok("an event stream".to_owned())
        } else {
            Err(format!("HTTP {status} {media}").trim_end().to_owned())
        };
        Ok(Self::held(rule, seen))
    }

    fn endpoint_first(&self, rule: &Rule) -> Result<Told, Told> {
        if !self.situation.is_http_sse() {
            self.opening()?;
            return Err(outside(Outside::Transport));
        }
        let asked: &Exchange = self
            .situation
            .legs(Leg::SseStream)
            .last()
            .ok_or_else(|| missing(Missing::NotAsked))?;
        let heard = Heard::of(asked).ok_or_else(|| missing(Missing::NoMessage))?;
        let (Some(stream), Some(here)) = (&heard.stream, address(asked)) else {
            return Err(missing(if matches!(heard.answer.status, 401..=403) {
                Missing::Gated
            } else {
                Missing::NoMessage
            }));
        };
        let seen = match stream.events.first() {
            None if matches!(heard.answer.end, BodyEnd::Broken(Fault::Deadline(_))) => {
                return Err(missing(Missing::TimedOut));
            }
            None => Err("the stream holds no event".to_owned()),
            Some(event) if event.name != "endpoint" => {
                Err(format!("the first event is {:?}", event.name))
            }
            Some(event) => match mcp::message_endpoint(&here, &event.data) {
                Ok(_) => return Ok(pass("")),
                Err(why) => Err(why.name().to_owned()),
            },
        };
        Ok(Self::held(rule, seen))
    }
}
