//! What to ask an endpoint next, given everything asked and answered so far. Pure: `probe` sends, this decides.
//!
//! An inquiry is one endpoint's whole story: attempts, each a sequence of legs. Because the next leg follows
//! from the recorded ones alone, an interrupted inquiry goes on from its evidence, and nothing is asked twice.

use url::Url;

use crate::catalogue::{Own, plan};
use crate::classify::{self, Discovery, Reading, classify};
use crate::exchange::{Answer, BodyEnd, Exchange, Fault, Leg, Reply, Request, Stage};
use crate::jsonrpc::{self, CodeGroup, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND};
use crate::mcp::{Identity, MODERN_VERSION, Resume};
use crate::names::names;
use crate::outcome::{Detail, Transport, Turn, Verdict};
use crate::redirect::{self, Step};
use crate::settle::{Settled, is_doubtful, settle};
use crate::target::Target;

/// The longest a server can make us wait before its stream is resumed, milliseconds.
const LONGEST_RETRY_MS: u64 = 2000;

names! {
    /// What an endpoint is asked first.
    pub enum Opening {
        /// `initialize`, as a census asks it.
        Initialize = "initialize",
        /// `server/discover`, as clients of 2026-07-28 ask it; `initialize` where that leads nowhere.
        Discover = "discover",
    }
}

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
    /// What is asked first.
    pub opening: Opening,
    /// The servers that are also asked what is wrong on purpose; none where that was not wanted.
    pub own: Option<Own>,
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

/// What may be spent on a server of one's own that is also asked what is wrong on purpose, unless told otherwise.
pub const OWN_BUDGET: usize = 40;

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
    /// Nothing: the inquiry is complete, with this verdict.
    Done(Verdict),
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
    let reading = classify(&terms.version, target.declared, current);
    let ask = match next_leg(target, current, number, terms, &reading) {
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
    // An attempt follows only on doubtful ones, so the last tells for all.
    if number < terms.confirm && is_doubtful(&reading) {
        return Next::Later(Box::new(opening(target, number + 1, terms)));
    }
    let earlier = attempts.len() - 1;
    let readings = attempts[..earlier]
        .iter()
        .map(|attempt| classify(&terms.version, target.declared, attempt))
        .chain([reading]);
    let settled = settle(readings.collect());
    Next::Done(settled.map_or(Verdict::Unmeasured, |it| it.reading.verdict))
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
        Some(Transport::StreamableHttp) | None if terms.opening == Opening::Discover => Ask {
            leg: Leg::Discover,
            request: terms.identity.discover(&target.url, MODERN_VERSION),
            ..ask
        },
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
fn next_leg(
    target: &Target,
    exchanges: &[Exchange],
    attempt: u8,
    terms: &Terms,
    reading: &Reading,
) -> Option<Ask> {
    let has = |leg: Leg| exchanges.iter().any(|it| it.leg == leg);
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
    let sent = |leg: Leg| exchanges.iter().filter(move |it| it.leg == leg);
    let chain: Vec<&Exchange> = sent(Leg::Initialize).collect();
    let streams: Vec<&Exchange> = sent(Leg::SseStream).collect();

    let discovered: Vec<&Answer> = sent(Leg::Discover).filter_map(Exchange::answer).collect();
    // One retry with a version that the server offers (2026-07-28 versioning, "Version Negotiation").
    if let [refused] = discovered.as_slice()
        && last.leg == Leg::Discover
        && let Discovery::Offers(version) = classify::discovery(refused)
    {
        let url = Url::parse(&last.request.url).ok()?;
        return Some(ask(Leg::Discover, terms.identity.discover(&url, &version)));
    }

    let Some(end) = chain.last() else {
        if discovered
            .last()
            .is_some_and(|answer| initialize_instead(answer))
        {
            return Some(ask(
                Leg::Initialize,
                terms.identity.initialize(&target.url, &terms.version),
            ));
        }
        if streams.last().is_some_and(|stream| post_instead(stream)) {
            return Some(ask(
                Leg::Initialize,
                terms.identity.initialize(&target.url, &terms.version),
            ));
        }
        return close(exchanges, terms, reading).map(|request| ask(Leg::Close, request));
    };
    let here = || Url::parse(&end.request.url).ok();
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
            && !classify::has_envelope(answer)
        {
            return Some(ask(
                Leg::SseStream,
                terms.identity.open_stream(&here()?, None),
            ));
        }
        if !has(Leg::SseResume)
            && let Some(stream) = classify::resumable(answer)
        {
            let resume = Resume {
                last_event_id: stream.last_id,
                session: end.session().map(str::to_owned),
                wait_ms: stream.retry.unwrap_or_default().min(LONGEST_RETRY_MS),
            };
            let request = terms.identity.open_stream(&here()?, Some(&resume));
            return Some(Ask {
                wait_ms: resume.wait_ms,
                ..ask(Leg::SseResume, request)
            });
        }
    }
    if !has(Leg::Discover) && may_be_modern(reading) {
        return Some(ask(
            Leg::Discover,
            terms.identity.discover(&here()?, MODERN_VERSION),
        ));
    }
    close(exchanges, terms, reading).map(|request| ask(Leg::Close, request))
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

/// Whether a discovery that came first leaves `initialize` to be asked: it was answered, and neither with what
/// was asked for, nor with a refusal that `initialize` would meet as well.
fn initialize_instead(answer: &Answer) -> bool {
    !matches!(answer.status, 401 | 402 | 403 | 429)
        && classify::discovery(answer) != Discovery::Found
}

/// Whether a refusal of `initialize` is one that a server of 2026-07-28 may give (versioning, "Compatibility
/// Matrix"): a JSON-RPC error by header validation, unknown method, missing `_meta` or version, or a bare 400.
fn may_be_modern(reading: &Reading) -> bool {
    match reading.detail {
        Detail::Code(METHOD_NOT_FOUND | INVALID_PARAMS | INVALID_REQUEST) | Detail::Status(400) => {
            true
        }
        // Its own codes, and those that its drafts had.
        Detail::Code(code) => matches!(
            jsonrpc::group(code),
            CodeGroup::McpReservedDefined | CodeGroup::LegacyRange
        ),
        _ => false,
    }
}

/// The DELETE of a session we were given and have not sent one for. There can be several: some servers give a
/// session to whatever they are asked without one, even where they refuse it.
fn close(exchanges: &[Exchange], terms: &Terms, reading: &Reading) -> Option<Request> {
    let asked = |session: &str| exchanges.iter().any(|it| it.closes() == Some(session));
    let (given, session) = exchanges
        .iter()
        .filter(|exchange| exchange.leg != Leg::Close && !exchange.leg.is_document())
        .filter_map(|exchange| Some((exchange, exchange.session()?)))
        .find(|(_, session)| {
            // The id goes back in a header: only what a header can carry.
            session.bytes().all(|byte| (0x21..=0x7E).contains(&byte)) && !asked(session)
        })?;
    let url = Url::parse(&given.request.url).ok()?;
    Some(
        terms
            .identity
            .close(&url, session, reading.protocol_version.as_deref()),
    )
}

#[cfg(test)]
mod tests;
