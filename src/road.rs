//! Pace: one lane a site. A lane's requests start at least a gap apart, whatever they are for; lanes run side
//! by side, longest first; nothing holds a place while it waits. Over the lanes lie looser caps: for each
//! operator of several sites, for each address, and for the whole run. What a request is, is the caller's affair.

mod rate;
mod turnstile;

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};

use rate::Rate;
use turnstile::Turnstile;

use crate::target::scatter;

/// Refusals (429, 503) in a row after which a lane is closed.
const STRIKES: u32 = 3;

/// The longest that a lane is paused at a server's word.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The pause after a first refusal that names no time; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Request starts a second at one operator of several sites, such as a hosting platform.
const PER_OPERATOR: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");

/// What a lane does not lose where its timer is late: timers are as coarse as a millisecond. A gap is shorter than
/// asked for by no more than this.
const TIMER_SLACK: Duration = Duration::from_millis(1);

/// What a gap is longer than asked for, at most; a hundredth, where that is less. A server does not see each request
/// as soon as it comes, and what it sees is not to be short.
const MARGIN: Duration = Duration::from_millis(5);

/// Request starts a second of a run whose lanes keep a gap, all together: what a machine can send without delay. What
/// leaves late is short of its gap for the request after it, as the server sees them.
const EVENLY: NonZeroU32 = NonZeroU32::new(5_000).expect("it is not zero");

/// What late timers may have held up is caught up with at once.
const CATCH_UP: Duration = Duration::from_millis(4);

/// Most requests are on the wire this soon after their turn. Only what is later holds back the next one of its lane.
const PROMPT: Duration = Duration::from_millis(1);

/// The longest that the next request is held back where one was late to leave: a server sees the gaps between the
/// requests that reach it, and a busy machine does not send at once. What a slow network takes is not ours to make up.
const LATE: Duration = Duration::from_millis(24);

/// A table of turns is swept of those that are past when it has grown by as many.
const SWEPT_EVERY: usize = 4096;

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
    /// Request starts a second to one address; none: no limit.
    pub per_address: Option<NonZeroU32>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            width: 256,
            depth: 2,
            gap: Duration::from_millis(500),
            rate: NonZeroU32::new(100),
            per_address: NonZeroU32::new(20),
        }
    }
}

impl Pace {
    /// Request starts a second to one operator of several sites. Where not even a site has a pace, none.
    #[must_use]
    pub fn per_operator(&self) -> Option<NonZeroU32> {
        (!self.gap.is_zero()).then_some(PER_OPERATOR)
    }
}

/// Turns given out by key, evenly spaced. A turn is a reservation, so nobody is woken before it.
#[derive(Debug)]
struct Turns<K> {
    every: Duration,
    /// Turns that have passed unused for no longer than this are given out all the same.
    catch_up: Duration,
    next: StdMutex<HashMap<K, Instant>>,
}

impl<K: Hash + Eq> Turns<K> {
    fn per_second(rate: NonZeroU32) -> Self {
        Self {
            every: Duration::from_secs(1) / rate.get(),
            catch_up: Duration::ZERO,
            next: StdMutex::default(),
        }
    }

    /// The key's next turn.
    fn take(&self, key: K) -> Instant {
        let earliest = Instant::now() - self.catch_up;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if next.len() % SWEPT_EVERY == SWEPT_EVERY - 1 {
            next.retain(|_, turn| *turn > earliest);
        }
        let turn = next.get(&key).map_or(earliest, |it| earliest.max(*it));
        next.insert(key, turn + self.every);
        turn
    }
}

/// What all lanes of a run share, and the lanes themselves.
#[derive(Debug)]
pub struct Road {
    gap: Duration,
    places: Arc<Semaphore>,
    /// What all requests that start go through, one at a time: a limiter with many waiters wakes them all each time.
    turnstile: Arc<Turnstile>,
    rate: Option<Rate>,
    /// Starts spread evenly, however many lanes are open at once.
    spread: Option<Turns<()>>,
    operators: Option<Turns<String>>,
    addresses: Option<Turns<IpAddr>>,
    lanes: StdMutex<HashMap<String, Arc<Lane>>>,
    /// Nothing starts before: this machine has run out of something.
    held: StdMutex<Option<Instant>>,
}

/// One site's lane.
#[derive(Debug)]
pub struct Lane {
    site: String,
    /// The operator, where it has several sites.
    operator: Option<String>,
    /// Held by the one whose turn is next. It is fair, so requests start in the order they asked.
    queue: Mutex<()>,
    /// Endpoints that are still to be asked in it.
    left: AtomicUsize,
    state: StdMutex<State>,
}

/// How a lane stands.
#[derive(Debug, Clone, Copy)]
struct State {
    /// The gap after the last request has passed.
    next_start: Instant,
    /// The site has asked for a rest until then.
    rests_until: Instant,
    /// Refusals in a row.
    strikes: u32,
}

impl Road {
    /// A road at this pace.
    #[must_use]
    pub fn new(pace: &Pace) -> Arc<Self> {
        Arc::new(Self {
            gap: pace.gap + (pace.gap / 100).min(MARGIN),
            places: Arc::new(Semaphore::new(pace.width)),
            turnstile: Arc::default(),
            rate: pace.rate.map(Rate::per_second),
            spread: (!pace.gap.is_zero()).then(|| Turns {
                catch_up: CATCH_UP,
                ..Turns::per_second(EVENLY)
            }),
            operators: pace.per_operator().map(Turns::per_second),
            addresses: pace.per_address.map(Turns::per_second),
            lanes: StdMutex::default(),
            held: StdMutex::default(),
        })
    }

    /// The lane of a site. `operator` is the name it shares with other sites, where that is another one.
    #[must_use]
    pub fn lane(&self, site: &str, operator: &str) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(site) {
            return Arc::clone(lane);
        }
        let now = Instant::now();
        if lanes.len() % SWEPT_EVERY == SWEPT_EVERY - 1 {
            // A lane that nobody uses and whose gap has passed is as good as a new one.
            lanes.retain(|_, lane| Arc::strong_count(lane) > 1 || lane.state().opens() > now);
        }
        let lane = Arc::new(Lane {
            site: site.to_owned(),
            operator: (operator != site).then(|| operator.to_owned()),
            queue: Mutex::default(),
            left: AtomicUsize::new(0),
            state: StdMutex::new(State {
                next_start: now,
                rests_until: now,
                strikes: 0,
            }),
        });
        lanes.insert(site.to_owned(), Arc::clone(&lane));
        lane
    }

    /// Waits for a turn in a lane, to an address. The place in flight is held until the permit is dropped.
    ///
    /// # Panics
    /// Never: the places are not closed while the road is there.
    pub async fn turn(&self, lane: &Lane, address: Option<IpAddr>) -> OwnedSemaphorePermit {
        let _next = lane.queue.lock().await;
        loop {
            self.reach_turn(lane, address).await;
            // One at a time takes a place and waits for the rate: whoever waits longer than that holds none. The lane
            // with the most to come goes first, since it sets how long the run takes.
            let left = lane.left.load(Ordering::Relaxed);
            let _first = self.turnstile.pass(left).await;
            let place = Arc::clone(&self.places)
                .acquire_owned()
                .await
                .expect("the places are never closed");
            if let Some(spread) = &self.spread {
                wait_until(spread.take(())).await;
            }
            if let Some(rate) = &self.rate {
                rate.turn().await;
            }
            if self.starts(lane) {
                return place;
            }
            // The site has asked for a rest meanwhile, or has been asked something that goes along with another.
        }
    }

    /// Waits for a turn of a request that goes along with one in flight, and shares its place. It queues behind
    /// nobody: who is next may be waiting for the very place that this one holds.
    pub async fn follow(&self, lane: &Lane, address: Option<IpAddr>) {
        loop {
            self.reach_turn(lane, address).await;
            if let Some(rate) = &self.rate {
                rate.turn().await;
            }
            if self.starts(lane) {
                return;
            }
        }
    }

    /// Waits until the lane, its operator and the address can take another request.
    async fn reach_turn(&self, lane: &Lane, address: Option<IpAddr>) {
        if let (Some(operators), Some(operator)) = (&self.operators, &lane.operator) {
            wait_until(self.opens(lane)).await;
            wait_until(operators.take(operator.clone())).await;
        }
        if let (Some(addresses), Some(address)) = (&self.addresses, address) {
            wait_until(self.opens(lane)).await;
            wait_until(addresses.take(address)).await;
        }
        loop {
            let opens = self.opens(lane);
            if opens <= Instant::now() {
                return;
            }
            sleep_until(opens).await;
        }
    }

    /// When a request may start in a lane, as things stand.
    fn opens(&self, lane: &Lane) -> Instant {
        let held = *self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let opens = lane.state().opens();
        held.map_or(opens, |until| until.max(opens))
    }

    /// Starts a request if the lane is still open, and says whether it does.
    fn starts(&self, lane: &Lane) -> bool {
        let now = Instant::now();
        if self.opens(lane) > now {
            return false;
        }
        let mut state = lane.state();
        let opened = state.opens();
        if opened > now {
            return false;
        }
        let slack = TIMER_SLACK.min(self.gap / 2);
        state.next_start = opened.max(now - slack) + self.gap;
        true
    }

    /// What is to be told when the request leaves that has its turn in a lane now. Nothing, where lanes keep no gap.
    #[must_use]
    pub fn on_leaving(&self, lane: &Arc<Lane>) -> Option<Arc<dyn Fn() + Send + Sync>> {
        if self.gap.is_zero() {
            return None;
        }
        let (lane, gap, turn) = (Arc::clone(lane), self.gap, Instant::now());
        Some(Arc::new(move || {
            let delay = turn.elapsed().saturating_sub(PROMPT).min(LATE);
            let next = turn + delay + gap;
            let mut state = lane.state();
            state.next_start = state.next_start.max(next);
        }))
    }

    /// Holds the whole run for a while: what is short is ours, and asking on would only measure that.
    pub fn hold(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(held.map_or(until, |before| before.max(until)));
    }
}

/// Waits for a moment, and not at all for one that has passed: a timer set for now takes a millisecond.
async fn wait_until(moment: Instant) {
    if moment > Instant::now() {
        sleep_until(moment).await;
    }
}

impl State {
    fn opens(&self) -> Instant {
        self.next_start.max(self.rests_until)
    }
}

impl Lane {
    /// The site.
    #[must_use]
    pub fn site(&self) -> &str {
        &self.site
    }

    /// So many endpoints are still to be asked in it. The lane with the most goes first where lanes wait for a place
    /// or for the rate of the run.
    pub fn expects(&self, endpoints: usize) {
        self.left.store(endpoints, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The site refused us for now: the lane rests as long as it asks for, or longer each time, and never quite
    /// as long as another lane.
    pub fn pause(&self, asked: Option<Duration>) {
        let now = Instant::now();
        let mut state = self.state();
        let strikes = state.strikes;
        // What was on its way when the site asked for a rest is the same refusal, said again.
        if state.rests_until <= now {
            state.strikes += 1;
        }
        let jitter = 1.0
            + f64::from(
                u32::try_from(scatter(&self.site, u64::from(strikes)) % 256).unwrap_or_default(),
            ) / 1024.0;
        let wait = asked
            .unwrap_or((FIRST_PAUSE * 2u32.saturating_pow(strikes)).mul_f64(jitter))
            .min(LONGEST_PAUSE);
        state.rests_until = state.rests_until.max(now + wait);
    }

    /// The site answered as usual.
    pub fn relax(&self) {
        self.state().strikes = 0;
    }

    /// The site has refused so often in a row that the rest is left alone.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state().strikes >= STRIKES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        width: 4,
        depth: 4,
        gap: Duration::from_secs(1),
        rate: None,
        per_address: NonZeroU32::new(4),
    };

    #[tokio::test(start_paused = true)]
    async fn a_refusal_pauses_its_lane_and_a_row_of_them_closes_it() {
        let road = Road::new(&PACE);
        let lane = road.lane("a.example", "a.example");
        let began = Instant::now();
        drop(road.turn(&lane, None).await);
        lane.pause(Some(Duration::from_secs(7)));
        drop(road.turn(&road.lane("b.example", "b.example"), None).await);
        assert_eq!(began.elapsed().as_secs(), 0, "nobody else waits");
        drop(road.turn(&lane, None).await);
        assert_eq!(began.elapsed().as_millis(), 7_000);
        lane.pause(None);
        lane.pause(None);
        assert!(
            !lane.is_closed(),
            "two answers of one moment are one refusal"
        );
        drop(road.turn(&lane, None).await);
        lane.pause(None);
        assert!(lane.is_closed());
        lane.relax();
        assert!(!lane.is_closed());
    }

    #[tokio::test]
    async fn the_lane_with_the_most_to_come_does_not_queue_behind_the_others_for_the_rate() {
        let pace = Pace {
            width: 100,
            gap: Duration::ZERO,
            rate: NonZeroU32::new(1000),
            ..PACE
        };
        let road = Road::new(&pace);
        let long = road.lane("long.example", "long.example");
        long.expects(60);
        let started = Arc::new(StdMutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..100 {
            let (road, started) = (Arc::clone(&road), Arc::clone(&started));
            tasks.spawn(async move {
                let site = format!("{number}.example");
                drop(road.turn(&road.lane(&site, &site), None).await);
                started.lock().unwrap().push(site);
            });
        }
        tokio::task::yield_now().await;
        for _ in 0..4 {
            drop(road.turn(&long, None).await);
            started.lock().unwrap().push(long.site().to_owned());
        }
        while tasks.join_next().await.is_some() {}
        let started = started.lock().unwrap();
        let last = started.iter().rposition(|it| it == long.site()).unwrap();
        assert!(
            last < 20,
            "its last turn was number {last} of {}",
            started.len()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_rest_holds_back_what_was_waiting_in_the_lane_already() {
        let road = Road::new(&PACE);
        let lane = road.lane("a.example", "a.example");
        let began = Instant::now();
        drop(road.turn(&lane, None).await);
        let (rested, ()) = tokio::join!(
            async {
                drop(road.turn(&lane, None).await);
                began.elapsed()
            },
            async {
                sleep_until(began + Duration::from_millis(300)).await;
                lane.pause(Some(Duration::from_secs(7)));
            }
        );
        assert_eq!(rested.as_millis(), 7_300);
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_along_with_a_request_does_not_wait_for_who_waits_for_its_place() {
        let narrow = Pace {
            width: 1,
            rate: NonZeroU32::new(1000),
            ..PACE
        };
        let road = Road::new(&narrow);
        let lane = road.lane("a.example", "a.example");
        let stream = road.turn(&lane, None).await;
        let began = Instant::now();
        let (follower, next) = tokio::join!(
            async {
                road.follow(&lane, None).await;
                drop(stream);
                began.elapsed().as_secs()
            },
            async {
                drop(road.turn(&lane, None).await);
                began.elapsed().as_secs()
            }
        );
        assert_eq!((follower, next), (1, 2), "each a gap after the one before");
    }

    #[tokio::test(start_paused = true)]
    async fn the_tenants_of_a_platform_share_a_looser_cap_and_so_do_the_names_of_an_address() {
        let road = Road::new(&PACE);
        let began = Instant::now();
        for tenant in 0..21 {
            drop(
                road.turn(
                    &road.lane(&format!("{tenant}.vercel.app"), "vercel.app"),
                    None,
                )
                .await,
            );
        }
        assert_eq!(began.elapsed().as_millis(), 20 * 100);
        let began = Instant::now();
        for name in 0..9 {
            drop(
                road.turn(
                    &road.lane(&format!("{name}.example"), &format!("{name}.example")),
                    Some([192, 0, 2, 1].into()),
                )
                .await,
            );
        }
        assert_eq!(began.elapsed().as_millis(), 8 * 250);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lane_is_the_same_whoever_asks_for_it() {
        let road = Road::new(&PACE);
        let began = Instant::now();
        drop(road.turn(&road.lane("a.example", "a.example"), None).await);
        drop(road.turn(&road.lane("a.example", "a.example"), None).await);
        assert_eq!(began.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_gap_lies_between_requests_as_they_leave() {
        let road = Road::new(&PACE);
        let lane = road.lane("a.example", "a.example");
        for (late, next) in [(1, 1_005), (6, 1_010), (300, 1_029)] {
            drop(road.turn(&lane, None).await);
            let began = Instant::now();
            let left = road.on_leaving(&lane).unwrap();
            tokio::time::advance(Duration::from_millis(late)).await;
            left();
            drop(road.turn(&lane, None).await);
            assert_eq!(began.elapsed().as_millis(), next, "{late} ms late");
        }
    }

    #[tokio::test]
    async fn lanes_that_open_all_at_once_do_not_start_all_at_once() {
        let pace = Pace {
            width: 1000,
            gap: Duration::from_secs(1),
            per_address: None,
            ..PACE
        };
        let road = Road::new(&pace);
        let began = Instant::now();
        let mut opening = tokio::task::JoinSet::new();
        for number in 0..400 {
            let road = Arc::clone(&road);
            opening.spawn(async move {
                let site = format!("{number}.example");
                drop(road.turn(&road.lane(&site, &site), None).await);
                began.elapsed()
            });
        }
        let mut starts = opening.join_all().await;
        starts.sort();
        let [first, last] = [starts[0], starts[399]].map(|it| it.as_millis());
        assert!(last - first >= 70, "from {first} to {last} ms");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_ours_holds_the_whole_run() {
        let road = Road::new(&PACE);
        let began = Instant::now();
        road.hold(Duration::from_secs(3));
        drop(road.turn(&road.lane("a.example", "a.example"), None).await);
        assert_eq!(began.elapsed().as_secs(), 3);
    }

    #[tokio::test]
    async fn two_thousand_that_wait_on_one_pace_are_served_in_order() {
        let pace = Pace {
            width: 2000,
            gap: Duration::ZERO,
            rate: NonZeroU32::new(1_000_000),
            ..PACE
        };
        let road = Road::new(&pace);
        let lane = road.lane("a.example", "a.example");
        let served = Arc::new(StdMutex::new(Vec::new()));
        let mut waiting = tokio::task::JoinSet::new();
        for number in 0..2000 {
            let (road, lane, served) = (Arc::clone(&road), Arc::clone(&lane), Arc::clone(&served));
            waiting.spawn(async move {
                let _place = road.turn(&lane, None).await;
                served.lock().unwrap().push(number);
            });
        }
        while waiting.join_next().await.is_some() {}
        let served = served.lock().unwrap();
        assert!(served.is_sorted() && served.len() == 2000);
    }
}
