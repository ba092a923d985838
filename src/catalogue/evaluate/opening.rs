//! Checks 1 to 31: what the `initialize` exchange shows. Those of authorization among them are `auth`'s.

use serde_json::Value;

use super::members;
use super::{Bench, Told, missing, outside, pass};
use crate::body::{EVENT_STREAM, Stream};
use crate::catalogue::heard::{self, Heard};
use crate::catalogue::id::CheckId;
use crate::catalogue::rule::{Revision, Rule};
use crate::catalogue::situation::Spoken;
use crate::catalogue::status::{Missing, Outside, Status};
use crate::coding;
use crate::envelope::Id;
use crate::exchange::{Answer, BodyEnd, Exchange, Fault, Leg};
use crate::hint;
use crate::mcp;
use crate::outcome::Hint;

/// A session id of fewer characters cannot hold enough chance.
const SHORTEST_SESSION: usize = 16;

/// A version that servers negotiate although no revision of the specification has it.
const PRE_RELEASE: &str = mcp::VERSIONS[0];

impl<'a> Bench<'a> {
    pub(super) fn about_opening(&self, rule: &Rule) -> Told {
        let told = match rule.id {
            CheckId::InitContentType => self.content_type(rule),
            CheckId::InitSingleObject => self.single_object(rule),
            CheckId::EnvJsonrpc
            | CheckId::EnvIdEcho
            | CheckId::EnvResultXorError
            | CheckId::EnvResultObject
            | CheckId::EnvErrorShape => self.envelope(rule),
            CheckId::InitRequiredFields
            | CheckId::InitOptionalTypes
            | CheckId::InitCapabilityTypes
            | CheckId::InitVersionEcho => self.result(rule),
            CheckId::InitVersionNoError => self.version_no_error(),
            CheckId::SessAscii | CheckId::SessStrength => self.session(rule),
            CheckId::SseHasResponse | CheckId::SseTerminates | CheckId::SsePriming => {
                self.stream(rule)
            }
            CheckId::SseNoEarlyRequests => self.early_requests(rule),
            CheckId::SseXAccel => self.buffering(rule),
            CheckId::EncUtf8 => self.encoding(rule),
            CheckId::ModernOnlyNamesVersions | CheckId::ModernOnlyStatus => self.refusal(rule),
            CheckId::CodeReservedRange | CheckId::CodeLegacyRange => self.codes(rule),
            _ => Err(missing(Missing::NotAsked)),
        };
        told.unwrap_or_else(|told| told)
    }

    /// The POST whose answer it is: not where the message came over an older stream.
    fn posted(&self) -> Result<&'a Heard<'a>, Told> {
        if self.situation.is_http_sse() {
            return Err(outside(Outside::Transport));
        }
        self.opening()
    }

    fn content_type(&self, rule: &Rule) -> Result<Told, Told> {
        let media = self.posted()?.answer.media_type();
        let is_good = matches!(media.as_str(), "application/json" | EVENT_STREAM);
        Ok(Self::held(
            rule,
            if is_good {
                Ok(media)
            } else {
                Err(format!("labelled {media:?}"))
            },
        ))
    }

    fn single_object(&self, rule: &Rule) -> Result<Told, Told> {
        let opening = self.posted()?;
        let Some(whole) = &opening.whole else {
            return Err(outside(Outside::Framing));
        };
        Ok(Self::held(
            rule,
            if whole.is_object() {
                Ok(String::new())
            } else {
                Err(format!("the body is {}", members::kind(whole)))
            },
        ))
    }

    fn envelope(&self, rule: &Rule) -> Result<Told, Told> {
        let opening = self.opening()?;
        let response = opening
            .response
            .as_ref()
            .ok_or_else(|| missing(Missing::NoMessage))?;
        let seen = match rule.id {
            CheckId::EnvJsonrpc => match response.get("jsonrpc") {
                Some(Value::String(version)) if version == "2.0" => Ok(String::new()),
                Some(other) => Err(format!("jsonrpc is {other}")),
                None => Err("jsonrpc is missing".to_owned()),
            },
            CheckId::EnvIdEcho => match heard::id(response, opening.ours) {
                Id::Ours | Id::OursAsFloat => Ok(String::new()),
                Id::OursAsString => Err("the id came back as a string".to_owned()),
                Id::Missing => Err("the id is missing".to_owned()),
                Id::Other(_) => Err("the id is another".to_owned()),
                Id::Null if opening.error().is_some() => {
                    return Ok((Status::Warn, "the id of the error is null".to_owned()));
                }
                Id::Null => Err("the id is null".to_owned()),
            },
            CheckId::EnvResultXorError => {
                match (opening.has_member("result"), opening.has_member("error")) {
                    (true, true) => Err("result and error both stand there".to_owned()),
                    (false, false) => Err("neither result nor error stands there".to_owned()),
                    _ => Ok(String::new()),
                }
            }
            CheckId::EnvResultObject => match opening.result() {
                None => return Err(outside(Outside::Response)),
                Some(Value::Object(_)) => Ok(String::new()),
                Some(other) => Err(format!("result is {}", members::kind(other))),
            },
            _ => match opening.error() {
                None => return Err(outside(Outside::Response)),
                Some(error) => error_shape(error),
            },
        };
        Ok(Self::held(rule, seen))
    }

    fn result(&self, rule: &Rule) -> Result<Told, Told> {
        let opening = self.opening()?;
        let result = opening.result().ok_or_else(|| outside(Outside::Response))?;
        let basis = || missing(Missing::Basis);
        if !result.is_object() {
            return Err(basis());
        }
        let since = |revision| self.situation.is_since(revision);
        let seen = match rule.id {
            CheckId::InitRequiredFields => required(result).map(|()| String::new()),
            CheckId::InitOptionalTypes => {
                let info = result.get("serverInfo").unwrap_or(&Value::Null);
                members::optional_string(result, "instructions", "instructions")
                    .and_then(|()| members::implementation(info, since))
                    .map(|()| String::new())
            }
            CheckId::InitCapabilityTypes => {
                let declared = result
                    .get("capabilities")
                    .filter(|it| it.is_object())
                    .ok_or_else(basis)?;
                let revision = match self.situation.spoken {
                    Spoken::Known(revision) => revision,
                    Spoken::AnyLegacy => Revision::V2024_11,
                };
                members::capabilities(declared, revision).map(|()| String::new())
            }
            _ => {
                let version = result
                    .get("protocolVersion")
                    .and_then(Value::as_str)
                    .ok_or_else(basis)?;
                return Ok(version_echo(rule, version));
            }
        };
        Ok(Self::held(rule, seen))
    }

    fn version_no_error(&self) -> Result<Told, Told> {
        let opening = self.opening()?;
        if let Some(result) = opening.result() {
            let answered = result.get("protocolVersion").and_then(Value::as_str);
            return match (answered, asked(opening.exchange)) {
                (Some(answered), Some(asked)) if answered != asked => {
                    Ok(pass(format!("{asked} was answered with {answered}")))
                }
                _ => Err(outside(Outside::Version)),
            };
        }
        let Some(error) = opening.error() else {
            return Err(missing(Missing::Basis));
        };
        let lists = error
            .get("data")
            .is_some_and(|data| !mcp::supported(data).is_empty());
        let text = error
            .get("message")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if lists || hint::family(text) == Some(Hint::Version) {
            let code = opening.code().unwrap_or_default();
            return Ok((Status::Warn, format!("the version was refused with {code}")));
        }
        Err(outside(Outside::Version))
    }

    fn session(&self, rule: &Rule) -> Result<Told, Told> {
        let opening = self.posted()?;
        let Some(id) = opening.answer.header("mcp-session-id") else {
            return Err(outside(Outside::Session));
        };
        let seen = if rule.id == CheckId::SessAscii {
            match id.chars().find(|it| !('\u{21}'..='\u{7e}').contains(it)) {
                None if id.is_empty() => Err("the id is empty".to_owned()),
                None => Ok(String::new()),
                Some(it) => Err(format!("the id has {:?}", it.escape_default().to_string())),
            }
        } else if id.len() < SHORTEST_SESSION {
            Err(format!("the id has {} characters", id.len()))
        } else if id.bytes().all(|it| it.is_ascii_digit()) {
            Err("the id is digits alone".to_owned())
        } else {
            Ok(format!("{} characters", id.len()))
        };
        Ok(Self::held(rule, seen))
    }

    fn stream(&self, rule: &Rule) -> Result<Told, Told> {
        if self.situation.is_http_sse() {
            return Err(outside(Outside::Transport));
        }
        let Some((answer, stream)) = self.first_stream() else {
            self.opening()?;
            return Err(outside(Outside::Framing));
        };
        let has_response = self
            .situation
            .opening
            .as_ref()
            .is_some_and(|it| it.response.is_some());
        let seen = match rule.id {
            CheckId::SseHasResponse => {
                let resumed = self.situation.decided.map(|it| it.leg) == Some(Leg::SseResume);
                match (has_response, resumed) {
                    (true, true) => Ok("after it was resumed".to_owned()),
                    (true, false) => Ok(String::new()),
                    (false, _) => Err("the stream held no response".to_owned()),
                }
            }
            CheckId::SseTerminates => match answer.end {
                _ if !has_response => return Err(missing(Missing::Basis)),
                BodyEnd::Complete => Ok(String::new()),
                BodyEnd::Left | BodyEnd::Broken(Fault::Deadline(_)) => {
                    Err("the stream stayed open after the response".to_owned())
                }
                BodyEnd::Page | BodyEnd::OverLimit | BodyEnd::Broken(_) => {
                    return Err(missing(Missing::Basis));
                }
            },
            _ => match stream.events.first() {
                Some(event) if event.data.is_empty() && !event.id.is_empty() => Ok(String::new()),
                Some(_) | None => Err("the first event is no priming event".to_owned()),
            },
        };
        Ok(Self::held(rule, seen))
    }

    /// The event stream that answers the POST itself.
    fn first_stream(&self) -> Option<(&'a Answer, Stream)> {
        let posted = self.situation.legs(Leg::Initialize).last();
        let heard = Heard::of(posted.or(self.situation.decided)?)?;
        (heard.answer.status == 200)
            .then_some(())
            .and(heard.stream)
            .map(|stream| (heard.answer, stream))
    }

    fn early_requests(&self, rule: &Rule) -> Result<Told, Told> {
        let opening = self.opening()?;
        if opening.stream.is_none() {
            return Err(outside(Outside::Framing));
        }
        let early = opening.requests().find(|method| *method != "ping");
        Ok(Self::held(
            rule,
            match early {
                None => Ok(String::new()),
                Some(method) => Err(format!("the server asked for {method:?}")),
            },
        ))
    }

    fn buffering(&self, rule: &Rule) -> Result<Told, Told> {
        let Some(discovery) = &self.situation.discovery else {
            return Err(self.unasked());
        };
        if discovery.stream.is_none() {
            return Err(outside(Outside::Framing));
        }
        let says_no = discovery
            .answer
            .header("x-accel-buffering")
            .is_some_and(|it| it.trim().eq_ignore_ascii_case("no"));
        Ok(Self::held(
            rule,
            if says_no {
                Ok(String::new())
            } else {
                Err("X-Accel-Buffering: no is missing".to_owned())
            },
        ))
    }

    fn encoding(&self, rule: &Rule) -> Result<Told, Told> {
        let Some(answer) = self.situation.decided.and_then(Exchange::answer) else {
            return Err(self
                .opening()
                .err()
                .unwrap_or_else(|| missing(Missing::NoMessage)));
        };
        // What is no message is not held to the encoding of messages; one that cannot be read is told by its label.
        let is_meant = answer.status == 200
            && matches!(
                answer.media_type().as_str(),
                "application/json" | EVENT_STREAM
            );
        if !is_meant {
            self.opening()?;
        }
        if answer.end != BodyEnd::Complete && answer.end != BodyEnd::Left {
            return Err(missing(Missing::Basis));
        }
        let label = answer
            .all("content-encoding")
            .collect::<Vec<_>>()
            .join(", ");
        let decoded = coding::decode(&label, &answer.body.0, answer.end == BodyEnd::Complete);
        if decoded.flaw.is_some() {
            return Err(missing(Missing::Basis));
        }
        Ok(Self::held(
            rule,
            match std::str::from_utf8(&decoded.bytes) {
                Ok(_) => Ok(String::new()),
                Err(error) => Err(format!("no UTF-8 at byte {}", error.valid_up_to())),
            },
        ))
    }

    /// How a server without `initialize` refuses one.
    fn refusal(&self, rule: &Rule) -> Result<Told, Told> {
        if !self.situation.is_modern_only() {
            return Err((self.situation.not_modern_only(), String::new()));
        }
        let refused = self
            .situation
            .legs(Leg::Initialize)
            .last()
            .and_then(Heard::of)
            .ok_or_else(|| missing(Missing::NotAsked))?;
        let status = refused.answer.status;
        let named = refused
            .error()
            .and_then(|it| it.get("data"))
            .map(mcp::supported)
            .unwrap_or_default();
        let seen = if rule.id == CheckId::ModernOnlyStatus {
            if status == 400 {
                Ok(String::new())
            } else {
                Err(format!("HTTP {status}"))
            }
        } else if mcp::names_modern(&named) {
            Ok(named.join(", "))
        } else {
            Err("no version is named".to_owned())
        };
        Ok(Self::held(rule, seen))
    }

    /// The codes that a server of 2026-07-28 sends.
    fn codes(&self, rule: &Rule) -> Result<Told, Told> {
        let whole = self.situation.is_met_as_modern();
        let codes: Vec<i64> = self
            .situation
            .exchanges
            .iter()
            .filter(|it| !it.leg.is_document() && (whole || heard::is_modern(it)))
            .filter_map(Heard::of)
            .filter(|it| !matches!(it.answer.status, 401..=403 | 429))
            .filter_map(|it| it.code())
            .collect();
        if codes.is_empty() {
            return Err(outside(Outside::Response));
        }
        let is_bad = |code: &&i64| {
            if rule.id == CheckId::CodeLegacyRange {
                (-32019..=-32000).contains(*code) && **code != -32002
            } else {
                **code == -32002 || (-32099..=-32023).contains(*code)
            }
        };
        Ok(Self::held(
            rule,
            match codes.iter().find(is_bad) {
                None => Ok(String::new()),
                Some(code) => Err(format!("code {code}")),
            },
        ))
    }
}

fn error_shape(error: &Value) -> Result<String, String> {
    if !error.is_object() {
        return Err(format!("error is {}", members::kind(error)));
    }
    match error.get("code") {
        Some(code) if code.as_i64().is_some() => {}
        // 1.0 is an integer to JSON.
        Some(code) if code.as_f64().is_some_and(|it| it.fract() == 0.0) => {}
        Some(code) => return Err(format!("error.code is {code}")),
        None => return Err("error.code is missing".to_owned()),
    }
    members::string(error, "message", "error.message").map(|()| String::new())
}

fn required(result: &Value) -> Result<(), String> {
    members::string(result, "protocolVersion", "protocolVersion")?;
    for member in ["capabilities", "serverInfo"] {
        match result.get(member) {
            None => return Err(format!("{member} is missing")),
            Some(Value::Object(_)) => {}
            Some(other) => return Err(format!("{member} is {}", members::kind(other))),
        }
    }
    let info = &result["serverInfo"];
    members::string(info, "name", "serverInfo.name")?;
    members::string(info, "version", "serverInfo.version")
}

fn version_echo(rule: &Rule, version: &str) -> Told {
    let seen = match Revision::named(version) {
        Some(revision) if revision.is_modern() => {
            Err(format!("{version} has no initialize to negotiate it by"))
        }
        Some(_) => Ok(version.to_owned()),
        None if version == PRE_RELEASE => {
            return (Status::Warn, format!("{version} is a pre-release"));
        }
        None => Err(format!("{version:?} is no revision")),
    };
    Bench::held(rule, seen)
}

/// The revision that a request of ours asked for.
fn asked(exchange: &Exchange) -> Option<String> {
    let body: Value = serde_json::from_str(&exchange.request.body).ok()?;
    let version = body.get("params")?.get("protocolVersion")?.as_str()?;
    Some(version.to_owned())
}
