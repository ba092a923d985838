//! `sweep`: scans at their times, from a file or from the command line. When they are due is `periodic`'s to say, and
//! keeping them `sweep`'s; here is what was typed, and the desk that scans.

mod desk;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use url::Url;

use crate::periodic::file;
use crate::periodic::plan::{self, Sweeps};
use crate::periodic::schedule::{self, Schedule, Window};
use crate::periodic::unit::{self, Places};
use crate::sweep::{Ended, Keeper};

use self::desk::Office;
use super::setup::{Setup, registry_of};
use super::{Exit, print, say};

/// The file that is read where none is named.
const CONFIG: &str = "sweeps.toml";

/// Starts that `validate` tells.
const TOLD: usize = 5;

/// How each sweep scans, by its name.
type Setups = BTreeMap<String, Setup>;

/// Scan lists at their times, and keep the series: history, alerts, a page, metrics.
#[derive(Debug, Args)]
pub(super) struct Sweep {
    #[command(subcommand)]
    what: Option<What>,
    /// List files and registries (registry:URL), for one sweep without a file; it takes the flags of scan
    #[arg(value_name = "LIST")]
    lists: Vec<PathBuf>,
    /// The file with the sweeps [default: sweeps.toml, where no LIST is given]
    #[arg(long, env = "MCP_CENSUS_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Do one run of this sweep now and exit: for systemd timers, cron and Kubernetes
    #[arg(long, env = "MCP_CENSUS_ONCE", value_name = "NAME")]
    once: Option<String>,
    /// When runs of LIST start: minute, hour, day of the month, month, day of the week
    #[arg(
        long,
        env = "MCP_CENSUS_CRON",
        value_name = "EXPRESSION",
        requires = "lists",
        conflicts_with = "every"
    )]
    cron: Option<String>,
    /// When runs of LIST start: on a grid fixed in UTC, such as 24h
    #[arg(long, env = "MCP_CENSUS_EVERY", value_name = "DUR", requires = "lists", value_parser = plan::duration)]
    every: Option<SignedDuration>,
    /// By how much that grid is moved
    #[arg(long, env = "MCP_CENSUS_OFFSET", value_name = "DUR", requires = "every", value_parser = plan::duration)]
    offset: Option<SignedDuration>,
    /// Whose hours --cron and --window mean
    #[arg(long, env = "MCP_CENSUS_TIME_ZONE", value_name = "ZONE", requires = "lists", value_parser = zone)]
    time_zone: Option<TimeZone>,
    /// By how much each start of LIST is moved at most, drawn by the name
    #[arg(long, env = "MCP_CENSUS_JITTER", value_name = "DUR", requires = "lists", value_parser = plan::duration)]
    jitter: Option<SignedDuration>,
    /// In which hours runs of LIST may take place, such as 22:00-06:00
    #[arg(long, env = "MCP_CENSUS_WINDOW", value_name = "HOURS", requires = "lists", value_parser = schedule::window)]
    window: Option<Window>,
    /// Endpoints that answer whenever this machine's network does
    #[arg(
        long,
        env = "MCP_CENSUS_CONTROL_URL",
        value_name = "URL",
        requires = "lists"
    )]
    control_url: Vec<Url>,
    /// Do not replay the gauntlet before runs of LIST
    #[arg(long, env = "MCP_CENSUS_NO_SELF_CHECK", requires = "lists")]
    no_self_check: bool,
    /// What the sweep of LIST is called [default: the name of the first list]
    #[arg(long, env = "MCP_CENSUS_NAME", value_name = "NAME", requires = "lists")]
    name: Option<String>,
    /// Where runs, history.csv and index.html are [default: the file's dir, or reports]
    #[arg(long, env = "MCP_CENSUS_DIR", value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Serve /metrics and /healthz at an address, or at a port of loopback
    #[arg(long, env = "MCP_CENSUS_METRICS", value_name = "ADDR", value_parser = listening)]
    metrics: Option<SocketAddr>,
    /// Write the metrics to a file, for node-exporter
    #[arg(long, env = "MCP_CENSUS_METRICS_FILE", value_name = "FILE")]
    metrics_file: Option<PathBuf>,
    #[command(flatten)]
    setup: Setup,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Check the file, and tell the next five starts of each sweep
    Validate,
    /// Print a sweep's service and timer for systemd
    PrintSystemd {
        /// The sweep
        #[arg(value_name = "NAME")]
        name: String,
    },
}

impl Sweep {
    pub(super) fn run(self) -> Result<Exit> {
        match &self.what {
            Some(What::Validate) => return self.validate(),
            Some(What::PrintSystemd { name }) => return self.print_units(name),
            None => {}
        }
        let (sweeps, setups) = self.read()?;
        let setups = Arc::new(Mutex::new(setups));
        let metrics_file = self.metrics_file.clone().or(sweeps.metrics_file.clone());
        let mut office = Office::open(Arc::clone(&setups), self.metrics, metrics_file)?;
        let mut keeper = Keeper::open(sweeps, &mut office)?;
        let ended = if let Some(name) = &self.once {
            keeper.once(name, &mut office)
        } else {
            keeper.keep(&mut office, || {
                let (sweeps, read) = self.read()?;
                *setups.lock().unwrap_or_else(PoisonError::into_inner) = read;
                Ok(sweeps)
            });
            Ok(Ended::Well)
        };
        office.close();
        Ok(match ended? {
            Ended::Well => Exit::Done,
            Ended::Failed | Ended::Elsewhere => Exit::Failed,
            Ended::Regressed => Exit::Threshold,
            Ended::Stopped => Exit::Interrupted,
        })
    }

    /// The sweeps, and how each scans.
    fn read(&self) -> Result<(Sweeps, Setups)> {
        let (mut sweeps, setups) = if self.lists.is_empty() {
            self.read_file()?
        } else {
            ensure!(self.config.is_none(), "name lists or a --config, not both");
            self.typed()?
        };
        if let Some(dir) = &self.dir {
            sweeps.dir.clone_from(dir);
        }
        Ok((sweeps, setups))
    }

    fn config(&self) -> PathBuf {
        self.config.clone().unwrap_or_else(|| CONFIG.into())
    }

    fn read_file(&self) -> Result<(Sweeps, Setups)> {
        let path = self.config();
        let shown = path.display();
        let untouched = Setup::of_flags(&[]).map_err(|flaw| anyhow::anyhow!("{}", flaw.what))?;
        ensure!(
            format!("{untouched:?}") == format!("{:?}", self.setup),
            "the flags of a scan stand in {shown}, in the table [sweep.NAME.scan] of each sweep"
        );
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("cannot read {shown}; write one, or name a LIST with --cron or --every")
        })?;
        let sweeps =
            file::read(&text, jiff::tz::db()).map_err(|flaw| anyhow::anyhow!("{shown}, {flaw}"))?;
        let mut setups = Setups::new();
        for sweep in &sweeps.sweeps {
            let setup =
                Setup::of_flags(&sweep.scan).map_err(|flaw| anyhow::anyhow!("{shown}, {flaw}"))?;
            setups.insert(sweep.name.clone(), setup);
        }
        Ok((sweeps, setups))
    }

    /// The one sweep that was typed.
    fn typed(&self) -> Result<(Sweeps, Setups)> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => named_after(&self.lists[0]),
        };
        ensure!(
            plan::is_name(&name),
            "{name:?} is no name of a sweep: use letters, digits, - and _ with --name"
        );
        let lists = self.lists.iter().map(|it| it.display().to_string());
        let mut sweep = plan::Sweep::of(&name, lists.collect());
        if self.cron.is_some() || self.every.is_some() || self.once.is_none() {
            let rhythm = plan::rhythm(
                self.cron.as_deref(),
                self.every,
                self.offset.unwrap_or_default(),
            );
            sweep.schedule = Some(Schedule {
                rhythm: rhythm.map_err(|what| anyhow::anyhow!("{what}"))?,
                zone: self.time_zone.clone().unwrap_or(TimeZone::UTC),
                jitter: self.jitter.unwrap_or_default(),
                seed: plan::seed(&name),
                window: self.window,
            });
        }
        sweep.controls.clone_from(&self.control_url);
        sweep.self_check = !self.no_self_check;
        let sweeps = Sweeps {
            dir: plan::DIR.into(),
            metrics_file: None,
            sweeps: vec![sweep],
        };
        Ok((sweeps, Setups::from([(name, self.setup.clone())])))
    }

    fn validate(&self) -> Result<Exit> {
        let (sweeps, _) = self.read()?;
        let now = Timestamp::now();
        let mut out = String::new();
        let mut missing = Vec::new();
        for sweep in &sweeps.sweeps {
            for list in sweep.lists.iter().map(Path::new) {
                if registry_of(list)?.is_none() && !list.is_file() {
                    missing.push(format!("{}: {} is no file", sweep.name, list.display()));
                }
            }
            for path in sweep.baseline.iter().chain(&sweep.reference) {
                if !path.exists() {
                    missing.push(format!("{}: {} is not there", sweep.name, path.display()));
                }
            }
            let _ = writeln!(out, "{}", sweep.name);
            let Some(schedule) = &sweep.schedule else {
                continue;
            };
            let mut at = now;
            for _ in 0..TOLD {
                let Some(start) = schedule.after(at) else {
                    break;
                };
                let due = schedule.with_jitter(start);
                let closed = if schedule.is_open(due) {
                    ""
                } else {
                    "  outside its window"
                };
                let _ = writeln!(
                    out,
                    "  {}  {}{closed}",
                    due.strftime("%Y-%m-%dT%H:%M:%SZ"),
                    due.to_zoned_datetime(schedule.zone.clone())
                        .strftime("%a %Y-%m-%d %H:%M:%S %Z"),
                );
                at = start;
            }
        }
        print(&out)?;
        for flaw in &missing {
            say(flaw);
        }
        if !missing.is_empty() {
            return Ok(Exit::Failed);
        }
        say(&format!(
            "{} sweeps, as they should be",
            sweeps.sweeps.len()
        ));
        Ok(Exit::Done)
    }

    fn print_units(&self, name: &str) -> Result<Exit> {
        let (sweeps, _) = self.read()?;
        let Some(sweep) = sweeps.sweeps.iter().find(|it| it.name == name) else {
            let names: Vec<&str> = sweeps.sweeps.iter().map(|it| it.name.as_str()).collect();
            bail!("there is no sweep {name}; there are {}", names.join(", "));
        };
        let absolute = |path: &Path| {
            std::path::absolute(path)
                .with_context(|| format!("cannot tell where {} is", path.display()))
        };
        let units = unit::units(
            sweep,
            &Places {
                program: &std::env::current_exe().context("cannot tell where this program is")?,
                config: &absolute(&self.config())?,
                working: &std::env::current_dir().context("cannot tell where this is")?,
                runs: &absolute(&sweeps.dir)?,
            },
        );
        print(&units.map_err(|what| anyhow::anyhow!("{name}: {what}"))?)?;
        Ok(Exit::Done)
    }
}

/// A sweep's name, from its list's.
fn named_after(list: &Path) -> String {
    let text = list.to_string_lossy();
    if text.starts_with("registry:") {
        return "registry".to_owned();
    }
    let stem = list.file_stem().unwrap_or_default().to_string_lossy();
    stem.chars()
        .map(|it| if it.is_ascii_alphanumeric() { it } else { '-' })
        .collect::<String>()
        .trim_matches('-')
        .to_owned()
}

fn zone(name: &str) -> Result<TimeZone, String> {
    plan::zone(name, jiff::tz::db())
}

/// An address, or a port of loopback.
fn listening(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .or_else(|_| {
            text.trim_start_matches(':')
                .parse::<u16>()
                .map(|port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
        })
        .map_err(|_| "write it as 9464 or 127.0.0.1:9464".to_owned())
}
