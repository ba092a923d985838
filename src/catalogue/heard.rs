//! One answer, read for the message it should hold, however wrong that message is. `classify` reads answers for
//! their outcome and stops at the first thing wrong; a check wants to see past the others' failures.

use serde_json::Value;

use crate::body::{self, Content, Stream};
use crate::envelope;
use crate::exchange::{Answer, Exchange, Leg, Request};
use crate::mcp;

/// An answer and the messages in it.
#[derive(Debug)]
pub(super) struct Heard<'a> {
    pub(super) exchange: &'a Exchange,
    pub(super) answer: &'a Answer,
    /// The body, where it is one JSON value.
    pub(super) whole: Option<Value>,
    /// The events, where it is a stream.
    pub(super) stream: Option<Stream>,
    /// Messages of the server's own, before and beside the response.
    pub(super) others: Vec<Value>,
    /// What is meant as the response to our request.
    pub(super) response: Option<Value>,
    /// The id of our request.
    pub(super) ours: i64,
}

impl<'a> Heard<'a> {
    /// `None` where there was no answer.
    pub(super) fn of(exchange: &'a Exchange) -> Option<Self> {
        let answer = exchange.answer()?;
        let ours = id_of(&exchange.request).unwrap_or(mcp::INITIALIZE_ID);
        let (mut whole, mut stream, mut messages) = (None, None, Vec::new());
        match body::read(answer).content {
            Content::Json(json) => {
                match &json.value {
                    Value::Array(items) => messages.extend(items.iter().cloned()),
                    value => messages.push(value.clone()),
                }
                whole = Some(json.value);
            }
            Content::Events(events) => {
                for event in events.events.iter().chain(&events.unterminated) {
                    match crate::json::read(&event.data).map(|it| it.value) {
                        Ok(Value::Array(items)) => messages.extend(items),
                        Ok(value) => messages.push(value),
                        Err(_) => {}
                    }
                }
                stream = Some(events);
            }
            Content::Empty
            | Content::Html
            | Content::Not(_)
            | Content::OverLimit
            | Content::Truncated => {}
        }
        let best = (0..messages.len())
            .filter(|&at| rank(&messages[at], ours) > 0)
            .max_by_key(|&at| (rank(&messages[at], ours), std::cmp::Reverse(at)));
        let response = best.map(|at| messages.remove(at));
        Some(Self {
            exchange,
            answer,
            whole,
            stream,
            others: messages,
            response,
            ours,
        })
    }

    pub(super) fn has_member(&self, name: &str) -> bool {
        self.response
            .as_ref()
            .is_some_and(|it| it.get(name).is_some())
    }

    /// The result, where the response is one. A null beside an error object is none.
    pub(super) fn result(&self) -> Option<&Value> {
        let response = self.response.as_ref()?;
        let result = response.get("result")?;
        let refused = response.get("error").is_some_and(Value::is_object);
        (!result.is_null() || !refused).then_some(result)
    }

    /// The error, where the response is one.
    pub(super) fn error(&self) -> Option<&Value> {
        if self.result().is_some() {
            return None;
        }
        self.response.as_ref()?.get("error")
    }

    pub(super) fn code(&self) -> Option<i64> {
        self.error()?.get("code")?.as_i64()
    }

    /// Requests of the server's own in a stream, by their methods.
    pub(super) fn requests(&self) -> impl Iterator<Item = &str> {
        self.others
            .iter()
            .filter(|it| it.get("id").is_some())
            .filter_map(|it| it.get("method")?.as_str())
    }

    /// Notifications in a stream, by their methods.
    pub(super) fn notifications(&self) -> impl Iterator<Item = &str> {
        self.others
            .iter()
            .filter(|it| it.get("id").is_none())
            .filter_map(|it| it.get("method")?.as_str())
    }
}

/// Whether a request describes itself, as those of 2026-07-28 do.
pub(super) fn is_modern(exchange: &Exchange) -> bool {
    exchange
        .request
        .headers
        .iter()
        .any(|(name, value)| name == "MCP-Protocol-Version" && value == mcp::MODERN_VERSION)
        || exchange.leg == Leg::Discover
}

/// The id that a request of ours was sent with.
pub(super) fn id_of(request: &Request) -> Option<i64> {
    let body: Value = serde_json::from_str(&request.body).ok()?;
    body.get("id")?.as_i64()
}

/// How likely a value is meant as the response: 0 where it is not.
fn rank(value: &Value, ours: i64) -> u8 {
    let has = |member: &str| value.get(member).is_some();
    if !value.is_object() || has("method") {
        return 0;
    }
    let answers = has("result") || value.get("error").is_some_and(Value::is_object);
    let is_meant = has("jsonrpc") || (has("id") && answers);
    match (is_meant, answers) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) if id(value, ours).is_ours() => 3,
        (true, true) => 2,
    }
}

/// How the id of a response relates to ours.
pub(super) fn id(response: &Value, ours: i64) -> envelope::Id {
    envelope::Id::of(response.get("id"), ours)
}
