//! Lanes: what is to be done, grouped by site, and done side by side, longest lane first. When a request may
//! start is `road`'s affair, and what it is, the caller's.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::{JoinSet, yield_now};
use tokio_util::sync::CancellationToken;

use crate::road::Pace;
use crate::target::scatter;

/// Jobs that start in one round of the event loop. What is under way goes first, so that few are at once where answers
/// come faster than they are read, and what they use stays in the processor's caches: a fifth of the cost of a probe.
/// Where answers take their time, rounds are short, and as many are under way as have a place.
const STARTS: usize = 12;

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done<T> {
    /// It is finished.
    Finished,
    /// It is to be run again, once the lane's others have been.
    Again(T),
}

/// Runs every lane until all are done or `stop` is called; what has started finishes. A job is told how many of its
/// lane are left, itself included.
///
/// Jobs that run side by side are tasks of their own, so that no clock stands still while another is polled.
pub async fn drive<T, F>(
    lanes: Vec<Vec<T>>,
    pace: Pace,
    stop: CancellationToken,
    job: impl Fn(T, usize) -> F + Clone + Send + Sync + 'static,
) where
    T: Send + 'static,
    F: Future<Output = Done<T>> + Send + 'static,
{
    // More lanes open than places, since a lane that waits for its turn holds none. Each is run by a task that
    // goes on to the next lane: most have one job, for which a task of its own would be a sixth of the cost.
    let waiting = if pace.gap.is_zero() {
        0
    } else {
        pace.width + 64
    };
    let open = (pace.width + waiting).min(lanes.len());
    let lanes = Arc::new(Mutex::new(lanes.into_iter()));
    let door = Arc::new(Semaphore::new(STARTS));
    let job = move |item, left| {
        let (door, job) = (Arc::clone(&door), job.clone());
        async move {
            let pass = door.acquire().await;
            // To behind what the next look at the sockets wakes.
            yield_now().await;
            drop(pass);
            job(item, left).await
        }
    };
    let mut running = JoinSet::new();
    for _ in 0..open {
        let (lanes, job, stop) = (Arc::clone(&lanes), job.clone(), stop.clone());
        running.spawn(async move {
            while !stop.is_cancelled()
                && let Some(items) = next_of(&lanes)
            {
                run_lane(items, pace.depth, &stop, &job).await;
            }
        });
    }
    while running.join_next().await.is_some() {}
}

fn next_of<T>(lanes: &Mutex<std::vec::IntoIter<T>>) -> Option<T> {
    lanes.lock().unwrap_or_else(PoisonError::into_inner).next()
}

async fn run_lane<T: Send + 'static, F: Future<Output = Done<T>> + Send + 'static>(
    mut items: Vec<T>,
    depth: usize,
    stop: &CancellationToken,
    job: &impl Fn(T, usize) -> F,
) {
    while !items.is_empty() {
        let all = items.len();
        // One after the other, they need no tasks of their own.
        if depth == 1 || items.len() == 1 {
            let mut again = Vec::new();
            for (done, item) in items.into_iter().enumerate() {
                if stop.is_cancelled() {
                    return;
                }
                if let Done::Again(item) = job(item, all - done).await {
                    again.push(item);
                }
            }
            items = again;
            continue;
        }
        let mut again = Vec::new();
        let mut jobs = JoinSet::new();
        for (begun, item) in items.into_iter().enumerate() {
            if stop.is_cancelled() {
                break;
            }
            if jobs.len() >= depth {
                again.extend(outcome(jobs.join_next().await));
            }
            jobs.spawn(job(item, all - begun));
        }
        while let Some(done) = jobs.join_next().await {
            again.extend(outcome(Some(done)));
        }
        items = if stop.is_cancelled() {
            Vec::new()
        } else {
            again
        };
    }
}

fn outcome<T>(done: Option<Result<Done<T>, tokio::task::JoinError>>) -> Option<T> {
    match done {
        Some(Ok(Done::Again(item))) => Some(item),
        Some(Ok(Done::Finished) | Err(_)) | None => None,
    }
}

/// Groups items by site, longest lane first: the longest sets how long a run takes. Lanes of the same length
/// come in an order that depends on the seed alone, so that no part of a list is asked first by habit.
#[must_use]
pub fn lanes<T>(items: Vec<T>, site: impl Fn(&T) -> String, seed: u64) -> Vec<Vec<T>> {
    let mut by_site: HashMap<String, Vec<T>> = HashMap::new();
    for item in items {
        by_site.entry(site(&item)).or_default().push(item);
    }
    let mut lanes: Vec<(u64, String, Vec<T>)> = by_site
        .into_iter()
        .map(|(site, lane)| (scatter(&site, seed), site, lane))
        .collect();
    lanes.sort_by(|(a_key, a_site, a), (b_key, b_site, b)| {
        b.len()
            .cmp(&a.len())
            .then(a_key.cmp(b_key))
            .then(a_site.cmp(b_site))
    });
    lanes.into_iter().map(|(_, _, lane)| lane).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::road::Road;
    use std::time::Duration;
    use tokio::time::Instant;

    /// When each site's requests started, in milliseconds, on a clock that costs nothing.
    async fn starts(
        pace: Pace,
        work: Vec<&'static str>,
        takes: u64,
        stop_at: Option<u64>,
    ) -> HashMap<&'static str, Vec<u64>> {
        let began = Instant::now();
        let seen = Arc::new(Mutex::new(HashMap::<_, Vec<u64>>::new()));
        let stop = CancellationToken::new();
        if let Some(at) = stop_at {
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(at)).await;
                stop.cancel();
            });
        }
        let log = Arc::clone(&seen);
        let road = Road::new(&pace);
        drive(
            lanes(work, |site| (*site).to_owned(), 1),
            pace,
            stop,
            move |site, _| {
                let (log, road) = (Arc::clone(&log), Arc::clone(&road));
                async move {
                    let _place = road.turn(&road.lane(site, site), None).await;
                    let at = u64::try_from(began.elapsed().as_millis()).unwrap();
                    log.lock().unwrap().entry(site).or_default().push(at);
                    tokio::time::sleep(Duration::from_millis(takes)).await;
                    Done::Finished
                }
            },
        )
        .await;
        Arc::try_unwrap(seen).unwrap().into_inner().unwrap()
    }

    const PACE: Pace = Pace {
        width: 4,
        depth: 4,
        gap: Duration::from_secs(1),
        rate: None,
        per_address: None,
    };

    fn mixed() -> Vec<&'static str> {
        std::iter::repeat_n("hot", 60)
            .chain((0..60).map(|n| ["a", "b", "c"][n % 3]))
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_gap_lies_between_any_two_starts_of_a_lane() {
        for takes in [10, 2500] {
            for starts in starts(PACE, mixed(), takes, None).await.values() {
                assert!(
                    starts.windows(2).all(|pair| pair[1] - pair[0] >= 999),
                    "{starts:?}"
                );
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_lane_delays_nobody_else() {
        let seen = starts(Pace { width: 64, ..PACE }, mixed(), 2500, None).await;
        assert_eq!(
            (seen["hot"].len(), seen["hot"][59], seen["a"][19]),
            (60, 59 * 1_005, 19 * 1_005)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn depth_bounds_what_is_in_flight_in_a_lane() {
        let seen = starts(Pace { depth: 1, ..PACE }, vec!["hot"; 10], 2500, None).await;
        assert_eq!(seen["hot"][9], 9 * 2500);
    }

    #[tokio::test(start_paused = true)]
    async fn width_bounds_what_is_in_flight_in_all() {
        let sites: Vec<&'static str> = vec!["a", "b", "c", "d", "e", "f", "g", "h"];
        let seen = starts(Pace { width: 2, ..PACE }, sites, 1000, None).await;
        let mut all: Vec<u64> = seen.values().flatten().copied().collect();
        all.sort_unstable();
        assert_eq!(all, [0, 0, 1000, 1000, 2000, 2000, 3000, 3000]);
    }

    /// The most jobs of 200 that are under way at once, where all may be and each takes so long: rounds of the event
    /// loop, then a time.
    async fn most_under_way(rounds: usize, time: Duration) -> usize {
        let at_once = Arc::new(Mutex::new((0, 0)));
        let counted = Arc::clone(&at_once);
        let pace = Pace {
            width: 256,
            gap: Duration::ZERO,
            ..PACE
        };
        let lanes = (0..200).map(|n| vec![n]).collect();
        drive(lanes, pace, CancellationToken::new(), move |_, _| {
            let counted = Arc::clone(&counted);
            async move {
                let (now, most) = *counted.lock().unwrap();
                *counted.lock().unwrap() = (now + 1, most.max(now + 1));
                for _ in 0..rounds {
                    yield_now().await;
                }
                tokio::time::sleep(time).await;
                counted.lock().unwrap().0 -= 1;
                Done::Finished
            }
        })
        .await;
        let (left, most) = *at_once.lock().unwrap();
        assert_eq!(left, 0);
        most
    }

    #[tokio::test(start_paused = true)]
    async fn few_are_under_way_where_answers_come_at_once_and_all_where_they_take_their_time() {
        assert!(most_under_way(4, Duration::ZERO).await <= 6 * STARTS);
        assert_eq!(most_under_way(4, Duration::from_secs(1)).await, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn stopping_finishes_what_has_started_and_starts_nothing() {
        let seen = starts(PACE, vec!["hot"; 60], 2500, Some(4500)).await;
        assert!(seen["hot"].len() < 10, "{seen:?}");
    }

    #[test]
    fn the_longest_lane_comes_first_and_the_seed_orders_the_rest() {
        let order = |seed| -> Vec<&str> {
            lanes(mixed(), |it| (*it).to_owned(), seed)
                .iter()
                .map(|lane| lane[0])
                .collect()
        };
        assert_eq!(order(1)[0], "hot");
        assert_eq!(order(1), order(1));
        assert!((1..20).any(|seed| order(seed) != order(1)));
    }
}
