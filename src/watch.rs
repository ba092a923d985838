//! Watches over the instrument while a scan runs: asks controls, looks at the last answers, and holds the run back where
//! they tell more of us than of the endpoints. What it finds goes into the evidence; `scan` alone writes there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::exchange::{Exchange, Reply};
use crate::inquiry::{self, Next, Profile, Terms};
use crate::periodic::health::{self, Recent};
use crate::periodic::metrics::Meters;
use crate::probe::Prober;
use crate::store::{Doubt, NO_ENDPOINT};
use crate::target::Target;

/// The longest wait between two looks at an instrument in doubt.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// The first wait; it doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// What to watch.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Endpoints that answer whenever this machine's network does. Where more than half fail, it is ours.
    pub controls: Vec<Url>,
    /// How often they are asked.
    pub every: Duration,
    /// How long the instrument may be in doubt before the run is given up.
    pub give_up_after: Duration,
    /// What asks them.
    pub prober: Prober,
    /// In whose name, and what.
    pub terms: Terms,
}

/// A watch over one run. The one by default watches nothing and only counts.
#[derive(Debug)]
pub struct Watch {
    /// What is counted while the run goes on.
    pub meters: Arc<Meters>,
    guard: Option<Guard>,
    state: Mutex<State>,
    /// Whether the instrument is well.
    well: watch::Sender<bool>,
    /// Told to look now.
    suspect: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct State {
    recent: Recent,
    /// The last sign that the instrument is well.
    last_good: Option<Timestamp>,
    /// Since when it is in doubt.
    since: Option<Timestamp>,
    /// What is to be written.
    news: Vec<Doubt>,
    /// Since when nothing has spoken for it.
    trouble: Option<tokio::time::Instant>,
    /// How long the next look at it waits.
    wait: Option<Duration>,
    /// For how long it was in doubt, all in all.
    doubted: Duration,
}

impl Default for Watch {
    fn default() -> Self {
        Self::new(Arc::default(), None)
    }
}

impl Watch {
    /// A watch that counts on these meters.
    #[must_use]
    pub fn new(meters: Arc<Meters>, guard: Option<Guard>) -> Self {
        Self {
            meters,
            // What is guarded is not well before its controls say so.
            well: watch::Sender::new(guard.is_none()),
            guard,
            state: Mutex::default(),
            suspect: tokio::sync::Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the instrument is well, or the run is stopped.
    pub async fn ready(&self, stop: &CancellationToken) {
        if *self.well.borrow() {
            return;
        }
        let mut well = self.well.subscribe();
        tokio::select! {
            _ = well.wait_for(|well| *well) => {}
            () = stop.cancelled() => {}
        }
    }

    /// Takes an answer in.
    pub fn note(&self, exchange: &Exchange) {
        if let Some(total) = exchange.timing.total_ms {
            self.meters
                .exchanges
                .observe(Duration::from_secs_f64(total.max(0.0) / 1000.0));
        }
        if self.guard.is_none() {
            return;
        }
        let mut state = self.state();
        let is_ours = health::is_ours(exchange);
        if !is_ours {
            state.trouble = None;
        }
        // After a doubt that nothing has spoken against, one fault more is enough.
        let again = (is_ours && state.trouble.is_some()).then_some(exchange.started_at);
        if let Some(since) = state.recent.note(exchange).or(again)
            && state.since.is_none()
        {
            drop(state);
            self.doubt(since);
            self.suspect.notify_one();
        }
    }

    /// This machine is short of something: the instrument is in doubt from now on, where somebody keeps watch.
    pub fn doubt_now(&self) -> bool {
        if self.guard.is_some() {
            self.doubt(Timestamp::now());
            self.suspect.notify_one();
        }
        self.guard.is_some()
    }

    /// What is to be written to the evidence, before anything that comes after it.
    #[must_use]
    pub fn news(&self) -> Vec<Doubt> {
        std::mem::take(&mut self.state().news)
    }

    /// Seconds for which the instrument was in doubt.
    #[must_use]
    pub fn doubted(&self) -> Duration {
        self.state().doubted
    }

    /// Keeps watch from now on. Where the instrument is in doubt for too long, `give_up` is called.
    #[must_use]
    pub fn begin(self: &Arc<Self>, give_up: CancellationToken) -> Watching {
        let (watch, ended) = (Arc::clone(self), CancellationToken::new());
        let until = ended.clone();
        let kept = Arc::clone(&watch);
        Watching {
            ended,
            task: tokio::spawn(async move { kept.keep(until, give_up).await }),
            watch,
        }
    }

    async fn keep(&self, ended: CancellationToken, give_up: CancellationToken) {
        let Some(guard) = &self.guard else { return };
        let watching = async {
            self.settle(guard, &give_up).await;
            loop {
                tokio::select! {
                    () = tokio::time::sleep(guard.every) => {
                        if self.answer(guard).await {
                            self.state().last_good = Some(Timestamp::now());
                            continue;
                        }
                        let since = self.state().last_good;
                        self.doubt(since.unwrap_or_else(Timestamp::now));
                    }
                    () = self.suspect.notified() => {}
                }
                self.settle(guard, &give_up).await;
            }
        };
        tokio::select! {
            () = watching => {}
            () = ended.cancelled() => {}
        }
    }

    /// Looks a last time: what was measured since the last good sign is in doubt where that fails.
    async fn finish(&self) {
        let Some(guard) = &self.guard else { return };
        let since = self.state().last_good;
        if self.state().since.is_none()
            && let Some(since) = since
            && !self.answer(guard).await
        {
            self.doubt(since);
        }
    }

    /// The instrument is in doubt since.
    fn doubt(&self, since: Timestamp) {
        let mut state = self.state();
        if state.since.is_some() {
            return;
        }
        state.since = Some(since);
        state.news.push(Doubt {
            doubt: true,
            at: since,
            endpoint: NO_ENDPOINT,
        });
        self.well.send_replace(false);
    }

    /// Waits until the instrument is well, and lets the run go on.
    async fn settle(&self, guard: &Guard, give_up: &CancellationToken) {
        let began = tokio::time::Instant::now();
        let trouble = *self.state().trouble.get_or_insert(began);
        let is_first = self.state().last_good.is_none();
        // It goes on growing until something speaks for the instrument.
        let first = FIRST_WAIT.min(guard.every);
        let mut wait = match (self.state().wait, trouble == began) {
            (Some(wait), false) => wait,
            (Some(_) | None, _) => first,
        };
        // At the start the controls are asked at once; in doubt they were just asked.
        let mut is_well = is_first && self.answer(guard).await;
        while !is_well {
            if trouble.elapsed() > guard.give_up_after {
                give_up.cancel();
                // Whoever keeps the run ends this watch.
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
            is_well = self.answer(guard).await;
        }
        let now = Timestamp::now();
        let mut state = self.state();
        state.since = None;
        state.wait = Some(wait);
        if !guard.controls.is_empty() || is_first {
            state.trouble = None;
        }
        state.last_good = Some(now);
        state.recent.clear();
        if !is_first {
            state.doubted += began.elapsed();
        }
        // A run that is taken up again may have been killed in doubt.
        state.news.push(Doubt {
            doubt: false,
            at: now,
            endpoint: NO_ENDPOINT,
        });
        drop(state);
        self.well.send_replace(true);
    }

    /// Whether at least half of the controls answer. Where there are none, nothing speaks against the instrument.
    async fn answer(&self, guard: &Guard) -> bool {
        let terms = Terms {
            confirm: 0,
            profile: Profile::Census,
            ..guard.terms.clone()
        };
        let asked = guard.controls.iter().map(|url| {
            let (prober, terms) = (guard.prober.clone(), terms.clone());
            let target = Target {
                endpoint: NO_ENDPOINT,
                url: url.clone(),
                declared: None,
            };
            tokio::spawn(async move { ask(&prober, &target, &terms).await })
        });
        let mut answered = 0;
        for exchanges in asked.collect::<Vec<_>>() {
            let exchanges = exchanges.await.unwrap_or_default();
            let is_answer = |it: &Exchange| matches!(it.reply, Reply::Answer(_));
            answered += usize::from(exchanges.iter().any(is_answer));
        }
        answered * 2 >= guard.controls.len()
    }
}

/// A watch that is kept.
#[derive(Debug)]
pub struct Watching {
    watch: Arc<Watch>,
    ended: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Watching {
    /// Ends it, with a last look where there is time for one.
    pub async fn end(self, look: bool) {
        self.ended.cancel();
        // A watch that failed has nothing more to say.
        let _ = self.task.await;
        if look {
            self.watch.finish().await;
        }
    }
}

/// Asks a control what there is to ask, one request after the other: a session that it opens is closed.
async fn ask(prober: &Prober, target: &Target, terms: &Terms) -> Vec<Exchange> {
    let mut exchanges = Vec::new();
    while let Next::Ask(ask) | Next::Later(ask) = inquiry::next(target, &exchanges, terms) {
        let way = prober.find(Url::parse(&ask.request.url).ok()).await;
        let turn = || std::future::ready(());
        exchanges.extend(prober.send(target.endpoint, &ask, &way, None, turn).await);
    }
    exchanges
}
