//! Ideal schedules: how soon the same work could be done, if deciding and sending took no time.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

/// The makespan of jobs that are started in this order, as soon as one of `width` places is free.
pub(crate) fn greedy(jobs: impl IntoIterator<Item = Duration>, width: usize) -> Duration {
    let mut busy: BinaryHeap<Reverse<Duration>> = BinaryHeap::new();
    let mut end = Duration::ZERO;
    for job in jobs {
        let start = if busy.len() < width {
            Duration::ZERO
        } else {
            busy.pop().map(|it| it.0).unwrap_or_default()
        };
        busy.push(Reverse(start + job));
        end = end.max(start + job);
    }
    end
}

/// What a schedule keeps to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manners {
    pub(crate) width: usize,
    /// In flight on one lane.
    pub(crate) depth: usize,
    /// Between two starts on one lane.
    pub(crate) gap: Duration,
    /// Between any two starts; zero for none.
    pub(crate) tick: Duration,
}

/// When each job of each lane is done, where the lane with the most left goes first.
///
/// The jobs of a lane start in their order, `gap` apart, `depth` of them at once at most.
pub(crate) fn polite(lanes: &[Vec<Duration>], manners: Manners) -> Vec<Vec<Duration>> {
    let mut done: Vec<Vec<Duration>> = vec![Vec::new(); lanes.len()];
    let mut in_flight = vec![0usize; lanes.len()];
    // A lane is in exactly one of these, or has `depth` jobs in flight, or is finished.
    let mut ready: BTreeSet<(Reverse<usize>, usize)> = BTreeSet::new();
    let mut resting: BTreeSet<(Duration, usize)> = BTreeSet::new();
    let mut may_start = vec![Duration::ZERO; lanes.len()];
    let mut ends: BinaryHeap<Reverse<(Duration, usize)>> = BinaryHeap::new();
    for (lane, jobs) in lanes.iter().enumerate() {
        if !jobs.is_empty() {
            ready.insert((Reverse(jobs.len()), lane));
        }
    }
    let (mut now, mut next_tick) = (Duration::ZERO, Duration::ZERO);
    loop {
        while let Some(&(at, lane)) = resting.first().filter(|it| it.0 <= now) {
            resting.remove(&(at, lane));
            ready.insert((Reverse(lanes[lane].len() - done[lane].len()), lane));
        }
        while now >= next_tick && ends.len() < manners.width {
            let Some((_, lane)) = ready.pop_first() else {
                break;
            };
            let end = now + lanes[lane][done[lane].len()];
            done[lane].push(end);
            ends.push(Reverse((end, lane)));
            in_flight[lane] += 1;
            may_start[lane] = now + manners.gap;
            next_tick = now + manners.tick;
            rest(
                lanes,
                &done,
                &in_flight,
                manners.depth,
                &may_start,
                lane,
                &mut resting,
            );
            if !manners.tick.is_zero() {
                break;
            }
        }
        let next_end = ends.peek().map(|it| it.0.0);
        let next_rest = resting.first().map(|it| it.0);
        let tick = (!ready.is_empty() && ends.len() < manners.width).then_some(next_tick);
        let Some(next) = [next_end, next_rest, tick].into_iter().flatten().min() else {
            return done;
        };
        now = now.max(next);
        while ends.peek().is_some_and(|it| it.0.0 <= now) {
            let Some(Reverse((_, lane))) = ends.pop() else {
                break;
            };
            in_flight[lane] -= 1;
            // Only a lane that was full waits for this.
            if in_flight[lane] + 1 == manners.depth {
                rest(
                    lanes,
                    &done,
                    &in_flight,
                    manners.depth,
                    &may_start,
                    lane,
                    &mut resting,
                );
            }
        }
    }
}

/// Puts a lane that has work and is not full among those that wait for their gap.
fn rest(
    lanes: &[Vec<Duration>],
    done: &[Vec<Duration>],
    in_flight: &[usize],
    depth: usize,
    may_start: &[Duration],
    lane: usize,
    resting: &mut BTreeSet<(Duration, usize)>,
) {
    if done[lane].len() < lanes[lane].len() && in_flight[lane] < depth {
        resting.insert((may_start[lane], lane));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(all: &[u64]) -> Vec<Duration> {
        all.iter().map(|it| Duration::from_millis(*it)).collect()
    }

    #[test]
    fn a_greedy_schedule_starts_each_job_at_the_first_free_place() {
        assert_eq!(greedy(ms(&[10, 30, 5, 5]), 2), Duration::from_millis(30));
        assert_eq!(greedy(ms(&[10, 5, 30]), 2), Duration::from_millis(35));
        assert_eq!(greedy([], 2), Duration::ZERO);
    }

    #[test]
    fn a_polite_schedule_keeps_gap_depth_width_and_rate() {
        let manners = Manners {
            width: 8,
            depth: 2,
            gap: Duration::from_millis(10),
            tick: Duration::ZERO,
        };
        let lane = vec![ms(&[1, 1, 1])];
        assert_eq!(polite(&lane, manners), [ms(&[1, 11, 21])]);
        let slow = vec![ms(&[100, 100, 100])];
        assert_eq!(polite(&slow, manners), [ms(&[100, 110, 200])]);
        let two = vec![ms(&[100]), ms(&[100])];
        let narrow = Manners {
            width: 1,
            ..manners
        };
        assert_eq!(polite(&two, narrow), [ms(&[100]), ms(&[200])]);
        let ticking = Manners {
            tick: Duration::from_millis(7),
            ..manners
        };
        assert_eq!(polite(&two, ticking), [ms(&[100]), ms(&[107])]);
        assert_eq!(polite(&[], manners), Vec::<Vec<Duration>>::new());
    }

    #[test]
    fn the_lane_with_the_most_left_goes_first() {
        let manners = Manners {
            width: 1,
            depth: 1,
            gap: Duration::ZERO,
            tick: Duration::ZERO,
        };
        let lanes = vec![ms(&[1]), ms(&[1, 1, 1])];
        let done = polite(&lanes, manners);
        assert_eq!(done[1][1], Duration::from_millis(2));
    }
}
