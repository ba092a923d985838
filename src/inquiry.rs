//! What to ask an endpoint next, given everything asked and answered so far. Pure: `probe` sends, this decides.
//!
//! An inquiry is one endpoint's whole story: attempts, each a sequence of legs. Because the next leg follows
//! from the recorded ones alone, an interrupted inquiry goes on from its evidence, and nothing is asked twice.

use url::Url;

use crate::catalogue::plan;
use crate::classify::{self, Reading, classify};
use crate::exchange::{BodyEnd, Exchange, Fault, Leg, Reply, Request, Stage};
use crate::mcp::{Identity, Resume};
use crate::names::names;
use crate::outcome::{Detail, Transport, Turn};
use crate::redirect::{self, Step};
use crate::settle::{Settled, is_doubtful, settle};
use crate::target::Target;

/// The longest a server can make us wait before its stream is resumed, milliseconds.
const LONGEST_RETRY_MS: u64 = 2000;

/// What holds for every inquiry of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Who asks.
    pub identity: Identity,
    /// The protocol version that `initialize` asks for.
    pub version: String,
    /// How many times a doubtful reading is asked again.
    pub confirm: u8,
    /// How much is asked.
    pub profile: Profile,
    /// Requests that may be spent on one endpoint for the checks of the specification, the census's own included.
    pub budget: usize,
}

names! {
    /// How much is asked of an endpoint.
    pub enum Profile {
        /// What it takes to say whether it speaks MCP.
        Census = "census",
        /// Also what ordinary clients ask next, for the checks of the specification.
        Compliance = "compliance",
    }
}

/// What may be spent on one endpoint unless told otherwise.
pub const BUDGET: usize = 8;

/// A request to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The attempt it belongs to.
    pub attempt: u8,
    /// Why it is sent.
    pub leg: Leg,
    /// What is sent.
    pub request: Request,
    /// How long to wait first, milliseconds.
    pub wait_ms: u64,
    /// Only half the deadline may be spent on it: something else can still be asked.
    pub half_time: bool,
    /// Where an HTTP+SSE stream names its message endpoint, `initialize` in this version is `POSTed` there.
    pub version: String,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Send this.
    Ask(Box<Ask>),
    /// Send this once the lane's other targets have been asked: a confirmation.
    Later(Box<Ask>),
    /// Nothing: the inquiry is complete.
    Done,
}

/// The attempts among an endpoint's exchanges, first to last.
#[must_use]
pub fn attempts(exchanges: &[Exchange]) -> Vec<&[Exchange]> {
    exchanges.chunk_by(|a, b| a.attempt == b.attempt).collect()
}

/// What an endpoint's exchanges tell. `None` where there is none.
#[must_use]
pub fn settled(target: &Target, terms_version: &str, exchanges: &[Exchange]) -> Option<Settled> {
    settle(
        attempts(exchanges)
            .into_iter()
            .map(|attempt| classify(terms_version, target.declared, attempt))
            .collect(),
    )
}

/// What to ask next. `exchanges` are the endpoint's, in the order they happened.
#[must_use]
pub fn next(target: &Target, exchanges: &[Exchange], terms: &Terms) -> Next {
    let attempts = attempts(exchanges);
    let Some(current) = attempts.last() else {
        return Next::Ask(Box::new(opening(target, 0, terms)));
    };
    let number = current[0].attempt;
    let ask = match next_leg(target, current, number, terms) {
        // The checks come before the session is closed, which stays the last thing that is done.
        ask if terms.profile == Profile::Compliance
            && ask.as_ref().is_none_or(|it| it.leg == Leg::Close) =>
        {
            let before = exchanges.len() - current.len();
            plan::next(current, terms, terms.budget.saturating_sub(before)).or(ask)
        }
        ask => ask,
    };
    if let Some(ask) = ask {
        return Next::Ask(Box::new(ask));
    }
    let readings: Vec<Reading> = attempts
        .iter()
        .map(|attempt| classify(&terms.version, target.declared, attempt))
        .collect();
    if number < terms.confirm && readings.iter().all(is_doubtful) {
        return Next::Later(Box::new(opening(target, number + 1, terms)));
    }
    Next::Done
}

fn opening(target: &Target, attempt: u8, terms: &Terms) -> Ask {
    let ask = Ask {
        attempt,
        leg: Leg::Initialize,
        request: terms.identity.initialize(&target.url, &terms.version),
        wait_ms: 0,
        half_time: false,
        version: terms.version.clone(),
    };
    match target.declared {
        Some(Transport::HttpSse) => Ask {
            leg: Leg::SseStream,
            request: terms.identity.open_stream(&target.url, None),
            half_time: true,
            ..ask
        },
        Some(Transport::StreamableHttp) | None => ask,
    }
}

/// The next leg of an attempt that has begun.
fn next_leg(target: &Target, exchanges: &[Exchange], attempt: u8, terms: &Terms) -> Option<Ask> {
    let has = |leg: Leg| exchanges.iter().any(|exchange| exchange.leg == leg);
    let ask = |leg: Leg, request: Request| Ask {
        attempt,
        leg,
        request,
        wait_ms: 0,
        half_time: false,
        version: terms.version.clone(),
    };
    let last = exchanges.last()?;
    if matches!(last.reply, Reply::Fault(Fault::Local(_))) {
        return None;
    }
    let chain: Vec<&Exchange> = exchanges
        .iter()
        .filter(|exchange| exchange.leg == Leg::Initialize)
        .collect();
    let streams: Vec<&Exchange> = exchanges
        .iter()
        .filter(|exchange| exchange.leg == Leg::SseStream)
        .collect();

    let Some(end) = chain.last() else {
        if streams.last().is_some_and(|stream| post_instead(stream)) {
            return Some(ask(
                Leg::Initialize,
                terms.identity.initialize(&target.url, &terms.version),
            ));
        }
        return close(exchanges, terms).map(|request| ask(Leg::Close, request));
    };
    let here = Url::parse(&end.request.url).ok()?;
    match redirect::step(&chain) {
        Step::Follow(url) => {
            return Some(ask(
                Leg::Initialize,
                terms.identity.initialize(&url, &terms.version),
            ));
        }
        // A login page is not asked for MCP, and nothing goes from https to http.
        Step::Points(url, None | Some(Turn::HttpsUpgrade)) if !has(Leg::RedirectTarget) => {
            return Some(ask(
                Leg::RedirectTarget,
                terms.identity.initialize(&url, &terms.version),
            ));
        }
        Step::Points(..) | Step::Nowhere(_) | Step::Here => {}
    }
    if let Some(answer) = end.answer() {
        let asked_here = streams
            .iter()
            .any(|stream| stream.request.url == end.request.url);
        if matches!(answer.status, 400 | 404 | 405)
            && !asked_here
            && !has(Leg::SseStream)
            && !classify::has_envelope(answer)
        {
            return Some(ask(Leg::SseStream, terms.identity.open_stream(&here, None)));
        }
        if !has(Leg::SseResume)
            && let Some(stream) = classify::resumable(answer)
        {
            let resume = Resume {
                last_event_id: stream.last_id,
                session: end.session().map(str::to_owned),
                wait_ms: stream.retry.unwrap_or_default().min(LONGEST_RETRY_MS),
            };
            let request = terms.identity.open_stream(&here, Some(&resume));
            return Some(Ask {
                wait_ms: resume.wait_ms,
                ..ask(Leg::SseResume, request)
            });
        }
    }
    if !has(Leg::Discover) && may_be_modern(&classify(&terms.version, target.declared, exchanges)) {
        return Some(ask(Leg::Discover, terms.identity.discover(&here)));
    }
    close(exchanges, terms).map(|request| ask(Leg::Close, request))
}

/// Whether a GET that came first leaves something to ask by POST: it was answered, and not by a stream
/// that names its endpoint, nor by a refusal that a POST would meet as well.
fn post_instead(stream: &Exchange) -> bool {
    let Some(answer) = stream.answer() else {
        return false;
    };
    if matches!(answer.status, 401 | 402 | 403 | 429) {
        return false;
    }
    if let BodyEnd::Broken(Fault::Deadline(stage)) = answer.end {
        return stage == Stage::SseNoEndpoint;
    }
    !(answer.status == 200
        && answer.end == BodyEnd::Left
        && answer.media_type() == crate::body::EVENT_STREAM)
}

/// Whether a refusal of `initialize` is one that a server of 2026-07-28 may give (versioning, "Compatibility
/// Matrix"): a JSON-RPC error by header validation, unknown method, missing `_meta` or version, or a bare 400.
fn may_be_modern(reading: &Reading) -> bool {
    match reading.detail {
        Detail::Code(code) => matches!(
            code,
            -32022..=-32020 | -32601 | -32602 | -32600 | -32004 | -32001 | -32000
        ),
        Detail::Status(400) => true,
        _ => false,
    }
}

/// The DELETE of the session we were last given, unless it has been sent.
fn close(exchanges: &[Exchange], terms: &Terms) -> Option<Request> {
    let given = exchanges.iter().rfind(|exchange| {
        exchange.leg != Leg::Close && !exchange.leg.is_document() && exchange.session().is_some()
    })?;
    let session = given.session()?;
    let sent = exchanges.iter().any(|exchange| exchange.leg == Leg::Close);
    // The id goes back in a header: only what a header can carry.
    if sent || !session.bytes().all(|byte| (0x21..=0x7E).contains(&byte)) {
        return None;
    }
    let url = Url::parse(&given.request.url).ok()?;
    let version = classify(&terms.version, None, exchanges).protocol_version;
    Some(terms.identity.close(&url, session, version.as_deref()))
}

#[cfg(test)]
mod tests;
