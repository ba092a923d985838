//! Exchanges -> a reading: the ladder. Total and deterministic: any status, headers and bytes have
//! exactly one reading, and it depends on nothing but the stored evidence.
//!
//! The body is read before the status, except for 401, 402, 403 and 429, whose meaning no body changes.
//! What to ask next is `inquiry`'s affair; how attempts are folded into a row is `settle`'s.

mod gate;
mod heard;
mod ladder;
mod later;
mod message;
mod older;
mod opening;
#[cfg(test)]
mod tests;

use url::Url;

use crate::body::{self, Content, Stream};
use crate::envelope::{self, Said};
use crate::exchange::{Answer, BodyEnd, Exchange, Leg};
use crate::finding::{Check, Finding};
use crate::mcp::INITIALIZE_ID;
use crate::outcome::{
    BodyKind, DeadEnd, Detail, Era, Hint, Session, Transport, Unmeasured, Unprobeable, Verdict,
    verdict,
};

use heard::Heard;
pub use heard::is_answer;
use ladder::judge;
use later::{
    hear_discover, hear_redirect_target, note_connection, note_stream, note_transport, session,
};
use older::stream_reading;
pub use opening::{Discovery, discovery};

/// What one attempt at an endpoint tells.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The outcome, and what narrows it.
    pub detail: Detail,
    /// The roll-up.
    pub verdict: Verdict,
    /// What the words suggest.
    pub hint: Option<Hint>,
    /// What was noticed, each once, in the order of noticing.
    pub findings: Vec<Finding>,
    /// The HTTP status that decided.
    pub http_status: Option<u16>,
    /// The JSON-RPC error, where there was one: code and message.
    pub rpc_error: Option<(i64, String)>,
    /// The protocol generation seen.
    pub era: Era,
    /// The transport seen.
    pub transport: Option<Transport>,
    /// The revision answered with.
    pub protocol_version: Option<String>,
    /// `serverInfo`: name and version.
    pub server: Option<(String, String)>,
    /// The challenge's scheme.
    pub auth_scheme: Option<String>,
    /// The media type of the deciding answer.
    pub content_type: Option<String>,
    /// What the deciding body is.
    pub body_kind: Option<BodyKind>,
    /// Redirects followed.
    pub redirects: u32,
    /// How a session ended.
    pub session: Option<Session>,
    /// Where the deciding exchange stands among the attempt's.
    pub decided_by: usize,
}

impl Reading {
    /// A reading that rests on no exchange.
    #[must_use]
    pub fn of(detail: Detail) -> Self {
        let verdict = verdict(&detail, None, false);
        Self {
            detail,
            verdict,
            hint: None,
            findings: Vec::new(),
            http_status: None,
            rpc_error: None,
            era: Era::Unknown,
            transport: None,
            protocol_version: None,
            server: None,
            auth_scheme: None,
            content_type: None,
            body_kind: None,
            redirects: 0,
            session: None,
            decided_by: 0,
        }
    }

    fn note(&mut self, finding: impl Into<Finding>) {
        let finding = finding.into();
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

/// Reads the exchanges of one attempt at one endpoint, in the order they happened.
#[must_use]
pub fn classify(
    asked_version: &str,
    declared: Option<Transport>,
    exchanges: &[Exchange],
) -> Reading {
    let chain: Vec<&Exchange> = legs(exchanges, Leg::Initialize).collect();
    let mut reading = match (stream_reading(asked_version, exchanges), chain.last()) {
        (Some(mut reading), _) if reading.transport.is_some() || chain.is_empty() => {
            note_hops(&mut reading, &chain);
            reading
        }
        (_, Some(_)) => chain_reading(asked_version, exchanges, &chain),
        (Some(reading), None) => reading,
        (None, None) => match opening::discover_reading(asked_version, exchanges) {
            Some(reading) => reading,
            None => return Reading::of(Detail::Unmeasured(Unmeasured::Interrupted)),
        },
    };
    note_stream(&mut reading, exchanges);
    note_connection(&mut reading, exchanges);
    hear_discover(&mut reading, exchanges);
    note_transport(&mut reading, declared);
    hear_redirect_target(&mut reading, asked_version, exchanges);
    reading.session = session(exchanges);
    reading.verdict = verdict(
        &reading.detail,
        reading.hint,
        reading
            .findings
            .iter()
            .any(|it| it.check == Check::DiscoverOk),
    );
    reading
}

fn legs(exchanges: &[Exchange], leg: Leg) -> impl Iterator<Item = &Exchange> {
    exchanges.iter().filter(move |exchange| exchange.leg == leg)
}

fn position(exchanges: &[Exchange], wanted: &Exchange) -> usize {
    exchanges
        .iter()
        .position(|exchange| std::ptr::eq(exchange, wanted))
        .unwrap_or_default()
}

/// The redirects that led to what was read.
fn note_hops(reading: &mut Reading, chain: &[&Exchange]) {
    reading.redirects = u32::try_from(chain.len().saturating_sub(1)).unwrap_or(u32::MAX);
    for pair in chain.windows(2) {
        let status = pair[0].answer().map_or(0, |answer| answer.status);
        reading.note(Check::Redirected.of(status.to_string()));
        if let (Ok(from), Ok(to)) = (
            Url::parse(&pair[0].request.url),
            Url::parse(&pair[1].request.url),
        ) && from.origin() != to.origin()
        {
            reading.note(Check::RedirectedCrossOrigin);
        }
    }
}

/// The reading of the chain of `initialize` POSTs: one, or one for each redirect followed.
fn chain_reading(asked_version: &str, exchanges: &[Exchange], chain: &[&Exchange]) -> Reading {
    let last = chain[chain.len() - 1];
    let mut reading = judge(asked_version, last, chain);
    reading.decided_by = position(exchanges, last);
    if let Some(resumed) = legs(exchanges, Leg::SseResume).next() {
        let second = judge(asked_version, resumed, &[]);
        if matches!(second.detail, Detail::Framing(_) | Detail::Code(_)) {
            reading = Reading {
                decided_by: position(exchanges, resumed),
                ..second
            };
            reading.note(Check::SseResumed);
        }
    }
    note_hops(&mut reading, chain);
    if chain.len() > 1 {
        match reading.detail {
            Detail::Unprobeable(Unprobeable::PrivateAddress) => {
                reading.detail = Detail::DeadEnd(DeadEnd::BlockedPrivate);
            }
            Detail::Html => reading.detail = Detail::HtmlAfterRedirect,
            _ => {}
        }
    }
    reading
}

/// Whether an answer holds a JSON-RPC response.
#[must_use]
pub fn has_envelope(answer: &Answer) -> bool {
    match body::read(answer).content {
        Content::Json(json) => matches!(
            envelope::said(&json.value, INITIALIZE_ID),
            Said::Result { .. } | Said::Error { .. }
        ),
        Content::Events(stream) => Heard::in_stream(&stream).answer.is_some(),
        _ => false,
    }
}

/// The stream's closing before our answer, and what it can be resumed with.
#[must_use]
pub fn resumable(answer: &Answer) -> Option<Stream> {
    // Most answers are no stream: their bodies need not be read for this.
    if answer.status != 200
        || answer.end != BodyEnd::Complete
        || answer.media_type() == "application/json"
    {
        return None;
    }
    match body::read(answer).content {
        Content::Events(stream)
            if !stream.last_id.is_empty() && Heard::in_stream(&stream).answer.is_none() =>
        {
            Some(stream)
        }
        _ => None,
    }
}
