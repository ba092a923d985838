//! Checks 32 to 44: what `server/discover` shows, at servers that are shown to speak 2026-07-28.

use serde_json::Value;

use super::members;
use super::{Bench, Told, missing, outside};
use crate::catalogue::heard::Heard;
use crate::catalogue::id::CheckId;
use crate::catalogue::rule::{Revision, Rule};
use crate::catalogue::situation::capability;
use crate::catalogue::status::{Missing, Outside, Status};
use crate::exchange::Leg;
use crate::mcp;

/// Where a result tells who answers.
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

impl<'a> Bench<'a> {
    pub(super) fn about_discovery(&self, rule: &Rule) -> Told {
        if rule.id == CheckId::MetaKeyNames {
            return self.meta(rule);
        }
        let told = self
            .answered(Leg::Discover, true)
            .and_then(|heard| self.discovery(rule, &heard));
        told.unwrap_or_else(|told| told)
    }

    fn discovery(&self, rule: &Rule, heard: &Heard<'a>) -> Result<Told, Told> {
        match rule.id {
            CheckId::DiscNoSession => {
                if !self.situation.is_modern_only() {
                    return Err((self.situation.not_modern_only(), String::new()));
                }
                let given = heard.answer.header("mcp-session-id").is_some();
                return Ok(Self::held(
                    rule,
                    if given {
                        Err("a session was given".to_owned())
                    } else {
                        Ok(String::new())
                    },
                ));
            }
            CheckId::DiscNoServerRequests | CheckId::DiscNoLogMessages => {
                return in_stream(rule, heard);
            }
            _ => {}
        }
        let Some(result) = heard.result() else {
            if rule.id == CheckId::DiscImplemented {
                let said = heard.code().map_or_else(
                    || format!("HTTP {}", heard.answer.status),
                    |code| format!("refused with {code}"),
                );
                return Ok(Self::held(rule, Err(said)));
            }
            return Err(missing(Missing::Basis));
        };
        Ok(Self::held(rule, member(rule.id, result)))
    }

    /// The keys of `_meta`, wherever it stands.
    fn meta(&self, rule: &Rule) -> Told {
        let lists: Vec<Heard<'_>> = self
            .situation
            .legs(Leg::Tools)
            .filter_map(Heard::of)
            .collect();
        let known = [&self.situation.opening, &self.situation.discovery];
        let results: Vec<&Value> = known
            .into_iter()
            .flatten()
            .chain(&lists)
            .filter_map(Heard::result)
            .collect();
        if results.is_empty() {
            return self
                .opening()
                .err()
                .unwrap_or_else(|| outside(Outside::Response));
        }
        let tools = results
            .iter()
            .filter_map(|it| it.get("tools")?.as_array())
            .flatten();
        let metas: Vec<&Value> = results
            .iter()
            .copied()
            .chain(tools)
            .filter_map(|it| it.get("_meta"))
            .collect();
        if metas.is_empty() {
            return outside(Outside::Member);
        }
        let seen = metas
            .into_iter()
            .try_fold(0, |count, meta| {
                members::meta_keys(meta).map(|more| count + more)
            })
            .map(|count| format!("keys: {count}"));
        Self::held(rule, seen)
    }
}

/// What a stream may not hold beside the response.
fn in_stream(rule: &Rule, heard: &Heard<'_>) -> Result<Told, Told> {
    if heard.stream.is_none() {
        return Err(outside(Outside::Framing));
    }
    let found = if rule.id == CheckId::DiscNoServerRequests {
        heard.requests().next()
    } else {
        heard
            .notifications()
            .find(|it| *it == "notifications/message")
    };
    Ok(Bench::held(
        rule,
        match found {
            None => Ok(String::new()),
            Some(method) => Err(format!("the stream holds {method:?}")),
        },
    ))
}

/// One member of the discover result.
fn member(check: CheckId, result: &Value) -> Result<String, String> {
    match check {
        CheckId::DiscResultType => result_type(result),
        CheckId::DiscSupportedVersions => versions(result),
        CheckId::DiscCapabilities => match result.get("capabilities") {
            None => Err("capabilities is missing".to_owned()),
            Some(declared) if declared.is_object() => {
                members::capabilities(declared, Revision::V2026_07)
                    .and_then(|()| members::extensions(declared))
                    .map(|()| String::new())
            }
            Some(other) => Err(format!("capabilities is {}", members::kind(other))),
        },
        CheckId::DiscTtlMs => ttl(result),
        CheckId::DiscCacheScope => cache_scope(result),
        CheckId::DiscServerInfoMeta => {
            let info = result
                .get("_meta")
                .and_then(|meta| meta.get(SERVER_INFO))
                .ok_or("_meta has no serverInfo")?;
            members::string(info, "name", "serverInfo.name")?;
            members::string(info, "version", "serverInfo.version")?;
            match info["version"].as_str() {
                Some("") => Err("serverInfo.version is empty".to_owned()),
                _ => Ok(String::new()),
            }
        }
        CheckId::DiscRcServerInfo => match result.get("serverInfo") {
            None => Ok(String::new()),
            Some(_) => Err("serverInfo stands at the top level".to_owned()),
        },
        CheckId::DepFeatures => match capability(Some(result), "logging") {
            None => Ok(String::new()),
            Some(_) => Err("logging is declared".to_owned()),
        },
        // That there is a result at all.
        _ => Ok(String::new()),
    }
}

pub(super) fn result_type(result: &Value) -> Result<String, String> {
    match result.get("resultType") {
        Some(Value::String(kind)) if kind == "complete" => Ok(String::new()),
        Some(other) => Err(format!("resultType is {other}")),
        None => Err("resultType is missing".to_owned()),
    }
}

pub(super) fn ttl(result: &Value) -> Result<String, String> {
    match result.get("ttlMs") {
        None => Err("ttlMs is missing".to_owned()),
        Some(ttl) if ttl.as_u64().is_some() => Ok(String::new()),
        Some(other) => Err(format!("ttlMs is {other}")),
    }
}

pub(super) fn cache_scope(result: &Value) -> Result<String, String> {
    match result.get("cacheScope") {
        None => Err("cacheScope is missing".to_owned()),
        Some(Value::String(scope)) if matches!(scope.as_str(), "public" | "private") => {
            Ok(scope.clone())
        }
        Some(other) => Err(format!("cacheScope is {other}")),
    }
}

fn versions(result: &Value) -> Result<String, String> {
    let listed = match result.get("supportedVersions") {
        None => return Err("supportedVersions is missing".to_owned()),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(format!("supportedVersions is {}", members::kind(other))),
    };
    let names: Option<Vec<&str>> = listed.iter().map(Value::as_str).collect();
    match names {
        None => Err("supportedVersions holds what is no string".to_owned()),
        Some(names) if names.contains(&mcp::MODERN_VERSION) => Ok(names.join(", ")),
        Some(_) => Err(format!("{} is not among them", mcp::MODERN_VERSION)),
    }
}

/// Statuses that a list of several demands comes to: the worst of them.
pub(super) fn first_fault<'t>(
    rule: &Rule,
    mut seen: impl Iterator<Item = Result<String, String>> + 't,
) -> Told {
    seen.find(Result::is_err).map_or_else(
        || (Status::Pass, String::new()),
        |fault| Bench::held(rule, fault),
    )
}
