//! `scan`: lists -> a run directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use jiff::Timestamp;

use crate::exchange::LocalFault;
use crate::forecast::{Conduct, Forecast};
use crate::scan::{self, Stop};
use crate::store::RunDir;
use crate::target::Suffixes;

use super::conformance::Conformance;
use super::report::Shape;
use super::setup::{Setup, ensure_rows, registry_of};
use super::{Exit, control, forecast, lists, print, say};

/// Probe every endpoint of the lists, write a run directory, print the summary.
#[derive(Debug, Args)]
pub(super) struct Scan {
    /// List files; `-` is standard input, registry:URL a registry whose list is fetched first
    #[arg(value_name = "LIST", required_unless_present = "resume")]
    lists: Vec<PathBuf>,
    /// The run directory [default: reports/START-LIST, START in UTC]
    #[arg(long, env = "MCP_CENSUS_OUT", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the run in --out, with the parameters it was started with
    #[arg(long, requires = "out")]
    resume: bool,
    /// Tell what the scan would do: who is asked, how often, how long it takes; sends and writes nothing
    #[arg(long, env = "MCP_CENSUS_DRY_RUN", conflicts_with_all = ["resume", "out"])]
    dry_run: bool,
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    conformance: Conformance,
}

impl Scan {
    pub(super) fn run(mut self) -> Result<Exit> {
        self.setup.check()?;
        self.setup.asking.read_exclusions()?;
        if self.dry_run {
            return self.foretell();
        }
        let self_check = self
            .setup
            .self_check
            .then(super::gauntlet::self_check)
            .transpose()?;
        let mut prepared = if self.resume {
            ensure!(
                self.setup.sample.is_none()
                    && self.setup.seed.is_none()
                    && self.setup.control.is_none(),
                "a run that is continued keeps its own --sample, --seed and --control"
            );
            let out = self.out.as_deref().context("--resume needs --out")?;
            self.setup.continued(out)?
        } else {
            let now = Timestamp::now();
            let out = self
                .out
                .clone()
                .unwrap_or_else(|| default_out(now, &self.lists));
            self.setup.fresh(&self.lists, &out, now)?
        };
        prepared.manifest.self_check = self_check.or(prepared.manifest.self_check);
        let path = prepared.dir.path().to_owned();
        let (run, asking) = (self.setup.run_of(prepared)?, &self.setup.asking);
        let stop = Stop::default();
        let scanned = super::runtime()?.block_on(async {
            let interrupts = tokio::spawn(heed_interrupts(stop.clone()));
            let scanned = match scan::run(run, stop.clone(), true).await {
                Ok(manifest) => control::ask_again(&path, manifest, asking, &stop).await,
                Err(error) => Err(error),
            };
            interrupts.abort();
            scanned
        })?;
        let dir = RunDir::open(&path)?;
        self.shape.show(&dir)?;
        let held = self.conformance.write(&dir, self.shape.is_text())?;
        say(&format!("the run is in {}", path.display()));
        if stop.soft.is_cancelled() {
            let why = match scanned.halted_by {
                Some(LocalFault::Exhausted) => {
                    "halted: this machine has no file descriptors or local ports left"
                }
                Some(_) => "halted: this machine has no network, or its name server is silent",
                None => "interrupted",
            };
            say(&format!(
                "{why}; continue with: mcp-census scan --resume --out {}",
                path.display()
            ));
            return Ok(Exit::Interrupted);
        }
        Ok(held)
    }

    /// What a scan of the lists would do.
    fn foretell(&self) -> Result<Exit> {
        let format = self.shape.without_tables()?;
        for list in &self.lists {
            if registry_of(list)?.is_some() {
                bail!("--dry-run sends nothing: fetch the list first, with mcp-census fetch");
            }
        }
        let mut freezer = self.setup.freezer();
        let mut forecast = Forecast::default();
        let lists = lists::freeze(
            &self.lists,
            self.setup.list_format,
            None,
            &mut freezer,
            |entry| {
                forecast.add(&entry);
                Ok(())
            },
        )?;
        ensure_rows(lists.iter().map(|it| it.file.rows).sum(), &self.lists)?;
        let suffixes = Suffixes::default();
        let seed = self.setup.seed.unwrap_or_default();
        let drawn = self.setup.sampling();
        let (targets, _) = scan::drawn(freezer.into_targets(), drawn, &suffixes, seed);
        let (targets, _) = scan::sample(targets, self.setup.max_per_site, &suffixes, seed);
        self.setup.asking.refuse_strangers(&targets)?;
        let terms = self.setup.asking.terms();
        let conduct = Conduct {
            terms: &terms,
            robots: self.setup.robots,
            tempo: self.setup.asking.tempo(),
        };
        let outlook = forecast.outlook(&targets, &suffixes, &conduct);
        let width = super::report::width();
        print(&forecast::shown(
            format,
            width,
            &lists,
            &outlook,
            &conduct.tempo,
        )?)?;
        Ok(Exit::Done)
    }
}

/// `reports/<UTC start>-<list>`.
fn default_out(started_at: Timestamp, lists: &[PathBuf]) -> PathBuf {
    let stem = lists
        .first()
        .and_then(|path| path.file_stem())
        .and_then(|stem| stem.to_str())
        .unwrap_or_default();
    let is_registry = |path: &PathBuf| path.to_string_lossy().starts_with("registry:");
    let name = if lists.len() == 1 && lists.iter().any(is_registry) {
        "registry"
    } else if lists.len() == 1 && stem != "-" && !stem.is_empty() {
        stem
    } else {
        "scan"
    };
    Path::new("reports").join(format!("{}-{name}", started_at.strftime("%Y%m%dT%H%M%SZ")))
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
