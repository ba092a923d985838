//! What endpoints cost in requests, at least and as a rule. How long requests take is `time`'s affair.

use serde::Serialize;

use crate::inquiry::{Opening, Profile, Terms};

/// Endpoints that cost alike.
struct Kind {
    /// How many of them the demo's world has.
    endpoints: u64,
    /// What one costs in a census.
    census: u64,
    /// What one costs where the checks of the specification are made, and no budget bounds them.
    compliance: u64,
    /// What is wrong on purpose beside that, at servers of one's own.
    intrusive: u64,
}

const fn kind(endpoints: u64, census: u64, compliance: u64, intrusive: u64) -> Kind {
    Kind {
        endpoints,
        census,
        compliance,
        intrusive,
    }
}

/// The endpoints of the demo's world that are declared streamable, or not declared, opened with `initialize`.
const BY_INITIALIZE: [Kind; 5] = [
    // Unreachable, or no MCP and no fallback.
    kind(136, 1, 1, 0),
    // A GET after a POST that was refused, another discovery, a redirect.
    kind(73, 2, 2, 0),
    // Gated: two documents say who may let us in.
    kind(270, 1, 3, 1),
    // Open without a session.
    kind(405, 1, 6, 6),
    // Open with a session, which is closed in the end.
    kind(187, 2, 7, 8),
];

/// The same endpoints opened with `server/discover`: where that leads nowhere, `initialize` follows.
const BY_DISCOVER: [Kind; 6] = [
    kind(103, 1, 1, 0),
    kind(38, 2, 2, 0),
    kind(68, 3, 3, 0),
    kind(270, 1, 3, 1),
    kind(405, 2, 6, 6),
    kind(187, 3, 7, 8),
];

/// All endpoints of the demo's world, those declared HTTP+SSE among them.
const IN_ALL: u64 = 1095;

/// Requests that one confirmation of every doubtful answer takes in that world.
const CONFIRMING_BY_INITIALIZE: u64 = 249;
const CONFIRMING_BY_DISCOVER: u64 = 350;

/// What an endpoint costs that is declared HTTP+SSE: the GET of its stream, and the POST to the address in it.
const BY_STREAM: u64 = 2;

/// What a run asks of an endpoint, as far as it decides how much that costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assumed {
    /// What is asked first.
    pub opening: Opening,
    /// How much is asked.
    pub profile: Profile,
    /// Requests for one endpoint, under the profile `compliance`.
    pub budget: usize,
    /// Times that a doubtful answer is asked again.
    pub confirm: u8,
    /// Whether `robots.txt` is read first.
    pub robots: bool,
    /// Requests for a hundred endpoints that are not declared HTTP+SSE, without confirmations.
    pub requests_per_100: f64,
    /// Requests for a hundred endpoints that are declared HTTP+SSE, without confirmations.
    pub requests_per_100_sse: f64,
    /// Further requests to confirm the doubtful answers among a hundred.
    pub confirming_per_100: f64,
    /// Of whom all that is assumed.
    pub source: &'static str,
}

/// Endpoints to be asked together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Load {
    /// Those not declared HTTP+SSE.
    pub(super) posts: u64,
    /// Those declared HTTP+SSE.
    pub(super) streams: u64,
    /// Origins whose `robots.txt` is read.
    pub(super) origins: u64,
}

impl Load {
    pub(super) const fn endpoints(self) -> u64 {
        self.posts + self.streams
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            posts: self.posts + other.posts,
            streams: self.streams + other.streams,
            origins: self.origins + other.origins,
        }
    }

    /// Requests that are sent whatever is answered.
    pub(super) const fn least(self) -> u64 {
        self.endpoints() + self.origins
    }
}

/// What endpoints cost as a rule: what those of the demo's world do, which has the mix of published censuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// Requests for `of` endpoints that are not declared HTTP+SSE.
    asking: u64,
    of: u64,
    /// Requests to confirm doubtful answers among `IN_ALL` endpoints.
    confirming: u64,
}

impl Cost {
    pub(super) fn under(terms: &Terms) -> Self {
        let budget = terms.budget as u64;
        let (kinds, confirming) = match terms.opening {
            Opening::Initialize => (&BY_INITIALIZE[..], CONFIRMING_BY_INITIALIZE),
            Opening::Discover => (&BY_DISCOVER[..], CONFIRMING_BY_DISCOVER),
        };
        let one = |kind: &Kind| match terms.profile {
            Profile::Census => kind.census,
            // The budget bounds what is asked beside the census, and not the census.
            Profile::Compliance => {
                let odd = if terms.own.is_some() {
                    kind.intrusive
                } else {
                    0
                };
                (kind.compliance + odd).min(budget).max(kind.census)
            }
        };
        Self {
            asking: kinds.iter().map(|kind| kind.endpoints * one(kind)).sum(),
            of: kinds.iter().map(|kind| kind.endpoints).sum(),
            confirming: confirming * u64::from(terms.confirm),
        }
    }

    /// Requests for these endpoints, those for `robots.txt` and confirmations aside.
    pub(super) const fn asking(self, load: Load) -> u64 {
        (load.posts * self.asking).div_ceil(self.of) + load.streams * BY_STREAM
    }

    /// Requests that confirm doubtful answers.
    pub(super) const fn confirming(self, load: Load) -> u64 {
        (load.endpoints() * self.confirming).div_ceil(IN_ALL)
    }

    /// All requests for these endpoints.
    pub(super) const fn expected(self, load: Load) -> u64 {
        self.asking(load) + self.confirming(load) + load.origins
    }

    /// In words and numbers.
    pub(super) fn assumed(self, terms: &Terms, robots: bool) -> Assumed {
        Assumed {
            opening: terms.opening,
            profile: terms.profile,
            budget: terms.budget,
            confirm: terms.confirm,
            robots,
            requests_per_100: per_100(self.asking, self.of),
            requests_per_100_sse: per_100(BY_STREAM, 1),
            confirming_per_100: per_100(self.confirming, IN_ALL),
            source: "endpoints answer in the mix of published censuses, as those of the demo do",
        }
    }
}

/// A ratio, for a hundred, to one decimal.
#[expect(
    clippy::cast_precision_loss,
    reason = "a few thousand thousandths, which a float holds"
)]
fn per_100(requests: u64, of: u64) -> f64 {
    (requests * 1000 / of) as f64 / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{ASKED_VERSION, Identity};

    fn terms(opening: Opening, profile: Profile, confirm: u8, budget: usize) -> Terms {
        Terms {
            identity: Identity { contact: None },
            version: ASKED_VERSION.to_owned(),
            confirm,
            profile,
            budget,
            opening,
            own: None,
        }
    }

    #[test]
    fn the_demos_world_costs_what_was_counted_in_it() {
        use {Opening::Discover, Opening::Initialize, Profile::Census, Profile::Compliance};
        let world = Load {
            posts: 1071,
            streams: 24,
            origins: 0,
        };
        for (opening, profile, confirm, budget, requests) in [
            (Initialize, Census, 0, 8, 1379),
            (Initialize, Census, 1, 8, 1628),
            (Initialize, Census, 3, 8, 2126),
            (Discover, Census, 0, 8, 2072),
            (Discover, Census, 1, 8, 2422),
            (Initialize, Compliance, 1, 8, 5128),
            (Initialize, Compliance, 1, 4, 3757),
            (Discover, Compliance, 1, 8, 5330),
            (Discover, Compliance, 0, 64, 4980),
        ] {
            let terms = terms(opening, profile, confirm, budget);
            assert_eq!(
                Cost::under(&terms).expected(world),
                requests,
                "{opening} {profile} --confirm {confirm} --budget {budget}"
            );
        }
    }

    #[test]
    fn a_robots_txt_costs_a_request_an_origin() {
        let cost = Cost::under(&terms(Opening::Initialize, Profile::Census, 0, 8));
        let load = Load {
            posts: 0,
            streams: 3,
            origins: 2,
        };
        assert_eq!((load.least(), cost.expected(load)), (5, 8));
    }
}
