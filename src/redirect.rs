//! Where a redirect leads: a pure reading of the chain of answers so far. Whether to go there is `inquiry`'s.

use url::{Host, Url};

use crate::exchange::Exchange;
use crate::outcome::{DeadEnd, Turn};
use crate::target;

/// Redirects followed at most.
pub const HOPS: usize = 5;

/// What the last answer of a chain says of where to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It is no redirect.
    Here,
    /// 307 or 308: ask there again, with the same method and body (RFC 9110 §15.4.8, §15.4.9).
    Follow(Url),
    /// 301, 302, 303, or a step down from `https`: not followed; where it points, and what can be said of it.
    Points(Url, Option<Turn>),
    /// It leads nowhere.
    Nowhere(DeadEnd),
}

/// Reads the last of a chain of exchanges, first to last.
#[must_use]
pub fn step(chain: &[&Exchange]) -> Step {
    let Some((last, before)) = chain.split_last() else {
        return Step::Here;
    };
    let Some(answer) = last.answer() else {
        return Step::Here;
    };
    let status = answer.status;
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return Step::Here;
    }
    let Some(location) = answer
        .header("location")
        .map(str::trim)
        .filter(|it| !it.is_empty())
    else {
        return Step::Nowhere(DeadEnd::NoLocation);
    };
    let Ok(here) = Url::parse(&last.request.url) else {
        return Step::Nowhere(DeadEnd::BadLocation);
    };
    let Ok(mut target) = here.join(location) else {
        return Step::Nowhere(DeadEnd::BadLocation);
    };
    target.set_fragment(None);
    if !matches!(target.scheme(), "http" | "https") || target.host().is_none() {
        return Step::Nowhere(DeadEnd::BadLocation);
    }
    if leads_inside(&here, &target) {
        return Step::Nowhere(DeadEnd::BlockedPrivate);
    }
    let turn = turn(&here, &target);
    if !matches!(status, 307 | 308) || turn == Some(Turn::Downgrade) {
        return Step::Points(target, turn);
    }
    if target == here
        || before
            .iter()
            .any(|exchange| exchange.request.url == target.as_str())
    {
        return Step::Nowhere(DeadEnd::Loop);
    }
    if before.len() >= HOPS {
        return Step::Nowhere(DeadEnd::TooMany);
    }
    Step::Follow(target)
}

/// Whether a redirect leads from one host to another that is not public. However wide a range was opened to
/// probing, it was opened to what the list names, not to wherever a stranger points.
pub(crate) fn leads_inside(here: &Url, target: &Url) -> bool {
    here.host() != target.host()
        && match target.host() {
            Some(Host::Ipv4(address)) => !target::is_public(address.into()),
            Some(Host::Ipv6(address)) => !target::is_public(address.into()),
            Some(Host::Domain(name)) => target::is_private_name(name),
            None => true,
        }
}

/// Words of a login page's address: of its path and host, not of any prose.
const LOGIN: [&str; 9] = [
    "login", "signin", "sign-in", "sign_in", "auth", "sso", "oauth", "oauth2", "accounts",
];

fn turn(here: &Url, target: &Url) -> Option<Turn> {
    match (here.scheme(), target.scheme()) {
        ("https", "http") => return Some(Turn::Downgrade),
        ("http", "https")
            if here.host_str() == target.host_str() && here.path() == target.path() =>
        {
            return Some(Turn::HttpsUpgrade);
        }
        _ => {}
    }
    let words = target
        .path()
        .split(['/', '.'])
        .chain(target.host_str().unwrap_or_default().split('.'));
    words
        .map(str::to_ascii_lowercase)
        .any(|word| LOGIN.contains(&word.as_str()))
        .then_some(Turn::Login)
}
