//! What a sweep is: lists, a schedule, the flags of its scan, and what becomes of its runs. Where that was written is
//! `file`'s affair, and `cli`'s.

use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use url::Url;

use super::alert::{Event, Thresholds};
use super::cron::Cron;
use super::retention::Retention;
use super::schedule::{Rhythm, Schedule};
use crate::target::scatter;

/// How long an interrupted run can be taken up again, where nothing else is said.
const RESUME_WITHIN: SignedDuration = SignedDuration::from_hours(6);

/// How often controls are asked during a run, where nothing else is said.
const CONTROL_EVERY: Duration = Duration::from_mins(5);

/// How long the instrument may be in doubt before a run is given up, where nothing else is said.
const GIVE_UP_AFTER: Duration = Duration::from_hours(1);

/// The longest name, in characters: it is part of file names.
pub(super) const NAME: usize = 60;

/// All sweeps, and what they share.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweeps {
    /// Where run directories, `history.csv` and `index.html` are.
    pub dir: PathBuf,
    /// Where metrics are written for node-exporter, if they are.
    pub metrics_file: Option<PathBuf>,
    /// The sweeps, by name.
    pub sweeps: Vec<Sweep>,
}

/// One sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// Its name.
    pub name: String,
    /// List files, and registries as `registry:URL`.
    pub lists: Vec<String>,
    /// When its runs start; none where something else starts them.
    pub schedule: Option<Schedule>,
    /// The cron expression as it was written, if it is one.
    pub cron: Option<String>,
    /// A start that nobody was there for is caught up, the last one only.
    pub catch_up: bool,
    /// An interrupted run no older than this is finished; an older one is closed.
    pub resume_within: SignedDuration,
    /// The gauntlet is replayed before each run.
    pub self_check: bool,
    /// Endpoints that answer whenever this machine's network does.
    pub controls: Vec<Url>,
    /// How often they are asked during a run.
    pub control_every: Duration,
    /// How long the instrument may be in doubt before the run is given up.
    pub give_up_after: Duration,
    /// Failures of checks that are accepted, in a file as `scan --baseline` has it.
    pub baseline: Option<PathBuf>,
    /// The run that others are held against, instead of the one before.
    pub reference: Option<PathBuf>,
    /// Parameters of the scan.
    pub scan: Vec<Flag>,
    /// How long evidence is kept.
    pub retention: Retention,
    /// When a change is a regression.
    pub thresholds: Thresholds,
    /// What is done with alerts.
    pub hooks: Vec<(Event, Hook)>,
}

/// A flag of `scan`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Its name, with dashes and without those in front.
    pub name: String,
    /// Its values; none where it takes none.
    pub values: Vec<String>,
    /// The line it stands in.
    pub line: usize,
}

/// What is done with an alert. Each is tried on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// A program and its arguments; it reads the alert from stdin.
    pub command: Vec<String>,
    /// Where the alert is posted.
    pub webhook: Option<Url>,
    /// The environment's variable with the key that posts are signed with.
    pub secret_env: Option<String>,
    /// The file with that key.
    pub secret_file: Option<PathBuf>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Attempts at the webhook beyond the first.
    pub retries: u32,
}

/// Where runs are, where nothing else is said.
pub const DIR: &str = "reports";

impl Sweep {
    /// A sweep that nothing is said of but its lists.
    #[must_use]
    pub fn of(name: &str, lists: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            lists,
            schedule: None,
            cron: None,
            catch_up: true,
            resume_within: RESUME_WITHIN,
            self_check: true,
            controls: Vec::new(),
            control_every: CONTROL_EVERY,
            give_up_after: GIVE_UP_AFTER,
            baseline: None,
            reference: None,
            scan: Vec::new(),
            retention: Retention::default(),
            thresholds: Thresholds::default(),
            hooks: Vec::new(),
        }
    }

    /// Its own number: what is drawn for it is drawn alike in each run, and unlike what is drawn for others.
    #[must_use]
    pub fn seed(&self) -> u64 {
        seed(&self.name)
    }
}

/// The seed of a sweep of this name.
#[must_use]
pub fn seed(name: &str) -> u64 {
    scatter(name, 0)
}

/// Whether a name can be part of the name of a file and of a unit.
#[must_use]
pub fn is_name(name: &str) -> bool {
    (1..=NAME).contains(&name.len())
        && name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
        && !name.starts_with('-')
}

/// Reads a duration as people write it: `90d`, `24h`, `1m30s`, `500ms`.
///
/// # Errors
/// When it is none, or negative.
pub fn duration(text: &str) -> Result<SignedDuration, String> {
    let days = text.strip_suffix('d').and_then(|it| it.parse::<u32>().ok());
    let read = match days {
        Some(days) => Some(SignedDuration::from_hours(24 * i64::from(days))),
        None => text.parse::<SignedDuration>().ok(),
    };
    read.filter(|it| *it >= SignedDuration::ZERO)
        .ok_or_else(|| {
            format!("{text:?} is no duration; write it as \"24h\", \"90d\", \"1m30s\" or \"500ms\"")
        })
}

/// Reads when runs start. `cron` and `every` exclude each other; one has to be there.
///
/// # Errors
/// In words that say what to write.
pub fn rhythm(
    cron: Option<&str>,
    every: Option<SignedDuration>,
    offset: SignedDuration,
) -> Result<Rhythm, String> {
    match (cron, every) {
        (Some(cron), None) => Cron::read(cron).map(Rhythm::Cron),
        (None, Some(every)) if every.as_secs() < 1 => {
            Err("every has to be a second at least".to_owned())
        }
        (None, Some(every)) => Ok(Rhythm::Every {
            period: every.as_secs(),
            offset: offset.as_secs().rem_euclid(every.as_secs()),
        }),
        (Some(_), Some(_)) => Err("cron and every exclude each other; leave one out".to_owned()),
        (None, None) => {
            Err("when does it start? write cron = \"0 3 * * *\", or every = \"24h\"".to_owned())
        }
    }
}

/// Finds a time zone by its name.
///
/// # Errors
/// When there is none of that name.
pub fn zone(name: &str, zones: &TimeZoneDatabase) -> Result<TimeZone, String> {
    zones.get(name).map_err(|_| {
        format!(
            "{name:?} is no time zone; write an IANA name such as \"Europe/Berlin\", or \"UTC\""
        )
    })
}
