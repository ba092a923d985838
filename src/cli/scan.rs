//! `scan`: lists -> a run directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use jiff::Timestamp;
use url::Host;

use crate::list::Format;
use crate::manifest::{Manifest, RULES_VERSION};
use crate::probe::Prober;
use crate::resolve::QUESTIONS;
use crate::road::Pace;
use crate::roll::{self, Aim, Entry, Freezer};
use crate::scan::{self, Run, Stop};
use crate::store::{RunDir, file};
use crate::target::{Shard, Suffixes, Target};

use super::conformance::Conformance;
use super::options::Asking;
use super::report::Shape;
use super::{Exit, lists, say};

/// Public sites that may be scanned without saying who asks.
const ANONYMOUS_SITES: usize = 10;

/// Probe every endpoint of the lists, write a run directory, print the summary.
#[derive(Debug, Args)]
pub(super) struct Scan {
    /// List files; `-` is standard input
    #[arg(value_name = "LIST", required_unless_present = "resume")]
    lists: Vec<PathBuf>,
    /// What the lists are written in, instead of what their content says
    #[arg(long, env = "MCP_CENSUS_LIST_FORMAT", value_name = "NAME", value_parser = list_format)]
    list_format: Option<Format>,
    /// The run directory [default: reports/START-LIST, START in UTC]
    #[arg(long, env = "MCP_CENSUS_OUT", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the run in --out, with the parameters it was started with
    #[arg(long, requires = "out")]
    resume: bool,
    /// Ask the first N endpoints only; the others are unmeasured
    #[arg(long, env = "MCP_CENSUS_LIMIT", value_name = "N")]
    limit: Option<u32>,
    /// Ask N endpoints of each site only, drawn by the run's seed; the others are unmeasured
    #[arg(long, env = "MCP_CENSUS_MAX_PER_SITE", value_name = "N")]
    max_per_site: Option<usize>,
    /// Ask part I of N only: parts are told by site, and cover the list without overlap
    #[arg(long, env = "MCP_CENSUS_SHARD", value_name = "I/N")]
    shard: Option<Shard>,
    /// Hosts that asked to be left alone, one a line; each covers its subdomains
    #[arg(long, env = "MCP_CENSUS_EXCLUDE", value_name = "FILE")]
    exclude: Vec<PathBuf>,
    /// Where this machine is, for the record
    #[arg(long, env = "MCP_CENSUS_VANTAGE", value_name = "TEXT")]
    vantage: Option<String>,
    /// Replay the gauntlet first, and refuse to start where the instrument fails
    #[arg(long, env = "MCP_CENSUS_SELF_CHECK")]
    self_check: bool,
    #[command(flatten)]
    asking: Asking,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    conformance: Conformance,
}

impl Scan {
    pub(super) fn run(mut self) -> Result<Exit> {
        if self.self_check {
            super::gauntlet::self_check()?;
        }
        let (dir, manifest, targets) = if self.resume {
            self.continued()?
        } else {
            self.fresh(Timestamp::now())?
        };
        let path = dir.path().to_owned();
        let prober = Prober::new(self.asking.reach()?, self.asking.identity())?;
        let run = Run {
            dir,
            manifest,
            targets,
            terms: self.asking.terms(),
            pace: Pace {
                width: fitting(self.asking.width),
                ..self.asking.pace()
            },
            prober,
        };
        let stop = Stop::default();
        super::runtime()?.block_on(async {
            let interrupts = tokio::spawn(heed_interrupts(stop.clone()));
            let scanned = scan::run(run, stop.clone(), true).await;
            interrupts.abort();
            scanned
        })?;
        let dir = RunDir::open(&path)?;
        self.shape.show(&dir)?;
        let held = self.conformance.write(&dir, self.shape.is_text())?;
        say(&format!("the run is in {}", path.display()));
        if stop.soft.is_cancelled() {
            say(&format!(
                "interrupted; continue with: mcp-census scan --resume --out {}",
                path.display()
            ));
            return Ok(Exit::Interrupted);
        }
        Ok(held)
    }

    fn fresh(&self, started_at: Timestamp) -> Result<(RunDir, Manifest, Vec<Target>)> {
        let out = self
            .out
            .clone()
            .unwrap_or_else(|| default_out(started_at, &self.lists));
        let made = !out.exists();
        let dir = RunDir::create(&out)?;
        match self.freeze(&dir, started_at) {
            Ok((manifest, targets)) => Ok((dir, manifest, targets)),
            Err(error) => {
                drop(dir);
                if made {
                    // Nothing was measured: a directory that we made for nothing goes again.
                    let _ = std::fs::remove_dir_all(&out);
                }
                Err(error)
            }
        }
    }

    fn freeze(&self, dir: &RunDir, started_at: Timestamp) -> Result<(Manifest, Vec<Target>)> {
        let mut freezer = Freezer::new(self.asking.policy(), exclusions(&self.exclude)?)
            .with_limit(self.limit)
            .with_shard(self.shard, &Suffixes::default());
        let mut rows = 0;
        let mut read = Vec::new();
        dir.replace(file::TARGETS, |to| {
            read = lists::freeze(&self.lists, self.list_format, &mut freezer, |entry| {
                rows += 1;
                serde_json::to_writer(&mut *to, &entry)?;
                Ok(to.write_all(b"\n")?)
            })?;
            Ok(())
        })?;
        ensure!(
            rows > 0,
            "{} has no rows: there is nothing to scan",
            named(&self.lists)
        );
        let targets = freezer.into_targets();
        self.require_contact(&targets)?;
        let manifest = Manifest {
            vantage: self.vantage.clone(),
            lists: read,
            seed: seed(started_at),
            max_per_site: self.max_per_site,
            rows,
            endpoints: targets.len() as u64,
            ..Manifest::begun(
                started_at,
                std::env::args().collect(),
                self.asking.parameters(),
            )
        };
        Ok((manifest, targets))
    }

    /// The run in `--out`, and its own parameters in place of what was typed.
    fn continued(&mut self) -> Result<(RunDir, Manifest, Vec<Target>)> {
        let dir = RunDir::resume(self.out.as_deref().context("--resume needs --out")?)?;
        let manifest: Manifest = dir.read_json(file::MANIFEST)?;
        ensure!(
            manifest.rules_version == RULES_VERSION,
            "{} was begun with reading rules {}, and this build has {}: start a new run",
            dir.path().display(),
            manifest.rules_version,
            RULES_VERSION
        );
        self.asking = Asking::from_parameters(&manifest.parameters)?;
        let mut kept: Vec<(url::Url, Option<crate::outcome::Transport>)> = Vec::new();
        dir.each_target(|entry: Entry| {
            if let Aim::Endpoint { address, .. } = entry.aim {
                kept.push((address, entry.transport));
            }
            Ok(())
        })?;
        Ok((dir, manifest, roll::targets(kept)))
    }

    /// A census of strangers' servers says who takes it.
    fn require_contact(&self, targets: &[Target]) -> Result<()> {
        if self.asking.contact.is_some() {
            return Ok(());
        }
        let is_public = |target: &&Target| match target.url.host() {
            Some(Host::Ipv4(address)) => crate::target::is_public(address.into()),
            Some(Host::Ipv6(address)) => crate::target::is_public(address.into()),
            Some(Host::Domain(_)) | None => true,
        };
        let sites: BTreeSet<String> = targets
            .iter()
            .filter(is_public)
            .map(|target| Suffixes::default().site(&target.url))
            .collect();
        if sites.len() > ANONYMOUS_SITES {
            bail!(
                "the list has {} public sites; say who asks with --contact, a URL or an address where operators can reach you",
                sites.len()
            );
        }
        Ok(())
    }
}

/// The width that this machine's file descriptors allow. The limit is raised as far as it goes.
fn fitting(width: usize) -> usize {
    // For the names being looked up, the run's files, and what the runtime holds.
    let reserved = QUESTIONS + 64;
    let wanted = u64::try_from(width + reserved).unwrap_or(u64::MAX);
    let limit = rlimit::increase_nofile_limit(wanted).unwrap_or(wanted);
    let fits = usize::try_from(limit)
        .unwrap_or(usize::MAX)
        .saturating_sub(reserved)
        .max(16);
    if fits < width {
        say(&format!(
            "{limit} open files allow {fits} requests in flight, not {width}; raise the limit with ulimit -n"
        ));
    }
    width.min(fits)
}

fn list_format(name: &str) -> Result<Format, String> {
    Format::named(name).ok_or_else(|| {
        let names: Vec<&str> = Format::ALL.iter().map(|it| it.name()).collect();
        format!("use one of {}", names.join(", "))
    })
}

/// `reports/<UTC start>-<list>`.
fn default_out(started_at: Timestamp, lists: &[PathBuf]) -> PathBuf {
    let stem = lists
        .first()
        .and_then(|path| path.file_stem())
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let name = if lists.len() == 1 && stem != "-" && !stem.is_empty() {
        stem
    } else {
        "scan"
    };
    Path::new("reports").join(format!("{}-{name}", started_at.strftime("%Y%m%dT%H%M%SZ")))
}

fn named(lists: &[PathBuf]) -> String {
    let names: Vec<String> = lists
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
}

/// Hosts that asked to be left alone: one a line, `#` starts a comment.
fn exclusions(paths: &[PathBuf]) -> Result<Vec<String>> {
    let mut hosts = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        for (number, line) in text.lines().enumerate() {
            let host = line
                .split('#')
                .next()
                .unwrap_or_default()
                .trim()
                .trim_start_matches("*.")
                .trim_end_matches('.');
            if host.is_empty() {
                continue;
            }
            let host = Host::parse(host).with_context(|| {
                format!(
                    "{} line {}: {host:?} is no host; write one host a line, such as example.com",
                    path.display(),
                    number + 1
                )
            })?;
            hosts.push(host.to_string());
        }
    }
    Ok(hosts)
}

/// A run's own seed; the manifest keeps it.
fn seed(started_at: Timestamp) -> u64 {
    started_at.as_microsecond().unsigned_abs()
}

/// Ctrl-C once drains; twice stops.
pub(super) async fn heed_interrupts(stop: Stop) {
    for (token, word) in [
        (
            stop.soft,
            "finishing what is in flight; Ctrl-C again stops at once",
        ),
        (stop.hard, "stopped"),
    ] {
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        say(word);
        token.cancel();
    }
}
