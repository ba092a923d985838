//! The rate of a whole run, by the generic cell rate algorithm. Who is next is the turnstile's affair: one at a time
//! waits here.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::{Instant, sleep};

/// The cells of one turn: turns are told apart more finely than they come, so that one that is taken a little late
/// makes those after it no later.
const TURN: NonZeroU32 = NonZeroU32::new(16).expect("it is not zero");

/// How late that may be. The runtime's timers are late by up to a millisecond.
const LATE: Duration = Duration::from_millis(2);

/// Gives out turns at a rate. After a rest, the second turn comes early by as much as a late one may be made up for,
/// and none is saved up.
#[derive(Debug)]
pub(super) struct Rate(RateLimiter<NotKeyed, InMemoryState, Running, NoOpMiddleware<Duration>>);

/// The runtime's clock, from some moment on.
#[derive(Debug, Clone)]
struct Running(Instant);

impl Clock for Running {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Rate {
    /// So many turns a second.
    pub(super) fn per_second(turns: NonZeroU32) -> Self {
        let cells = u64::from(turns.get()) * u64::from(TURN.get());
        let cell = Duration::from_nanos((1_000_000_000 / cells).max(1));
        let late = LATE.as_nanos() / cell.as_nanos();
        let most = TURN.saturating_add(u32::try_from(late).unwrap_or(u32::MAX));
        let quota = Quota::with_period(cell)
            .expect("a cell takes time")
            .allow_burst(most);
        Self(RateLimiter::direct_with_clock(
            quota,
            Running(Instant::now()),
        ))
    }

    /// Waits for the next turn, and takes it.
    pub(super) async fn turn(&self) {
        // A turn is never more than there can be.
        while let Ok(Err(early)) = self.0.check_n(TURN) {
            sleep(early.wait_time_from(self.0.clock().now())).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_come_at_the_rate_and_a_rest_saves_none_up() {
        for (rate, turns) in [(1, 5), (100, 300), (3_000, 9_000)] {
            let per_turn = Duration::from_secs(1) / rate;
            let pace = Rate::per_second(NonZeroU32::new(rate).unwrap());
            sleep(Duration::from_mins(1)).await;
            let began = Instant::now();
            for _ in 0..turns {
                pace.turn().await;
            }
            let took = began.elapsed();
            let ideal = per_turn * (turns - 1);
            let earliest = ideal.saturating_sub(LATE + Duration::from_millis(1));
            assert!(took >= earliest, "{rate} a second: {took:?}");
            assert!(took <= ideal + LATE, "{rate} a second: {took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_is_taken_a_little_late_makes_the_next_no_later() {
        let pace = Rate::per_second(NonZeroU32::new(100).unwrap());
        let began = Instant::now();
        for turn in 1..=100 {
            pace.turn().await;
            // As a timer does.
            tokio::time::advance(Duration::from_micros(700)).await;
            let due = Duration::from_millis(10) * (turn - 1);
            assert!(began.elapsed() <= due + LATE, "turn {turn}");
        }
    }
}
