//! Sweeps, kept at their times: the loop that waits, starts runs one after the other, and records what became of every
//! start. When a run is due is `periodic`'s to say; how a scan is done is the desk's, which `cli` has a real one of.

mod archive;
mod fares;
pub mod hook;
pub mod listen;
mod page;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Error, Result};
use jiff::{SignedDuration, Timestamp};

use self::archive::{Archive, Lock};
use self::fares::Fares;
use crate::manifest::{Occasion, Start};
use crate::periodic::due::{self, Next, Seen};
use crate::periodic::history::{Line, Reason};
use crate::periodic::metrics::Standing;
use crate::periodic::plan::{Hook, Sweep, Sweeps};
use crate::periodic::schedule::Schedule;
use crate::tally::Summary;

/// What woke the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The time came.
    Time,
    /// It is to read its file again.
    Reload,
    /// It is to stop.
    Stop,
}

/// A run to be done.
#[derive(Debug)]
pub struct Order<'a> {
    /// Whose.
    pub sweep: &'a Sweep,
    /// Where it is written.
    pub dir: &'a Path,
    /// What it is for.
    pub occasion: Occasion,
    /// It stands there already, and is to be finished.
    pub is_resumed: bool,
    /// When it has to have ended.
    pub until: Option<Timestamp>,
}

/// Why a run could not be done, or not be written.
#[derive(Debug)]
pub struct Failure {
    /// In a word.
    pub reason: Reason,
    /// For a person.
    pub error: Error,
}

/// What a run's evidence comes to.
#[derive(Debug)]
pub struct Tables {
    /// The tables.
    pub summary: Summary,
    /// Failures of checks that the baseline does not have: address and check.
    pub new_failures: Vec<(String, String)>,
}

/// Something to be told to a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// How.
    pub hook: Hook,
    /// What a program reads from stdin, and a webhook is posted.
    pub message: String,
    /// What a program finds in its environment.
    pub facts: Vec<(String, String)>,
}

/// The world, as the loop sees it.
pub trait Desk {
    /// The time.
    fn now(&mut self) -> Timestamp;
    /// Waits, no longer than until then.
    fn wait(&mut self, until: Timestamp) -> Woken;
    /// Does a run, or as much of it as can be done, and says why it is not whole, if it is not.
    ///
    /// # Errors
    /// When nothing was asked, or what came back could not be written.
    fn scan(&mut self, order: &Order<'_>) -> Result<Option<Reason>, Failure>;
    /// Writes a run's tables.
    ///
    /// # Errors
    /// When the run cannot be read or its tables cannot be written.
    fn tables(&mut self, sweep: &Sweep, dir: &Path) -> Result<Tables>;
    /// Hands something over to be told. It does not wait.
    fn deliver(&mut self, delivery: Delivery);
    /// Takes note of how sweeps stand.
    fn note(&mut self, sweep: &str, standing: &Standing);
    /// A word to whoever reads the log.
    fn say(&mut self, text: &str);
}

/// How a loop ended, or a single run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// As it should.
    Well,
    /// A run failed, or is incomplete.
    Failed,
    /// A threshold was crossed.
    Regressed,
    /// It was asked to stop.
    Stopped,
    /// Another process runs the sweep.
    Elsewhere,
}

/// How often the clock is looked at while nothing is due: a clock that is set is noticed that soon.
const NAP: SignedDuration = SignedDuration::from_secs(30);

/// A nap that was longer than it should have been by this was sleep: nobody was there meanwhile.
const OVERSLEPT: SignedDuration = SignedDuration::from_secs(60);

/// The sweeps, and where they stand.
#[derive(Debug)]
pub struct Keeper {
    sweeps: Vec<Sweep>,
    archive: Archive,
    standings: BTreeMap<String, Standing>,
    /// How the endpoints of each sweep fared.
    fares: BTreeMap<String, Fares>,
    /// Somebody has been looking at the clock since.
    awake_since: Timestamp,
    nap: SignedDuration,
}

impl Keeper {
    /// Opens the directory that the sweeps are kept in.
    ///
    /// # Errors
    /// When it cannot be made or read.
    pub fn open(sweeps: Sweeps, desk: &mut impl Desk) -> Result<Self> {
        let mut keeper = Self {
            archive: Archive::open(&sweeps.dir)?,
            sweeps: sweeps.sweeps,
            standings: BTreeMap::new(),
            fares: BTreeMap::new(),
            awake_since: desk.now(),
            nap: NAP,
        };
        keeper.begin(desk)?;
        Ok(keeper)
    }

    /// Looks at the clock less often. For clocks that cost nothing.
    #[must_use]
    pub fn napping(mut self, nap: SignedDuration) -> Self {
        self.nap = nap;
        self
    }

    /// Keeps all sweeps until it is asked to stop. `reload` gives them anew.
    pub fn keep(&mut self, desk: &mut impl Desk, mut reload: impl FnMut() -> Result<Sweeps>) {
        for number in 0..self.sweeps.len() {
            if self.take_up(number, desk) == Some(Ended::Stopped) {
                return;
            }
        }
        let mut looked = desk.now();
        loop {
            let now = desk.now();
            if now.duration_since(looked) > self.nap.saturating_add(OVERSLEPT) {
                self.awake_since = now;
            }
            let (due, until) = self.look(now, desk);
            if let Some((number, next)) = due {
                let ended = self.start(number, next, desk);
                looked = desk.now();
                match ended {
                    Ended::Stopped => return,
                    // What another process does takes a while.
                    Ended::Elsewhere => {}
                    Ended::Well | Ended::Failed | Ended::Regressed => continue,
                }
            } else {
                looked = now;
            }
            let nap = looked.saturating_add(self.nap).unwrap_or(looked);
            match desk.wait(until.map_or(nap, |it| it.min(nap).max(looked))) {
                Woken::Time => {}
                Woken::Stop => return,
                Woken::Reload => self.reload(&mut reload, desk),
            }
        }
    }

    /// Does one run now: that which is due by the schedule, or else one that somebody asked for.
    ///
    /// # Errors
    /// When there is no sweep of that name.
    pub fn once(&mut self, name: &str, desk: &mut impl Desk) -> Result<Ended> {
        let Some(number) = self.sweeps.iter().position(|it| it.name == name) else {
            let names: Vec<&str> = self.sweeps.iter().map(|it| it.name.as_str()).collect();
            anyhow::bail!("there is no sweep {name}; there are {}", names.join(", "));
        };
        let before = self.take_up(number, desk);
        if let Some(failed) = before.filter(|it| *it != Ended::Well) {
            return Ok(failed);
        }
        let now = desk.now();
        let asked = Next::Run {
            scheduled_at: now,
            start: Start::Asked,
            late: std::time::Duration::ZERO,
        };
        let next = match self.decide(number, now, true, desk) {
            Some(next @ Next::Run { .. }) => next,
            // The run that was taken up is the one that was asked for.
            Some(_) | None if before.is_some() => return Ok(Ended::Well),
            Some(Next::Wait(_) | Next::Never) | None => asked,
        };
        Ok(self.start(number, next, desk))
    }

    /// Notes since when each sweep is kept; a schedule that has changed has missed nothing yet.
    fn begin(&mut self, desk: &mut impl Desk) -> Result<()> {
        let now = desk.now();
        for sweep in &self.sweeps {
            let schedule = sweep.schedule.as_ref().map(Schedule::to_string);
            self.archive
                .begin(&sweep.name, &schedule.unwrap_or_default(), now)?;
            let standing = self.standings.entry(sweep.name.clone()).or_default();
            standing.last = self.archive.last_run(&sweep.name);
            desk.note(&sweep.name, standing);
        }
        self.standings
            .retain(|name, _| self.sweeps.iter().any(|it| it.name == *name));
        Ok(())
    }

    fn reload(&mut self, reload: &mut impl FnMut() -> Result<Sweeps>, desk: &mut impl Desk) {
        let read = reload().and_then(|sweeps| {
            let is_moved = self.archive.path() != sweeps.dir;
            let moved = is_moved.then(|| Archive::open(&sweeps.dir)).transpose()?;
            Ok((sweeps, moved))
        });
        match read {
            Ok((sweeps, moved)) => {
                self.sweeps = sweeps.sweeps;
                if let Some(archive) = moved {
                    self.archive = archive;
                    self.fares.clear();
                }
                match self.begin(desk) {
                    Ok(()) => desk.say(&format!("read again: {} sweeps", self.sweeps.len())),
                    Err(error) => desk.say(&format!("{error:#}")),
                }
            }
            Err(error) => desk.say(&format!("what was read before stays in force: {error:#}")),
        }
    }

    /// What is due first, if anything is, and when something will be.
    fn look(
        &mut self,
        now: Timestamp,
        desk: &mut impl Desk,
    ) -> (Option<(usize, Next)>, Option<Timestamp>) {
        let mut due: Option<(usize, Next)> = None;
        let mut first: Option<Timestamp> = None;
        let mut until: Option<Timestamp> = None;
        for number in 0..self.sweeps.len() {
            match self.decide(number, now, false, desk) {
                Some(next @ Next::Run { scheduled_at, .. })
                    if first.is_none_or(|it| scheduled_at < it) =>
                {
                    (due, first) = (Some((number, next)), Some(scheduled_at));
                }
                Some(Next::Wait(at)) => until = Some(until.map_or(at, |it| it.min(at))),
                Some(Next::Run { .. } | Next::Never) | None => {}
            }
        }
        (due, until)
    }

    /// What is next for a sweep; starts that were missed are recorded on the way.
    fn decide(
        &mut self,
        number: usize,
        now: Timestamp,
        by_another_clock: bool,
        desk: &mut impl Desk,
    ) -> Option<Next> {
        let sweep = &self.sweeps[number];
        let schedule = sweep.schedule.as_ref()?;
        let plain;
        let (schedule, allowed) = if by_another_clock {
            plain = schedule.without_jitter();
            (&plain, schedule.jitter)
        } else {
            (schedule, SignedDuration::ZERO)
        };
        self.archive.refresh();
        let decision = due::decide(
            schedule,
            &Seen {
                dealt_with: self.archive.dealt_with(&sweep.name)?,
                awake_since: self.awake_since,
                now,
                catch_up: sweep.catch_up,
                allowed,
            },
        );
        if let Some(at) = decision.rewound {
            desk.say(&format!(
                "{}: the clock was set back; starts are counted from {at}",
                sweep.name
            ));
            if let Err(error) = self.archive.rewind(&sweep.name, &schedule.to_string(), at) {
                desk.say(&format!("{error:#}"));
            }
        }
        let missed: Vec<Line> = decision
            .missed
            .iter()
            .map(|it| Line::missed(&sweep.name, it))
            .collect();
        if !missed.is_empty() {
            // Whoever holds the sweep records what it misses.
            let Ok(Lock::Held(_held)) = self.archive.lock(&sweep.name) else {
                return None;
            };
            let sweep = sweep.clone();
            self.record_missed(&sweep, missed, desk);
        }
        let standing = self
            .standings
            .entry(self.sweeps[number].name.clone())
            .or_default();
        standing.next_start = match decision.next {
            Next::Wait(at) => Some(at),
            Next::Run { .. } => Some(now),
            Next::Never => None,
        };
        desk.note(&self.sweeps[number].name, standing);
        Some(decision.next)
    }
}

/// The directory of a run, by its start and its sweep.
fn run_name(sweep: &str, started_at: Timestamp) -> String {
    format!("{}-{sweep}", started_at.strftime("%Y%m%dT%H%M%SZ"))
}

/// A directory that is not there yet: two runs can begin in one second.
fn new_dir(folder: &Path, name: &str) -> PathBuf {
    let first = folder.join(name);
    if !first.exists() {
        return first;
    }
    // A name of a sweep has no full stop.
    (2..=u32::MAX)
        .map(|number| folder.join(format!("{name}.{number}")))
        .find(|it| !it.exists())
        .unwrap_or(first)
}
