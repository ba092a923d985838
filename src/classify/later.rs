//! What the legs after the deciding one add: era, session, where a redirect leads, how the connection was.

use serde_json::Value;

use crate::body::{self, Content};
use crate::envelope::{self, Said};
use crate::exchange::{Answer, Exchange, Leg};
use crate::finding::Check;
use crate::jsonrpc::UNSUPPORTED_PROTOCOL_VERSION;
use crate::mcp::{self, DISCOVER_ID};
use crate::outcome::{BodyKind, Detail, Era, Hint, Session, Transport};

use super::heard::is_answer;
use super::ladder::judge;
use super::{Reading, legs};

/// More than this to the first byte is slow, milliseconds.
const SLOW_FIRST_BYTE_MS: f64 = 3000.0;

/// What `server/discover` adds: the era, and the server's name where `initialize` gave none.
pub(super) fn hear_discover(reading: &mut Reading, exchanges: &[Exchange]) {
    let Some(answer) = legs(exchanges, Leg::Discover)
        .last()
        .and_then(Exchange::answer)
    else {
        return;
    };
    let Some(value) = answer_value(answer) else {
        return;
    };
    match envelope::said(&value, DISCOVER_ID) {
        Said::Result { result, id, .. } if id.is_ours() => match mcp::discovered(result) {
            Ok(found) => {
                reading.note(Check::DiscoverOk);
                if let Some((path, problem)) = found.caching {
                    reading.note(Check::DiscoverInvalid.of(format!("{path}_{problem}")));
                }
                if found.rc_shape {
                    reading.note(Check::DiscoverRcShape);
                }
                if reading.era == Era::Legacy {
                    reading.era = Era::Dual;
                } else {
                    reading.era = Era::Modern;
                    if !matches!(reading.detail, Detail::Framing(_)) {
                        reading.note(Check::ModernOnlyServer);
                        reading.hint = Some(Hint::EraModern);
                    }
                    reading.protocol_version = found.versions.iter().max().cloned();
                    reading.server = found
                        .name
                        .map(|name| (name, found.server_version.unwrap_or_default()));
                }
            }
            Err((path, problem)) => {
                reading.note(Check::DiscoverInvalid.of(format!("{path}_{problem}")));
            }
        },
        Said::Error {
            code: UNSUPPORTED_PROTOCOL_VERSION,
            data: Some(data),
            ..
        } if mcp::names_modern(&mcp::supported(data)) => {
            reading.era = if reading.era == Era::Legacy {
                Era::Dual
            } else {
                Era::Modern
            };
        }
        _ => {}
    }
    // A refusal in the modern era's own words, where nothing contradicts it.
    if reading.era == Era::Unknown
        && reading
            .findings
            .iter()
            .any(|it| it.check == Check::ModernOnlyServer)
    {
        reading.hint = Some(Hint::EraModern);
    }
}

/// The JSON-RPC response in an answer, framed either way.
pub(super) fn answer_value(answer: &Answer) -> Option<Value> {
    match body::read(answer).content {
        Content::Json(json) => Some(json.value),
        Content::Events(stream) => stream
            .events
            .iter()
            .find(|event| is_answer(&event.data))
            .and_then(|event| serde_json::from_str(&event.data).ok()),
        _ => None,
    }
}

pub(super) fn hear_redirect_target(
    reading: &mut Reading,
    asked_version: &str,
    exchanges: &[Exchange],
) {
    let Some(target) = legs(exchanges, Leg::RedirectTarget).last() else {
        return;
    };
    let said = judge(asked_version, target, &[target]);
    if matches!(said.detail, Detail::Framing(_)) {
        reading.note(Check::RedirectTargetWouldSucceed);
        reading.note(Check::RedirectTargetSays.of(said.detail.outcome().name()));
    } else {
        reading.note(Check::RedirectTargetSays.of(format!(
            "{}/{}",
            said.detail.outcome(),
            said.detail
        )));
    }
}

pub(super) fn session(exchanges: &[Exchange]) -> Option<Session> {
    // In the order of the enum, the worst of several: closed, refused, left.
    exchanges
        .iter()
        .filter(|exchange| exchange.leg != Leg::Close && !exchange.leg.is_document())
        .filter_map(Exchange::session)
        .map(|id| ending(exchanges, id))
        .max()
}

fn ending(exchanges: &[Exchange], session: &str) -> Session {
    let close = exchanges
        .iter()
        .rfind(|exchange| exchange.closes() == Some(session));
    match close.and_then(Exchange::answer).map(|answer| answer.status) {
        // 404: it is gone already.
        Some(200..=299 | 404 | 410) => Session::Closed,
        Some(_) => Session::Refused,
        None => Session::Left,
    }
}

pub(super) fn note_stream(reading: &mut Reading, exchanges: &[Exchange]) {
    if reading.transport == Some(Transport::HttpSse) {
        reading.note(Check::LegacySse);
    }
    for answer in legs(exchanges, Leg::SseStream).filter_map(Exchange::answer) {
        if (200..300).contains(&answer.status) && body::read(answer).kind == BodyKind::Html {
            reading.note(Check::GetServesHtml);
        }
    }
}

pub(super) fn note_connection(reading: &mut Reading, exchanges: &[Exchange]) {
    let Some(decided) = exchanges.get(reading.decided_by) else {
        return;
    };
    if exchanges.iter().any(|it| it.connection.ipv6_unreachable) {
        reading.note(Check::Ipv6Unreachable);
    }
    let first_byte = decided.timing.first_byte_ms.unwrap_or_default();
    if decided.answer().is_some() && first_byte > SLOW_FIRST_BYTE_MS {
        reading.note(Check::SlowFirstByte);
    }
}

pub(super) fn note_transport(reading: &mut Reading, declared: Option<Transport>) {
    if let (Some(declared), Some(seen)) = (declared, reading.transport)
        && declared != seen
        && (matches!(reading.detail, Detail::Framing(_))
            || reading
                .findings
                .iter()
                .any(|it| it.check == Check::DiscoverOk))
    {
        reading.note(Check::TransportMismatch.of(format!("declared_{declared}")));
    }
}
