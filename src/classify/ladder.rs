//! One answer, read from the top rung down: gates, redirects, the body, the status.

use serde_json::Value;

use crate::body::{self, Body, Content, Stream};
use crate::envelope::{self, Said};
use crate::exchange::{
    Answer, BodyEnd, ConnectFault, Drop, Exchange, Fault, LocalFault, Reply, Stage,
};
use crate::finding::Check;
use crate::hint;
use crate::mcp::INITIALIZE_ID;
use crate::outcome::{
    BodyKind, Detail, Framing, Hint, NotJson, Turn, Unmeasured, Unprobeable, Violation,
};
use crate::redirect::{self, Step};

use super::Reading;
use super::gate::{forbidden, payment, rate_limited, unauthorized};
use super::heard::Heard;
use super::message::message;

/// The reading of one exchange that carried `initialize`. `chain` ends with it, where redirects led to it.
pub(super) fn judge(asked_version: &str, exchange: &Exchange, chain: &[&Exchange]) -> Reading {
    let answer = match &exchange.reply {
        Reply::Fault(fault) => return Reading::of(fault_detail(*fault)),
        Reply::Answer(answer) => answer,
    };
    let body = body::read(answer);
    let mut reading = Reading::of(Detail::Status(answer.status));
    reading.http_status = Some(answer.status);
    reading.content_type = Some(answer.media_type()).filter(|it| !it.is_empty());
    reading.body_kind = Some(body.kind);
    reading.findings.clone_from(&body.findings);
    if answer.version == "HTTP/1.0" {
        reading.note(Check::Http10);
    }
    note_session_header(&mut reading, answer);

    match answer.status {
        401 => return unauthorized(reading, answer, &body),
        402 => return payment(reading, answer, &body),
        403 => return forbidden(reading, answer, &body),
        429 => return rate_limited(reading, answer, &body),
        _ => {}
    }
    match redirect::step(chain) {
        Step::Here => {}
        Step::Follow(_) => {
            // Only where the run was stopped before the next hop was asked.
            reading.detail = Detail::Redirect(answer.status, None);
            return reading;
        }
        Step::Points(_, turn) => {
            reading.detail = Detail::Redirect(answer.status, turn);
            match turn {
                Some(Turn::Login) => reading.hint = Some(Hint::AuthLike),
                Some(Turn::HttpsUpgrade) => reading.note(Check::ListedAsPlainHttp),
                Some(Turn::Downgrade) => reading.note(Check::RedirectDowngrade),
                None => {}
            }
            return reading;
        }
        Step::Nowhere(end) => {
            reading.detail = Detail::DeadEnd(end);
            return reading;
        }
    }
    read_body(asked_version, reading, answer, &body)
}

pub(super) fn fault_detail(fault: Fault) -> Detail {
    match fault {
        Fault::Dns(it) => Detail::Dns(it),
        Fault::PrivateAddress(_) => Detail::Unprobeable(Unprobeable::PrivateAddress),
        Fault::Excluded => Detail::Unprobeable(Unprobeable::Excluded),
        Fault::Connect(it) => Detail::Connect(it),
        Fault::Tls(it) => Detail::Tls(it),
        Fault::Deadline(stage) => Detail::Stage(stage),
        Fault::Dropped(it) => Detail::Drop(it),
        Fault::Local(LocalFault::NoNetwork) => Detail::Connect(ConnectFault::NoRoute),
        Fault::Local(LocalFault::Interrupted) => Detail::Unmeasured(Unmeasured::Interrupted),
        Fault::Local(LocalFault::Exhausted | LocalFault::Instrument) => {
            Detail::Unmeasured(Unmeasured::InstrumentError)
        }
    }
}

/// Rung 4 and below: the body, then the status.
pub(super) fn read_body(
    asked_version: &str,
    mut reading: Reading,
    answer: &Answer,
    body: &Body,
) -> Reading {
    let status = answer.status;
    let is_2xx = (200..300).contains(&status);
    let broken = match answer.end {
        BodyEnd::Broken(fault) => Some(fault),
        BodyEnd::Complete | BodyEnd::Left | BodyEnd::Page | BodyEnd::OverLimit => None,
    };
    if broken.is_some_and(|fault| matches!(fault, Fault::Dropped(Drop::IncompleteBody)))
        && answer.header("content-length").is_some()
    {
        reading.note(Check::ContentLengthMismatch);
    }
    match &body.content {
        Content::Events(stream) => return read_stream(asked_version, reading, answer, stream),
        _ if broken.is_some() => {
            reading.detail = broken.map(fault_detail).unwrap_or(reading.detail);
            return reading;
        }
        Content::Json(json) => return read_json(asked_version, reading, answer, &json.value),
        Content::Html if is_2xx => {
            reading.detail = Detail::Html;
            reading.hint = hint::family(&body.text).filter(|it| {
                matches!(
                    it,
                    Hint::AuthLike | Hint::BotChallenge | Hint::DeploymentGone
                )
            });
            return reading;
        }
        Content::OverLimit if is_2xx => {
            reading.detail = Detail::Violation(Violation::BodyOverLimit);
            return reading;
        }
        Content::Not(why) if is_2xx => reading.detail = Detail::NotJson(*why),
        Content::Truncated if is_2xx => reading.detail = Detail::Drop(Drop::IncompleteBody),
        Content::Empty
        | Content::Html
        | Content::OverLimit
        | Content::Not(_)
        | Content::Truncated => {}
    }
    if is_2xx {
        if status == 202 && body.content == Content::Empty {
            reading.note(Check::Status202ForRequest);
        }
        // Broken JSON has words of its own: its member names.
        reading.hint = hint::family(&body.text).filter(|it| {
            body.kind == BodyKind::Text
                && matches!(
                    it,
                    Hint::AuthLike | Hint::PaymentLike | Hint::BotChallenge | Hint::DeploymentGone
                )
        });
        return reading;
    }
    by_status(reading, status, body)
}

/// No envelope, and no success: the status speaks, and the words give a hint.
pub(super) fn by_status(mut reading: Reading, status: u16, body: &Body) -> Reading {
    reading.detail = Detail::Status(status);
    if body.kind == BodyKind::Html {
        reading.note(Check::HtmlBody);
    }
    let words = hint::family(&body.text);
    reading.hint = match (status, words) {
        (407, _) => Some(Hint::Vantage),
        (404 | 410, Some(Hint::DeploymentGone)) => {
            reading.note(Check::PlatformAppMissing);
            words
        }
        (404 | 405 | 410, _) | (500.., Some(Hint::Session)) => None,
        (421, _) => {
            reading.note(Check::HostGuardMisconfigured);
            words.filter(|it| *it == Hint::McpSdkFingerprint)
        }
        (500.., Some(Hint::DeploymentGone | Hint::BotChallenge)) => words,
        (530, _) => Some(Hint::DeploymentGone),
        // An error that knows what it wants does not pass by itself.
        (500.., Some(Hint::AuthLike | Hint::PaymentLike)) => words,
        (500.., _) if words != Some(Hint::Session) => Some(Hint::Transient),
        (_, Some(Hint::Transient)) => None,
        (_, Some(Hint::Session)) if !matches!(status, 400 | 404 | 409) => None,
        _ => words,
    };
    match (status, reading.hint) {
        (406, _) => reading.note(Check::RejectedAcceptHeader),
        (415, _) => reading.note(Check::RejectedContentType),
        (400, Some(Hint::Version)) => reading.note(if missing_version_header(&body.text) {
            Check::RequiresVersionHeader
        } else {
            Check::VersionRejectedAtHttp
        }),
        (400 | 404, Some(Hint::Session)) => reading.note(Check::RejectedForMissingSession),
        (400..500, Some(Hint::AuthLike)) => reading.note(Check::AuthWithWrongStatus),
        _ => {}
    }
    reading
}

pub(super) fn missing_version_header(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("header")
        && ["missing", "required", "requires"]
            .iter()
            .any(|word| text.contains(word))
}

/// A body that is one JSON value.
pub(super) fn read_json(
    asked_version: &str,
    mut reading: Reading,
    answer: &Answer,
    value: &Value,
) -> Reading {
    let said = envelope::said(value, INITIALIZE_ID);
    match said {
        Said::Error { .. } | Said::Result { .. } => {
            message(asked_version, reading, answer, &said, Framing::Json)
        }
        Said::Request { .. } | Said::Notification { .. } if (200..300).contains(&answer.status) => {
            reading.detail = Detail::Violation(Violation::NoResponse);
            if matches!(
                said,
                Said::Request {
                    method: "initialize",
                    ..
                }
            ) {
                reading.note(Check::EchoesRequest);
            }
            reading
        }
        Said::Request { .. } | Said::Notification { .. } | Said::Foreign(_) => {
            foreign(reading, answer.status, value, &said)
        }
    }
}

/// JSON that is no JSON-RPC response.
pub(super) fn foreign(
    mut reading: Reading,
    status: u16,
    value: &Value,
    said: &Said<'_>,
) -> Reading {
    let text = value.to_string();
    match value {
        Value::Array(items) if matches!(items.as_slice(), [only] if matches!(envelope::said(only, INITIALIZE_ID), Said::Result { .. } | Said::Error { .. })) =>
        {
            reading.note(Check::BatchArrayReply);
        }
        Value::String(inner)
            if crate::json::read(inner).is_ok_and(|it| it.value.get("jsonrpc").is_some()) =>
        {
            reading.note(Check::DoubleEncodedEnvelope);
        }
        Value::Object(members) => {
            if envelope::holds_request(value, INITIALIZE_ID) {
                reading.note(Check::EchoesRequest);
            }
            if members.get("code").is_some_and(Value::is_i64)
                && members.get("message").is_some_and(Value::is_string)
            {
                reading.note(Check::MalformedEnvelopeBody);
            }
        }
        _ => {}
    }
    if let Said::Foreign(why) = said
        && (200..300).contains(&status)
    {
        reading.detail = Detail::Envelope(*why);
        if status == 202 {
            reading.note(Check::Status202ForRequest);
        }
        reading.hint = hint::family(&words(value)).filter(|it| {
            matches!(
                it,
                Hint::AuthLike | Hint::PaymentLike | Hint::DeploymentGone
            )
        });
        return reading;
    }
    let body = Body {
        content: Content::Empty,
        kind: BodyKind::Json,
        text,
        findings: Vec::new(),
    };
    by_status(reading, status, &body)
}

/// The strings of an error-like object: what it says, and not how it calls what it says.
pub(super) fn words(value: &Value) -> String {
    const SAYING: [&str; 7] = [
        "error",
        "message",
        "detail",
        "error_description",
        "title",
        "reason",
        "status",
    ];
    let mut words = String::new();
    let mut open = vec![value];
    for _ in 0..64 {
        match open.pop() {
            Some(Value::String(text)) => {
                words.push_str(text);
                words.push('\n');
            }
            Some(Value::Object(members)) => {
                open.extend(SAYING.iter().filter_map(|member| members.get(*member)));
            }
            Some(_) => {}
            None => break,
        }
    }
    words
}

/// An event stream that came in answer to the `initialize` POST.
pub(super) fn read_stream(
    asked_version: &str,
    mut reading: Reading,
    answer: &Answer,
    stream: &Stream,
) -> Reading {
    let heard = Heard::in_stream(stream);
    heard.note(&mut reading);
    if let Some((said, event_name)) = &heard.answer {
        if !event_name.is_empty() && event_name != "message" {
            reading.note(Check::SseNonstandardEventName.of(event_name.as_str()));
        }
        if answer.end == BodyEnd::Left {
            reading.note(Check::SseNotClosedAfterResponse);
        }
        return message(
            asked_version,
            reading,
            answer,
            &said.borrowed(),
            Framing::Sse,
        );
    }
    if !(200..300).contains(&answer.status) {
        let body = Body {
            content: Content::Empty,
            kind: BodyKind::Sse,
            text: String::new(),
            findings: Vec::new(),
        };
        return by_status(reading, answer.status, &body);
    }
    reading.detail = match answer.end {
        BodyEnd::OverLimit => Detail::Violation(Violation::BodyOverLimit),
        BodyEnd::Broken(Fault::Deadline(_)) => Detail::Stage(Stage::SseNoResponse),
        BodyEnd::Broken(Fault::Local(fault)) => fault_detail(Fault::Local(fault)),
        _ if heard.messages == 0 && heard.bad_json => Detail::NotJson(NotJson::SseData),
        _ if heard.messages == 0 && heard.foreign.is_some() => {
            heard.foreign.map_or(Detail::SseNoEvents, Detail::Envelope)
        }
        BodyEnd::Broken(_) => Detail::Drop(Drop::SseClosedBeforeResponse),
        BodyEnd::Complete | BodyEnd::Left | BodyEnd::Page => {
            if heard.messages == 0
                && stream.events.is_empty()
                && stream.unterminated.is_none()
                && stream.last_id.is_empty()
            {
                Detail::SseNoEvents
            } else {
                Detail::Drop(Drop::SseClosedBeforeResponse)
            }
        }
    };
    reading
}

pub(super) fn note_session_header(reading: &mut Reading, answer: &Answer) {
    let mut ids = answer.all("mcp-session-id");
    let Some(first) = ids.next() else { return };
    if ids.next().is_some() {
        reading.note(Check::SessionIdDuplicated);
    }
    // Visible ASCII (2025-11-25 transports, "Session Management" 1).
    if first.is_empty() || !first.bytes().all(|byte| (0x21..=0x7E).contains(&byte)) {
        reading.note(Check::SessionIdInvalidChars);
    }
}
