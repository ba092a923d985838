//! The messages of an event stream, and which of them answers us.

use serde_json::Value;

use crate::body::Stream;
use crate::envelope::{self, Said};
use crate::finding::{Check, Finding};
use crate::mcp::{INITIALIZE_ID, LATER_IDS};

use super::Reading;

/// What was heard over a stream.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The best answer to our request, and the name of its event.
    pub(super) answer: Option<(envelope::Owned, String)>,
    /// JSON-RPC messages that are no answer.
    pub(super) messages: usize,
    pub(super) bad_json: bool,
    pub(super) foreign: Option<crate::outcome::Envelope>,
    findings: Vec<Finding>,
}

impl Heard {
    pub(super) fn in_stream(stream: &Stream) -> Self {
        let mut heard = Self::default();
        for event in &stream.events {
            heard.event(&event.data, &event.name);
        }
        if let Some(event) = &stream.unterminated {
            let before = heard.answer.is_some();
            heard.event(&event.data, &event.name);
            if heard.answer.is_some() && !before {
                heard.findings.push(Check::SseUnterminatedEvent.into());
            }
        }
        heard
    }

    fn event(&mut self, data: &str, name: &str) {
        if data.is_empty() || name == "endpoint" {
            return;
        }
        let answered = self.answer.as_ref().is_some_and(|(said, _)| said.is_ours());
        let Ok(json) = crate::json::read(data) else {
            if !answered {
                self.bad_json = true;
                self.findings.push(Check::SseForeignEvent.into());
            }
            return;
        };
        match &json.value {
            Value::Array(items) => {
                self.findings.push(Check::SseArrayInEvent.into());
                for item in items {
                    self.message(item, name);
                }
            }
            value => self.message(value, name),
        }
    }

    fn message(&mut self, value: &Value, name: &str) {
        let answered = self.answer.as_ref().is_some_and(|(said, _)| said.is_ours());
        match envelope::said(value, INITIALIZE_ID) {
            Said::Foreign(why) => {
                if !answered {
                    self.foreign = Some(why);
                    self.findings.push(Check::SseForeignEvent.into());
                }
            }
            Said::Notification { .. } => self.messages += 1,
            Said::Request { .. } => {
                self.messages += 1;
                if !answered {
                    self.findings
                        .push(Check::ServerRequestBeforeResponse.into());
                }
            }
            said @ (Said::Result { .. } | Said::Error { .. }) => {
                let owned = said.to_owned();
                if self
                    .answer
                    .as_ref()
                    .is_none_or(|(best, _)| owned.rank() > best.rank())
                {
                    self.answer = Some((owned, name.to_owned()));
                }
            }
        }
    }

    pub(super) fn note(&self, reading: &mut Reading) {
        for finding in &self.findings {
            reading.note(finding.clone());
        }
    }
}

/// Whether an event's data answers our `initialize`, so that nothing more need be read.
#[must_use]
pub fn is_answer(data: &str) -> bool {
    let Ok(json) = crate::json::read(data) else {
        return false;
    };
    let answers = |value: &Value| match envelope::said(value, INITIALIZE_ID) {
        Said::Error { .. } => true,
        Said::Result { id, .. } => id.is_ours(),
        Said::Request { .. } | Said::Notification { .. } | Said::Foreign(_) => false,
    };
    // `server/discover` and what is asked after it go the same way.
    let answers_later = |value: &Value| {
        let id = value.get("id").and_then(Value::as_i64);
        let ours = id.filter(|it| LATER_IDS.contains(it));
        ours.is_some_and(|ours| matches!(envelope::said(value, ours), Said::Result { .. }))
    };
    match &json.value {
        Value::Array(items) => items
            .iter()
            .any(|item| answers(item) || answers_later(item)),
        value => answers(value) || answers_later(value),
    }
}
