//! `sweeps.toml`: what sweeps there are, and all that holds for each. A mistake is told with its line and what to write
//! instead. The parameters of a scan are the flags of `scan` by their names; `cli` reads their values.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::Deserialize;
use toml::Spanned;
use url::Url;

use super::alert::{Event, Thresholds};
use super::plan::{DIR, Flag, Hook, NAME, Sweep, Sweeps, duration, is_name, rhythm, seed, zone};
use super::retention::Retention;
use super::schedule::{self, Schedule};

/// Attempts at a webhook beyond the first, where nothing else is said, and at most.
const RETRIES: u32 = 3;
const MOST_RETRIES: u32 = 10;

/// How long a hook may take, where nothing else is said.
const HOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// A mistake in the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Flaw {
    /// Its line, counted from 1.
    pub line: usize,
    /// What is wrong, and what to write.
    pub what: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    dir: Option<PathBuf>,
    metrics_file: Option<PathBuf>,
    #[serde(default)]
    sweep: BTreeMap<Spanned<String>, WrittenSweep>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSweep {
    lists: Spanned<Vec<String>>,
    profile: Option<Spanned<String>>,
    cron: Option<Spanned<String>>,
    every: Option<Spanned<String>>,
    offset: Option<Spanned<String>>,
    time_zone: Option<Spanned<String>>,
    jitter: Option<Spanned<String>>,
    window: Option<Spanned<String>>,
    catch_up: Option<bool>,
    resume_within: Option<Spanned<String>>,
    self_check: Option<bool>,
    #[serde(default)]
    controls: Vec<Spanned<String>>,
    control_every: Option<Spanned<String>>,
    give_up_after: Option<Spanned<String>>,
    baseline: Option<PathBuf>,
    reference: Option<PathBuf>,
    #[serde(default)]
    scan: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    #[serde(default)]
    retention: WrittenRetention,
    #[serde(default)]
    alert: WrittenAlert,
    on_change: Option<Spanned<WrittenHook>>,
    on_regression: Option<Spanned<WrittenHook>>,
    on_failure: Option<Spanned<WrittenHook>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct WrittenRetention {
    runs: Option<usize>,
    age: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct WrittenAlert {
    working_falls: Option<Spanned<f64>>,
    leaves_working: Option<Spanned<String>>,
    #[serde(default)]
    endpoints: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHook {
    #[serde(default)]
    command: Vec<String>,
    webhook: Option<Spanned<String>>,
    secret_env: Option<String>,
    secret_file: Option<PathBuf>,
    timeout: Option<Spanned<String>>,
    retries: Option<Spanned<u32>>,
}

/// Reads the file.
///
/// # Errors
/// The first mistake.
pub fn read(text: &str, zones: &TimeZoneDatabase) -> Result<Sweeps, Flaw> {
    let reader = Reader { text, zones };
    let written: Written = toml::from_str(text).map_err(|error| {
        reader.flaw(
            error.span().unwrap_or_default(),
            error.message().replace('\n', ", "),
        )
    })?;
    if written.sweep.is_empty() {
        return Err(reader.flaw(
            0..0,
            "there is no sweep; write a table [sweep.NAME] with its lists and cron or every",
        ));
    }
    let sweeps = written
        .sweep
        .into_iter()
        .map(|(name, sweep)| reader.sweep(&name, sweep))
        .collect::<Result<_, _>>()?;
    Ok(Sweeps {
        dir: written.dir.unwrap_or_else(|| PathBuf::from(DIR)),
        metrics_file: written.metrics_file,
        sweeps,
    })
}

struct Reader<'a> {
    text: &'a str,
    zones: &'a TimeZoneDatabase,
}

impl Reader<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        let start = span.start.min(self.text.len());
        self.text[..start].matches('\n').count() + 1
    }

    fn flaw(&self, span: Range<usize>, what: impl Into<String>) -> Flaw {
        Flaw {
            line: self.line(&span),
            what: what.into(),
        }
    }

    /// Reads a value, and names its line where it cannot.
    fn value<T, R>(
        &self,
        spanned: &Spanned<T>,
        read: impl FnOnce(&T) -> Result<R, String>,
    ) -> Result<R, Flaw> {
        read(spanned.get_ref()).map_err(|what| self.flaw(spanned.span(), what))
    }

    fn duration(&self, spanned: Option<&Spanned<String>>) -> Result<Option<SignedDuration>, Flaw> {
        spanned
            .map(|it| self.value(it, |text| duration(text)))
            .transpose()
    }

    fn time(
        &self,
        spanned: Option<&Spanned<String>>,
        otherwise: Duration,
    ) -> Result<Duration, Flaw> {
        let read = self.duration(spanned)?;
        Ok(read
            .and_then(|it| Duration::try_from(it).ok())
            .unwrap_or(otherwise))
    }

    fn sweep(&self, name: &Spanned<String>, written: WrittenSweep) -> Result<Sweep, Flaw> {
        if !is_name(name.get_ref()) {
            return Err(self.flaw(
                name.span(),
                format!(
                    "{:?} is no name; use letters, digits, - and _, at most {NAME}",
                    name.get_ref()
                ),
            ));
        }
        if written.lists.get_ref().is_empty() || written.lists.get_ref().iter().any(|it| it == "-")
        {
            return Err(self.flaw(
                written.lists.span(),
                "name list files, or registry:URL; standard input is there once only",
            ));
        }
        let schedule = self.schedule(name, &written)?;
        let mut sweep = Sweep::of(name.get_ref(), written.lists.into_inner());
        let otherwise = Sweep::of("", Vec::new());
        sweep.schedule = Some(schedule);
        sweep.cron = written.cron.map(Spanned::into_inner);
        sweep.catch_up = written.catch_up.unwrap_or(otherwise.catch_up);
        sweep.self_check = written.self_check.unwrap_or(otherwise.self_check);
        sweep.resume_within = self
            .duration(written.resume_within.as_ref())?
            .unwrap_or(otherwise.resume_within);
        sweep.controls = written
            .controls
            .iter()
            .map(|it| self.value(it, |url| web_address(url)))
            .collect::<Result<_, _>>()?;
        sweep.control_every = self.time(written.control_every.as_ref(), otherwise.control_every)?;
        sweep.give_up_after = self.time(written.give_up_after.as_ref(), otherwise.give_up_after)?;
        sweep.baseline = written.baseline;
        sweep.reference = written.reference;
        sweep.retention = Retention {
            runs: written.retention.runs,
            age: self.duration(written.retention.age.as_ref())?,
        };
        sweep.thresholds = self.thresholds(written.alert)?;
        if let Some(profile) = &written.profile {
            sweep.scan.push(Flag {
                name: "profile".to_owned(),
                values: vec![profile.get_ref().clone()],
                line: self.line(&profile.span()),
            });
        }
        for (name, value) in &written.scan {
            sweep.scan.extend(self.flag(name, value)?);
        }
        for (event, hook) in [
            (Event::Change, written.on_change),
            (Event::Regression, written.on_regression),
            (Event::Failure, written.on_failure),
        ] {
            if let Some(hook) = hook {
                sweep.hooks.push((event, self.hook(hook)?));
            }
        }
        Ok(sweep)
    }

    fn schedule(&self, name: &Spanned<String>, written: &WrittenSweep) -> Result<Schedule, Flaw> {
        let every = self.duration(written.every.as_ref())?;
        let offset = self.duration(written.offset.as_ref())?.unwrap_or_default();
        let at = written
            .cron
            .as_ref()
            .or(written.every.as_ref())
            .unwrap_or(name)
            .span();
        let cron = written.cron.as_ref().map(|it| it.get_ref().as_str());
        Ok(Schedule {
            rhythm: rhythm(cron, every, offset).map_err(|what| self.flaw(at, what))?,
            zone: match &written.time_zone {
                Some(zone_name) => self.value(zone_name, |it| zone(it, self.zones))?,
                None => TimeZone::UTC,
            },
            jitter: self.duration(written.jitter.as_ref())?.unwrap_or_default(),
            seed: seed(name.get_ref()),
            window: written
                .window
                .as_ref()
                .map(|it| self.value(it, |text| schedule::window(text)))
                .transpose()?,
        })
    }

    fn thresholds(&self, written: WrittenAlert) -> Result<Thresholds, Flaw> {
        let mut thresholds = Thresholds {
            endpoints: written.endpoints,
            ..Thresholds::default()
        };
        if let Some(points) = written.working_falls {
            thresholds.working_falls = self.value(&points, |it| {
                Some(*it)
                    .filter(|it| (0.0..=100.0).contains(it))
                    .ok_or_else(|| {
                        format!("{it} are no points of a share; write a number from 0 to 100")
                    })
            })?;
        }
        if let Some(text) = written.leaves_working {
            (thresholds.leaves, thresholds.of) = self.value(&text, |text| leaves(text))?;
        }
        Ok(thresholds)
    }

    fn flag(
        &self,
        name: &Spanned<String>,
        value: &Spanned<toml::Value>,
    ) -> Result<Option<Flag>, Flaw> {
        let values = match value.get_ref() {
            toml::Value::Boolean(false) => return Ok(None),
            toml::Value::Boolean(true) => Vec::new(),
            toml::Value::Array(values) => values
                .iter()
                .map(plain)
                .collect::<Option<_>>()
                .unwrap_or_default(),
            one => plain(one).into_iter().collect(),
        };
        if values.is_empty() && !matches!(value.get_ref(), toml::Value::Boolean(true)) {
            return Err(self.flaw(
                value.span(),
                format!(
                    "{} wants a text, a number, true or false, or a list of texts",
                    name.get_ref()
                ),
            ));
        }
        Ok(Some(Flag {
            name: name.get_ref().replace('_', "-"),
            values,
            line: self.line(&name.span()),
        }))
    }

    fn hook(&self, written: Spanned<WrittenHook>) -> Result<Hook, Flaw> {
        let span = written.span();
        let written = written.into_inner();
        if written.command.is_empty() && written.webhook.is_none() {
            return Err(self.flaw(
                span,
                "a hook does nothing without command = [\"program\", \"argument\"] or webhook = \"https://...\"",
            ));
        }
        let retries = match &written.retries {
            Some(retries) => self.value(retries, |it| {
                Some(*it)
                    .filter(|it| *it <= MOST_RETRIES)
                    .ok_or_else(|| format!("retries are at most {MOST_RETRIES}"))
            })?,
            None => RETRIES,
        };
        Ok(Hook {
            timeout: self.time(written.timeout.as_ref(), HOOK_TIMEOUT)?,
            retries,
            webhook: written
                .webhook
                .as_ref()
                .map(|it| self.value(it, |url| web_address(url)))
                .transpose()?,
            command: written.command,
            secret_env: written.secret_env,
            secret_file: written.secret_file,
        })
    }
}

/// Reads `2 of 3`.
fn leaves(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once(" of ").and_then(|(failed, of)| {
        let (failed, of) = (failed.trim().parse().ok()?, of.trim().parse().ok()?);
        (1 <= failed && failed <= of && of < super::series::KEPT).then_some((failed, of))
    });
    parts.ok_or_else(|| {
        format!(
            "{text:?} is no number of runs; write it as \"2 of 3\", of {} at most",
            super::series::KEPT - 1
        )
    })
}

fn web_address(text: &str) -> Result<Url, String> {
    Url::parse(text)
        .ok()
        .filter(|it| matches!(it.scheme(), "http" | "https") && it.has_host())
        .ok_or_else(|| "it is no address; write it as https://host/path".to_owned())
}

fn plain(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(_)
        | toml::Value::Datetime(_)
        | toml::Value::Array(_)
        | toml::Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::periodic::schedule::Rhythm;

    fn read_text(text: &str) -> Result<Sweeps, Flaw> {
        read(text, &TimeZoneDatabase::bundled())
    }

    const SMALL: &str = "[sweep.all]\nlists = [\"servers.csv\"]\nevery = \"24h\"\n";

    #[test]
    fn what_is_not_said_has_a_value() {
        let sweeps = read_text(SMALL).unwrap();
        let sweep = &sweeps.sweeps[0];
        assert_eq!(
            (sweeps.dir.to_str(), sweep.name.as_str()),
            (Some("reports"), "all")
        );
        assert!(sweep.catch_up && sweep.self_check && sweep.hooks.is_empty());
        assert_eq!(
            sweep.schedule.as_ref().unwrap().rhythm,
            Rhythm::Every {
                period: 86_400,
                offset: 0
            }
        );
    }

    #[test]
    fn a_mistake_is_told_with_its_line_and_what_to_write() {
        for (further, line, says) in [
            (
                "crn = \"0 3 * * *\"",
                4,
                "unknown field `crn`, expected one of",
            ),
            ("cron = \"0 3 * * *\"", 4, "exclude each other"),
            ("time_zone = \"Berlin\"", 4, "write an IANA name"),
            ("jitter = \"soon\"", 4, "write it as \"24h\""),
            ("window = \"2-6\"", 4, "write it as \"02:00-06:00\""),
            (
                "controls = [\n\"https://a.test/\",\n\"a.test\"]",
                6,
                "https://host/path",
            ),
            (
                "[sweep.all.retention]\nkeep = 3",
                5,
                "expected `runs` or `age`",
            ),
            ("[sweep.all.retention]\nage = \"90 day\"", 5, "90d"),
            (
                "[sweep.all.alert]\nleaves_working = \"3 of 2\"",
                5,
                "2 of 3",
            ),
            ("[sweep.all.on_change]\ntimeout = \"3s\"", 4, "command = "),
            (
                "[sweep.all.on_change]\nwebhook = \"ftp://a.test/\"",
                5,
                "https://host/path",
            ),
            (
                "[sweep.\"a b\"]\nlists = [\"x\"]\nevery = \"1h\"",
                4,
                "letters, digits",
            ),
            ("[sweep.b]\nlists = [\"x\"]", 4, "when does it start?"),
            (
                "[sweep.b]\nlists = []\nevery = \"1h\"",
                5,
                "name list files",
            ),
            (
                "[sweep.b]\nlists = [\"x\"]\ncron = \"0 25 * * *\"",
                6,
                "not between 0 and 23",
            ),
            ("every = ", 4, ""),
        ] {
            let flaw = read_text(&format!("{SMALL}{further}\n")).unwrap_err();
            assert!(
                flaw.line == line && flaw.what.contains(says),
                "{further}: {flaw}"
            );
        }
        assert!(read_text("").unwrap_err().what.contains("[sweep.NAME]"));
    }

    #[test]
    fn flags_of_a_scan_are_taken_as_they_are() {
        let sweeps = read_text(&format!(
            "{SMALL}profile = \"compliance\"\n[sweep.all.scan]\nmax_per_site = 3\nallow-net = [\"10.0.0.0/8\"]\nrobots = true\nself_check = false\n"
        ))
        .unwrap();
        let mut flags: Vec<(String, Vec<String>, usize)> = sweeps.sweeps[0]
            .scan
            .iter()
            .map(|it| (it.name.clone(), it.values.clone(), it.line))
            .collect();
        flags.sort();
        assert_eq!(
            flags,
            [
                ("allow-net".into(), vec!["10.0.0.0/8".into()], 7),
                ("max-per-site".into(), vec!["3".into()], 6),
                ("profile".into(), vec!["compliance".into()], 4),
                ("robots".into(), vec![], 8),
            ]
        );
    }
}
