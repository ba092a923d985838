//! How long requests take at least at the pace of a run. How many there are is `cost`'s affair.

use std::time::Duration;

use serde::Serialize;

/// The pace that a scan would keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tempo {
    /// The least time between two request starts in one lane.
    pub gap: Duration,
    /// Requests a second, all lanes together; 0 for no limit.
    pub rate: u32,
    /// Requests a second to an operator of several sites; 0 for no limit.
    pub per_operator: u32,
    /// Requests a second to one address; 0 for no limit.
    pub per_address: u32,
}

impl Tempo {
    /// What so many requests take in one lane, in seconds: the first starts at once.
    pub(super) fn in_a_lane(&self, requests: u64) -> f64 {
        after_the_first(requests) * self.gap.as_secs_f64()
    }
}

/// What so many requests take at so many a second, in seconds.
pub(super) fn at_a_rate(requests: u64, rate: u32) -> f64 {
    if rate == 0 {
        0.0
    } else {
        after_the_first(requests) / f64::from(rate)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a time for people, of far fewer than 2^52 requests"
)]
fn after_the_first(requests: u64) -> f64 {
    requests.saturating_sub(1) as f64
}

/// How long a scan takes at least, in seconds, by each thing that holds it back.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Floor {
    /// What the largest lane takes at its gap.
    pub largest_lane: f64,
    /// What the largest operator of several sites takes at its cap.
    pub largest_operator: f64,
    /// What the address that most endpoints are listed by takes at its cap. Those that names lead to are not known.
    pub largest_address: f64,
    /// What all requests take at the rate of the run.
    pub all_requests: f64,
    /// The longest of them.
    pub seconds: f64,
}

impl Floor {
    /// The most that any lane, operator, address takes, and all together.
    pub(super) fn of(tempo: &Tempo, lane: u64, operator: u64, address: u64, in_all: u64) -> Self {
        let largest_lane = tempo.in_a_lane(lane);
        let largest_operator = at_a_rate(operator, tempo.per_operator);
        let largest_address = at_a_rate(address, tempo.per_address);
        let all_requests = at_a_rate(in_all, tempo.rate);
        Self {
            largest_lane,
            largest_operator,
            largest_address,
            all_requests,
            seconds: largest_lane
                .max(largest_operator)
                .max(largest_address)
                .max(all_requests),
        }
    }
}
