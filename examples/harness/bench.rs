//! What all figures use: scans and bare loops as measured processes, and what a run's files say of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use serde::Deserialize;

use crate::cost::{self, Bounds, Cost, median};
use crate::lists::{self, Hosts, Place};
use crate::typed::tell;

/// The core that clients run on; the servers have core 0.
const CORE: usize = 1;

/// How a client runs that needs nothing else.
pub(crate) const ON_ITS_CORE: Bounds = Bounds {
    core: Some(CORE),
    files: None,
};

/// What the whole scan takes no longer than, whatever happens.
const PATIENCE: &str = "10s";

/// What is measured, and how often.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Plan {
    /// Figures, by their names
    pub(crate) figures: Vec<String>,
    /// Rounds, in each of which all that are compared run in turn
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: usize,
    /// The census [default: mcp-census beside the folder of this program]
    #[arg(long)]
    pub(crate) binary: Option<PathBuf>,
    /// A harness whose bare loops are run, built in another way [default: this one]
    #[arg(long)]
    pub(crate) loops: Option<PathBuf>,
    /// Where lists and runs are written, and removed again [default: the system's folder for that]
    #[arg(long)]
    pub(crate) scratch: Option<PathBuf>,
    /// A folder whose `node_modules` have the official TypeScript SDK, for `peers`
    #[arg(long)]
    pub(crate) modules: Option<PathBuf>,
    /// A Python that has the official Python SDK, for `peers`
    #[arg(long)]
    pub(crate) python: Option<PathBuf>,
}

/// A line of the table.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) wanted: &'static str,
    pub(crate) measured: String,
}

/// What all figures use.
pub(crate) struct Bench {
    pub(crate) binary: PathBuf,
    loops: PathBuf,
    pub(crate) scratch: tempfile::TempDir,
    pub(crate) rounds: usize,
    pub(crate) modules: Option<PathBuf>,
    pub(crate) python: Option<PathBuf>,
}

/// How a scan is made.
#[derive(Debug, Clone)]
pub(crate) struct Scan {
    pub(crate) width: usize,
    pub(crate) further: Vec<String>,
    pub(crate) files: Option<u64>,
}

impl Scan {
    pub(crate) fn wide(width: usize) -> Self {
        Self {
            width,
            further: Vec::new(),
            files: None,
        }
    }

    pub(crate) fn with<const N: usize>(mut self, further: [&str; N]) -> Self {
        self.further.extend(further.map(str::to_owned));
        self
    }
}

impl Bench {
    pub(crate) fn new(plan: &Plan) -> Result<Self> {
        let beside = || -> Result<PathBuf> {
            let mut path = std::env::current_exe()?;
            path.pop();
            path.pop();
            Ok(path.join("mcp-census"))
        };
        let binary = plan.binary.clone().map_or_else(beside, Ok)?;
        ensure!(
            binary.exists(),
            "{} is not there; build it with cargo build --release",
            binary.display()
        );
        let scratch = match &plan.scratch {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        }?;
        Ok(Self {
            binary,
            loops: plan.loops.clone().map_or_else(std::env::current_exe, Ok)?,
            scratch,
            rounds: plan.rounds.max(1),
            modules: plan.modules.clone(),
            python: plan.python.clone(),
        })
    }

    pub(crate) fn list(
        &self,
        places: &[Place],
        scheme: &str,
        hosts: Hosts,
        port: u16,
    ) -> Result<PathBuf> {
        let name = format!("{scheme}-{port}-{}", places.len());
        lists::write(self.scratch.path(), &name, places, scheme, hosts, port)
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.scratch.path().join("run")
    }

    /// A whole scan, without a pace of its own.
    pub(crate) fn scan(&self, list: &Path, scan: &Scan) -> Result<Cost> {
        let out = self.out();
        if out.exists() {
            std::fs::remove_dir_all(&out)?;
        }
        let mut command: Vec<OsString> = vec![self.binary.clone().into(), "scan".into()];
        command.push(list.into());
        command.extend(["--out".into(), out.into()]);
        command.extend(["--width".into(), scan.width.to_string().into()]);
        let mut flags: BTreeMap<&str, &str> = BTreeMap::from([
            ("--gap", "0"),
            ("--rate", "0"),
            ("--per-address", "0"),
            ("--confirm", "0"),
            ("--allow-net", "127.0.0.0/8"),
            ("--timeout", PATIENCE),
            ("--contact", "mailto:harness@example.test"),
        ]);
        for pair in scan.further.chunks_exact(2) {
            flags.insert(&pair[0], &pair[1]);
        }
        for (flag, value) in flags {
            command.extend([flag.into(), value.into()]);
        }
        let bounds = Bounds {
            files: scan.files,
            ..ON_ITS_CORE
        };
        cost::of(bounds, &command)
    }

    /// A bare loop; that every answer was good is part of it.
    pub(crate) fn bare(
        &self,
        kind: &str,
        list: &Path,
        width: usize,
        further: &[&str],
    ) -> Result<Cost> {
        let mut command: Vec<OsString> = vec![self.loops.clone().into()];
        command.extend(["client", kind, "--list"].map(OsString::from));
        command.push(list.into());
        command.extend(["--width".into(), width.to_string().into()]);
        command.extend(further.iter().map(OsString::from));
        asked(
            kind,
            &command,
            std::fs::read_to_string(list)?.lines().count(),
        )
    }

    /// How many rows of the last scan have which verdict, and which outcome.
    pub(crate) fn counts(&self) -> Result<BTreeMap<String, usize>> {
        let mut counts = BTreeMap::new();
        for row in self.results()? {
            *counts.entry(row.outcome).or_default() += 1;
        }
        Ok(counts)
    }

    pub(crate) fn results(&self) -> Result<Vec<ResultRow>> {
        let mut reader = csv::Reader::from_path(self.out().join("results.csv"))?;
        Ok(reader.deserialize().collect::<Result<_, _>>()?)
    }

    /// When each exchange of the last scan started and ended, in seconds from the first.
    pub(crate) fn times(&self) -> Result<Vec<Times>> {
        let text = std::fs::read_to_string(self.out().join("evidence.ndjson"))?;
        let lines: Vec<Line> = text
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        let first = lines
            .iter()
            .map(|it| it.started_at)
            .min()
            .context("nothing was asked")?;
        Ok(lines
            .into_iter()
            .map(|line| {
                let start = line.started_at.duration_since(first).as_secs_f64();
                Times {
                    url: line.request.url,
                    start,
                    left: start + line.timing.connect_ms.unwrap_or_default() / 1000.0,
                    end: start + line.timing.total_ms.unwrap_or_default() / 1000.0,
                }
            })
            .collect())
    }

    /// Runs all that are compared in turn, as many times as there are rounds.
    pub(crate) fn rounds<const N: usize>(
        &self,
        contestants: [&dyn Fn() -> Result<Cost>; N],
    ) -> Result<[Vec<Cost>; N]> {
        let mut all = [const { Vec::new() }; N];
        for round in 0..self.rounds {
            for (costs, contestant) in all.iter_mut().zip(&contestants) {
                costs.push(contestant()?);
            }
            tell(&format!("  round {} of {}", round + 1, self.rounds));
        }
        Ok(all)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct ResultRow {
    pub(crate) url: String,
    pub(crate) outcome: String,
}

#[derive(Deserialize)]
struct Line {
    started_at: Timestamp,
    request: LineRequest,
    #[serde(default)]
    timing: LineTiming,
}

#[derive(Deserialize)]
struct LineRequest {
    url: String,
}

#[derive(Deserialize, Default)]
struct LineTiming {
    connect_ms: Option<f64>,
    total_ms: Option<f64>,
}

/// When an exchange took place.
#[derive(Debug)]
pub(crate) struct Times {
    pub(crate) url: String,
    pub(crate) start: f64,
    /// The connection was there, so the request left, where there is no TLS.
    pub(crate) left: f64,
    pub(crate) end: f64,
}

/// The median of the ratios, round by round.
pub(crate) fn ratio(of: &[Cost], to: &[Cost], what: impl Fn(&Cost) -> f64) -> f64 {
    median(of.iter().zip(to).map(|(a, b)| what(a) / what(b)).collect())
}

pub(crate) fn middle(costs: &[Cost], what: impl Fn(&Cost) -> f64) -> f64 {
    median(costs.iter().map(what).collect())
}

/// What a contestant costs: CPU for a thousand probes, throughput, memory.
pub(crate) fn described(name: &str, costs: &[Cost], probes: usize) -> String {
    format!(
        "{name} {:.4} ({:.4}+{:.4}) CPU s/1000, {:.0}/s, {:.0} MiB",
        middle(costs, Cost::cpu) / probes as f64 * 1000.0,
        middle(costs, |it| it.user) / probes as f64 * 1000.0,
        middle(costs, |it| it.system) / probes as f64 * 1000.0,
        probes as f64 / middle(costs, |it| it.wall),
        middle(costs, |it| it.peak),
    )
}

pub(crate) fn all_succeeded(bench: &Bench, rows: usize) -> Result<()> {
    let counts = bench.counts()?;
    ensure!(
        counts.get("success") == Some(&rows),
        "not every server was found working: {counts:?}"
    );
    Ok(())
}

/// A client that prints how many have answered it; that all did is part of it.
pub(crate) fn asked(client: &str, command: &[OsString], wanted: usize) -> Result<Cost> {
    let cost = cost::of(ON_ITS_CORE, command)?;
    let answered = cost.said.trim();
    ensure!(
        answered == wanted.to_string(),
        "{client}: {answered} of {wanted} answered"
    );
    Ok(cost)
}

/// The host that an address of a list names.
pub(crate) fn host_of(url: &str) -> Result<u32> {
    let (_, rest) = url.split_once("://").context("no scheme")?;
    let name = rest.split([':', '/']).next().unwrap_or_default();
    Ok(match name.strip_prefix('h') {
        Some(name) => name.split('.').next().unwrap_or_default().parse()?,
        None => crate::latency::host(name.parse()?),
    })
}
