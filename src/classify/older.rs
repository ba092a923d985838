//! The HTTP+SSE transport of 2024-11-05: a stream that names an endpoint, and the message `POSTed` there.

use url::Url;

use crate::body::{self, Content, Stream};
use crate::exchange::{Answer, BodyEnd, Drop, Exchange, Fault, Leg, Reply, Stage};
use crate::mcp;
use crate::outcome::{BodyKind, Detail, Framing, Outcome, Transport, Violation};

use super::heard::Heard;
use super::ladder::{fault_detail, judge};
use super::message::message;
use super::{Reading, has_envelope, legs, position};

/// The reading of the HTTP+SSE transport of 2024-11-05, where a GET was answered with a stream
/// that is one, or with something that ends the matter. `transport` is set where it is a stream.
pub(super) fn stream_reading(asked_version: &str, exchanges: &[Exchange]) -> Option<Reading> {
    // The last stream asked for: an earlier one led elsewhere.
    let stream = legs(exchanges, Leg::SseStream).last()?;
    let answer = match &stream.reply {
        Reply::Fault(fault) => {
            return Some(Reading {
                decided_by: position(exchanges, stream),
                ..Reading::of(fault_detail(*fault))
            });
        }
        Reply::Answer(answer) => answer,
    };
    let Some(opened) = opened_stream(answer) else {
        let reading = judge(asked_version, stream, &[]);
        // A POST that is not allowed and a GET that wants a key: this transport, behind a gate.
        let posted = legs(exchanges, Leg::Initialize)
            .last()
            .and_then(Exchange::answer);
        let is_gate = matches!(
            reading.detail.outcome(),
            Outcome::AuthRequired | Outcome::PaymentRequired | Outcome::Forbidden
        ) && posted.is_some_and(|answer| answer.status == 405);
        return Some(Reading {
            decided_by: position(exchanges, stream),
            transport: is_gate.then_some(Transport::HttpSse),
            ..reading
        });
    };
    let mut reading = Reading::of(Detail::Stage(Stage::SseNoEndpoint));
    reading.decided_by = position(exchanges, stream);
    reading.http_status = Some(answer.status);
    reading.content_type = Some(answer.media_type()).filter(|it| !it.is_empty());
    reading.body_kind = Some(BodyKind::Sse);
    let Some(endpoint) = opened.events.iter().find(|event| event.name == "endpoint") else {
        // Whoever answers POST as well is not this transport: let the POST speak unless it refused like one.
        let posted = legs(exchanges, Leg::Initialize)
            .last()
            .and_then(Exchange::answer);
        if posted
            .is_none_or(|answer| matches!(answer.status, 400 | 404 | 405) && !has_envelope(answer))
        {
            reading.transport = Some(Transport::HttpSse);
        }
        if !matches!(answer.end, BodyEnd::Broken(Fault::Deadline(_))) {
            reading.detail = match answer.end {
                BodyEnd::OverLimit => Detail::Violation(Violation::BodyOverLimit),
                BodyEnd::Broken(Fault::Local(fault)) => fault_detail(Fault::Local(fault)),
                _ => Detail::Drop(Drop::SseClosedBeforeResponse),
            };
        }
        return Some(reading);
    };
    reading.transport = Some(Transport::HttpSse);
    if let Ok(here) = Url::parse(&stream.request.url)
        && let Err(violation) = mcp::message_endpoint(&here, &endpoint.data)
    {
        reading.detail = Detail::Violation(violation);
        return Some(reading);
    }
    Some(message_reading(
        asked_version,
        exchanges,
        reading,
        answer,
        &opened,
    ))
}

/// The `initialize` that was `POSTed` to a stream's endpoint: answered over the stream, or by the POST itself.
pub(super) fn message_reading(
    asked_version: &str,
    exchanges: &[Exchange],
    mut reading: Reading,
    answer: &Answer,
    opened: &Stream,
) -> Reading {
    let posted = legs(exchanges, Leg::SseMessage).last();
    let heard = Heard::in_stream(opened);
    heard.note(&mut reading);
    if let Some((said, _)) = &heard.answer {
        return message(
            asked_version,
            reading,
            answer,
            &said.borrowed(),
            Framing::HttpSse,
        );
    }
    if let Some(posted) = posted {
        let second = Reading {
            decided_by: position(exchanges, posted),
            ..judge(asked_version, posted, &[])
        };
        match second.detail {
            Detail::Framing(_) => {
                let detail = Detail::Framing(Framing::HttpSse);
                return Reading {
                    detail,
                    transport: Some(Transport::HttpSse),
                    ..second
                };
            }
            // A 2xx without an answer means that the answer comes over the stream.
            _ if second
                .http_status
                .is_some_and(|status| (200..300).contains(&status))
                && second.rpc_error.is_none() => {}
            _ => {
                return Reading {
                    transport: Some(Transport::HttpSse),
                    ..second
                };
            }
        }
    }
    reading.detail = match answer.end {
        BodyEnd::OverLimit => Detail::Violation(Violation::BodyOverLimit),
        BodyEnd::Broken(Fault::Local(fault)) => fault_detail(Fault::Local(fault)),
        BodyEnd::Broken(Fault::Deadline(_)) => Detail::Stage(Stage::SseNoResponse),
        BodyEnd::Complete | BodyEnd::Left | BodyEnd::Page | BodyEnd::Broken(_) => {
            Detail::Drop(Drop::SseClosedBeforeResponse)
        }
    };
    reading
}

/// The events of an answer to a GET, where it is an event stream.
pub(super) fn opened_stream(answer: &Answer) -> Option<Stream> {
    if answer.status != 200 || answer.media_type() != body::EVENT_STREAM {
        return None;
    }
    match body::read(answer).content {
        Content::Events(stream) => Some(stream),
        _ => None,
    }
}
