//! What to ask for the checks of the specification, once the census has asked what it asks. Pure and read-only:
//! no tool is called, nothing is registered. What is wrong on purpose is `odd`'s, and asked of one's own servers alone.

use std::collections::BTreeSet;

use url::Url;

use super::documents;
use super::heard::{Heard, is_modern};
use super::odd;
use super::situation::{Situation, address, capability};
use crate::exchange::{BodyEnd, Exchange, Fault, Leg, Reply, Request};
use crate::inquiry::{Ask, Terms};
use crate::mcp::{self, Standing};

/// The next request for the checks, given the exchanges of one attempt. `budget` bounds all of them together, and the
/// DELETE of each session we were given is kept out of it in time.
#[must_use]
pub fn next(exchanges: &[Exchange], terms: &Terms, budget: usize) -> Option<Ask> {
    let last = exchanges.last()?;
    if !is_welcome(last) {
        return None;
    }
    let is_closed = exchanges.iter().any(|it| it.leg == Leg::Close);
    let owed: BTreeSet<&str> = exchanges
        .iter()
        .filter(|it| !it.leg.is_document())
        .filter_map(Exchange::session)
        .collect();
    let owed = if is_closed { 0 } else { owed.len() };
    if exchanges.len() + owed >= budget {
        return None;
    }
    let situation = Situation::of(exchanges);
    let usual = if is_closed {
        None
    } else if situation.gate().is_some() {
        document(&situation, terms)
    } else if situation.is_open() {
        follow_up(&situation, terms)
            .or_else(|| page(&situation, terms, false))
            .or_else(|| page(&situation, terms, true))
    } else if situation.is_open_as_modern() {
        as_modern(&situation, terms).or_else(|| page(&situation, terms, true))
    } else {
        None
    };
    let (leg, request) = usual.or_else(|| odd::next(&situation, terms, is_closed))?;
    Some(Ask {
        attempt: last.attempt,
        leg,
        request,
        wait_ms: 0,
        half_time: false,
        version: terms.version.clone(),
    })
}

/// Whether the server has not shown that it has enough of us, or we of it.
fn is_welcome(last: &Exchange) -> bool {
    match &last.reply {
        Reply::Fault(Fault::Local(_)) => false,
        Reply::Fault(_) => !last.leg.is_for_checks() || last.leg.is_document(),
        Reply::Answer(answer) => {
            let is_late = matches!(answer.end, BodyEnd::Broken(Fault::Deadline(_)));
            let is_enough = matches!(answer.status, 429 | 503);
            !is_enough && (!is_late || !last.leg.is_for_checks())
        }
    }
}

/// What an ordinary client asks in a session.
fn follow_up(situation: &Situation<'_>, terms: &Terms) -> Option<(Leg, Request)> {
    let opening = situation.opening.as_ref()?;
    let url = &address(opening.exchange)?;
    let standing = &standing(situation);
    let identity = &terms.identity;
    let asked = |leg: Leg, modern: bool| {
        situation
            .legs(leg)
            .any(|exchange| is_modern(exchange) == modern)
    };
    if !asked(Leg::Initialized, false) {
        return Some((Leg::Initialized, identity.confirm(url, standing)));
    }
    if capability(opening.result(), "tools").is_some() && !asked(Leg::Tools, false) {
        let request = identity.follow_up(url, "tools/list", mcp::TOOLS_ID, standing);
        return Some((Leg::Tools, request));
    }
    if !asked(Leg::Ping, false) {
        let request = identity.follow_up(url, "ping", mcp::PING_ID, standing);
        return Some((Leg::Ping, request));
    }
    if !asked(Leg::Listen, false) {
        return Some((Leg::Listen, identity.listen(url, standing)));
    }
    if !asked(Leg::Discover, true) {
        return Some((Leg::Discover, identity.discover(url, mcp::MODERN_VERSION)));
    }
    // A server of both eras is asked as one of the newer too.
    if situation.is_modern {
        return as_modern(situation, terms);
    }
    None
}

/// What a client of 2026-07-28 asks.
fn as_modern(situation: &Situation<'_>, terms: &Terms) -> Option<(Leg, Request)> {
    let discovery = situation.discovery.as_ref()?;
    let url = &address(discovery.exchange)?;
    let identity = &terms.identity;
    let discovered = discovery.result();
    discovered?;
    let has_tools = capability(discovered, "tools").is_some();
    let lists = [
        (Leg::Tools, "tools/list", mcp::TOOLS_ID, has_tools),
        (Leg::Prompts, "prompts/list", mcp::PROMPTS_ID, true),
        (Leg::Resources, "resources/list", mcp::RESOURCES_ID, true),
        (
            Leg::ToolsAgain,
            "tools/list",
            mcp::TOOLS_AGAIN_ID,
            has_tools,
        ),
    ];
    for (leg, method, id, wanted) in lists {
        if wanted && !situation.legs(leg).any(is_modern) {
            return Some((leg, identity.modern(url, method, id, mcp::MODERN_VERSION)));
        }
    }
    // A server that has a handshake as well may have a stream for who went through it.
    if situation.is_modern_only() && situation.legs(Leg::Listen).next().is_none() {
        return Some((Leg::Listen, identity.listen(url, &Standing::default())));
    }
    None
}

/// The next page of tools, where the last one names it.
fn page(situation: &Situation<'_>, terms: &Terms, modern: bool) -> Option<(Leg, Request)> {
    let pages: Vec<Heard<'_>> = situation.pages(modern).filter_map(Heard::of).collect();
    let last = pages.last()?;
    let cursor = last.result()?.get("nextCursor")?.as_str()?;
    // A cursor that comes back leads in a circle.
    let is_old = |it: &Heard<'_>| {
        let next = it.result().and_then(|it| it.get("nextCursor")?.as_str());
        next == Some(cursor)
    };
    if pages[..pages.len() - 1].iter().any(is_old) {
        return None;
    }
    let further = i64::try_from(pages.len()).ok()? - 1;
    if further >= mcp::TOOLS_PAGES {
        return None;
    }
    let url = &address(last.exchange)?;
    let standing = (!modern).then(|| standing(situation));
    let id = mcp::TOOLS_PAGE_ID + further;
    let request = terms
        .identity
        .tools_page(url, cursor, id, standing.as_ref());
    Some((Leg::Tools, request))
}

/// The documents that say who may let us in.
fn document(situation: &Situation<'_>, terms: &Terms) -> Option<(Leg, Request)> {
    let endpoint = address(situation.gate()?)?;
    let bearer = situation.bearer();
    let named = bearer.as_ref().and_then(|it| it.param("resource_metadata"));
    let resource = situation
        .legs(Leg::ResourceMetadata)
        .find_map(|it| documents::document(it).ok());
    let Some(resource) = resource else {
        let places = documents::of_resource(&endpoint, named);
        return unasked(situation, Leg::ResourceMetadata, places, terms);
    };
    if situation
        .legs(Leg::IssuerMetadata)
        .any(|it| documents::document(it).is_ok())
    {
        return None;
    }
    let issuers = documents::strings(resource.get("authorization_servers"));
    let places = documents::of_issuer(issuers.first()?, &endpoint);
    unasked(situation, Leg::IssuerMetadata, places, terms)
}

fn unasked(
    situation: &Situation<'_>,
    leg: Leg,
    places: Vec<Url>,
    terms: &Terms,
) -> Option<(Leg, Request)> {
    let is_new = |place: &Url| {
        situation
            .legs(leg)
            .all(|it| it.request.url != place.as_str())
    };
    let place = places.into_iter().find(is_new)?;
    Some((leg, terms.identity.document(&place)))
}

/// What `initialize` left us with.
pub(super) fn standing(situation: &Situation<'_>) -> Standing {
    // What came last counts, and only what a header can carry goes back in one.
    let session = situation
        .exchanges
        .iter()
        .filter(|it| matches!(it.leg, Leg::Initialize | Leg::SseResume))
        .filter_map(Exchange::session)
        .next_back()
        .filter(|id| id.bytes().all(|byte| (0x21..=0x7E).contains(&byte)));
    let version = situation
        .reading
        .protocol_version
        .as_deref()
        .filter(|it| mcp::is_date(it) && *it >= super::Revision::V2025_06.name());
    Standing {
        session: session.map(str::to_owned),
        version: version.map(str::to_owned),
    }
}
