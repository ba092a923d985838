//! Pace: one lane a site. A lane's requests start at least a gap apart, whatever they are for; lanes run side
//! by side, longest first; nothing holds a place while it waits. What a request is, is the caller's affair.

use std::future::Future;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::QuantaClock;
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Refusals (429, 503) in a row after which a lane is closed.
const STRIKES: u32 = 3;

/// The longest that a lane is paused at a server's word.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The pause after a first refusal that names no time; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// How hard to push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Requests in flight, all lanes together.
    pub width: usize,
    /// Endpoints in flight in one lane.
    pub depth: usize,
    /// The least time between two request starts in one lane.
    pub gap: Duration,
    /// Requests a second, all lanes together; none: no limit.
    pub rate: Option<NonZeroU32>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            width: 256,
            depth: 2,
            gap: Duration::from_millis(500),
            rate: NonZeroU32::new(100),
        }
    }
}

type Limiter = RateLimiter<
    NotKeyed,
    InMemoryState,
    QuantaClock,
    NoOpMiddleware<governor::clock::QuantaInstant>,
>;

/// What all lanes share: the places in flight, and the rate of the run.
#[derive(Debug)]
struct Shared {
    places: Arc<Semaphore>,
    /// Behind a fair lock: a limiter with many waiters wakes them all at each turn.
    rate: Option<Mutex<Limiter>>,
}

/// The pace of one lane.
#[derive(Debug)]
pub struct Lane {
    shared: Arc<Shared>,
    gap: Duration,
    /// When the next request may start. The lock is fair, so requests start in the order they asked.
    next_start: Mutex<Instant>,
    strikes: AtomicU32,
}

impl Lane {
    /// Waits for the lane's turn. The place in flight is held until the permit is dropped.
    ///
    /// # Panics
    /// Never: the places are not closed while a lane holds them.
    pub async fn turn(&self) -> OwnedSemaphorePermit {
        let mut next_start = self.next_start.lock().await;
        sleep_until(*next_start).await;
        // Only now: what waits for its lane holds no place, and what has a place starts at once.
        let place = Arc::clone(&self.shared.places)
            .acquire_owned()
            .await
            .expect("the places are never closed");
        if let Some(rate) = &self.shared.rate {
            rate.lock().await.until_ready().await;
        }
        *next_start = Instant::now() + self.gap;
        place
    }

    /// The site refused us for now: the lane waits as long as it asks for, or longer each time.
    pub async fn pause(&self, asked: Option<Duration>) {
        let strikes = self.strikes.fetch_add(1, Ordering::Relaxed);
        let wait = asked
            .unwrap_or(FIRST_PAUSE * 2u32.saturating_pow(strikes))
            .min(LONGEST_PAUSE);
        let mut next_start = self.next_start.lock().await;
        *next_start = (*next_start).max(Instant::now() + wait);
    }

    /// The site answered as usual.
    pub fn relax(&self) {
        self.strikes.store(0, Ordering::Relaxed);
    }

    /// The site has refused so often in a row that the rest is left alone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.strikes.load(Ordering::Relaxed) >= STRIKES
    }
}

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done<T> {
    /// It is finished.
    Finished,
    /// It is to be run again, once the lane's others have been.
    Again(T),
}

/// Runs every lane until all are done or `stop` is called; what has started finishes.
///
/// Each job is a task of its own, so that no clock stands still while another is polled.
pub async fn drive<T, F>(
    lanes: Vec<Vec<T>>,
    pace: Pace,
    stop: CancellationToken,
    job: impl Fn(T, Arc<Lane>) -> F + Clone + Send + Sync + 'static,
) where
    T: Send + 'static,
    F: Future<Output = Done<T>> + Send + 'static,
{
    let shared = Arc::new(Shared {
        places: Arc::new(Semaphore::new(pace.width)),
        rate: pace.rate.map(|rate| {
            Mutex::new(RateLimiter::direct(
                Quota::per_second(rate).allow_burst(NonZeroU32::MIN),
            ))
        }),
    });
    // More lanes than places, since a lane that waits for its turn holds none.
    let open = Arc::new(Semaphore::new(pace.width * 2 + 64));
    let mut running = JoinSet::new();
    for items in lanes {
        let opened = tokio::select! { it = Arc::clone(&open).acquire_owned() => it, () = stop.cancelled() => break };
        while running.try_join_next().is_some() {}
        let lane = Arc::new(Lane {
            shared: Arc::clone(&shared),
            gap: pace.gap,
            next_start: Mutex::new(Instant::now()),
            strikes: AtomicU32::new(0),
        });
        let (job, stop) = (job.clone(), stop.clone());
        running.spawn(async move {
            let _opened = opened;
            run_lane(items, pace.depth, &stop, |item| {
                job(item, Arc::clone(&lane))
            })
            .await;
        });
    }
    while running.join_next().await.is_some() {}
}

async fn run_lane<T: Send + 'static, F: Future<Output = Done<T>> + Send + 'static>(
    mut items: Vec<T>,
    depth: usize,
    stop: &CancellationToken,
    job: impl Fn(T) -> F,
) {
    while !items.is_empty() {
        let mut again = Vec::new();
        let mut jobs = JoinSet::new();
        for item in items {
            if stop.is_cancelled() {
                break;
            }
            if jobs.len() >= depth {
                again.extend(outcome(jobs.join_next().await));
            }
            jobs.spawn(job(item));
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
    let mut by_site: std::collections::HashMap<String, Vec<T>> = std::collections::HashMap::new();
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

/// FNV-1a: the same on every machine and in every release.
fn scatter(text: &str, seed: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::Mutex as StdMutex;

    /// When each site's requests started, in milliseconds, on a clock that costs nothing.
    async fn starts(
        pace: Pace,
        work: Vec<&'static str>,
        takes: u64,
        stop_at: Option<u64>,
    ) -> HashMap<&'static str, Vec<u64>> {
        let began = Instant::now();
        let seen = Arc::new(StdMutex::new(HashMap::<_, Vec<u64>>::new()));
        let stop = CancellationToken::new();
        if let Some(at) = stop_at {
            let stop = stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(at)).await;
                stop.cancel();
            });
        }
        let log = Arc::clone(&seen);
        drive(
            lanes(work, |site| (*site).to_owned(), 1),
            pace,
            stop,
            move |site, lane: Arc<Lane>| {
                let log = Arc::clone(&log);
                async move {
                    let _place = lane.turn().await;
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
                    starts.windows(2).all(|pair| pair[1] - pair[0] >= 1000),
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
            (60, 59_000, 19_000)
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

    #[tokio::test(start_paused = true)]
    async fn stopping_finishes_what_has_started_and_starts_nothing() {
        let seen = starts(PACE, vec!["hot"; 60], 2500, Some(4500)).await;
        assert!(seen["hot"].len() < 10, "{seen:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_pauses_its_lane_and_a_row_of_them_closes_it() {
        let lane = Lane {
            shared: Arc::new(Shared {
                places: Arc::new(Semaphore::new(1)),
                rate: None,
            }),
            gap: Duration::from_secs(1),
            next_start: Mutex::new(Instant::now()),
            strikes: AtomicU32::new(0),
        };
        let began = Instant::now();
        drop(lane.turn().await);
        lane.pause(Some(Duration::from_secs(7))).await;
        drop(lane.turn().await);
        assert_eq!(began.elapsed().as_secs(), 7);
        lane.pause(None).await;
        assert!(!lane.is_closed());
        lane.pause(None).await;
        assert!(lane.is_closed());
        lane.relax();
        assert!(!lane.is_closed());
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
