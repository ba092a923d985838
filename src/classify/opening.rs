//! `server/discover` as the opening: what it tells where nothing else was asked, and what it leads to.

use crate::body::{self, Content};
use crate::envelope::{self, Said};
use crate::exchange::{Answer, Exchange, Leg};
use crate::jsonrpc::UNSUPPORTED_PROTOCOL_VERSION;
use crate::mcp::{self, DISCOVER_ID};
use crate::outcome::{Detail, Framing, Transport};

use super::ladder::judge;
use super::later::answer_value;
use super::{Reading, legs, position};

/// What an answer to `server/discover` leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discovery {
    /// A valid `DiscoverResult`.
    Found,
    /// The server does not speak the version asked for, and offers this one (2026-07-28 versioning).
    Offers(String),
    /// Neither.
    Nothing,
}

/// Reads an answer to `server/discover`.
#[must_use]
pub fn discovery(answer: &Answer) -> Discovery {
    let Some(value) = answer_value(answer) else {
        return Discovery::Nothing;
    };
    match envelope::said(&value, DISCOVER_ID) {
        Said::Result { result, id, .. } if id.is_ours() && mcp::discovered(result).is_ok() => {
            Discovery::Found
        }
        Said::Error {
            code: UNSUPPORTED_PROTOCOL_VERSION,
            data: Some(data),
            ..
        } => {
            let offered = mcp::supported(data)
                .into_iter()
                .filter(|version| mcp::is_modern(version))
                .max();
            offered.map_or(Discovery::Nothing, Discovery::Offers)
        }
        _ => Discovery::Nothing,
    }
}

/// The reading of an attempt that asked `server/discover` and needed nothing else.
pub(super) fn discover_reading(asked_version: &str, exchanges: &[Exchange]) -> Option<Reading> {
    let last = legs(exchanges, Leg::Discover).last()?;
    let mut reading = Reading {
        decided_by: position(exchanges, last),
        ..judge(asked_version, last, &[])
    };
    if let Some(answer) = last.answer()
        && (200..300).contains(&answer.status)
        && discovery(answer) == Discovery::Found
    {
        let framing = if matches!(body::read(answer).content, Content::Events(_)) {
            Framing::Sse
        } else {
            Framing::Json
        };
        reading.detail = Detail::Framing(framing);
        reading.transport = Some(Transport::StreamableHttp);
        reading.hint = None;
    }
    Some(reading)
}
