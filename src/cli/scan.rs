//! `scan`: lists -> a run directory.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use jiff::Timestamp;
use url::Host;

use crate::exchange::LocalFault;
use crate::forecast::{Conduct, Forecast};
use crate::list::Format;
use crate::manifest::{ListFile, Manifest, RULES_VERSION};
use crate::probe::{Prober, Reach};
use crate::registry::{OFFICIAL, Walk};
use crate::resolve::{QUESTION_SOCKETS, QUESTIONS};
use crate::road::Pace;
use crate::roll::{self, Aim, Entry, Freezer};
use crate::sampling::{Sampling, Unit};
use crate::scan::{self, Headers, Run, Stop};
use crate::store::{RunDir, file};
use crate::target::{Shard, Suffixes, Target};

use super::conformance::Conformance;
use super::options::Asking;
use super::report::Shape;
use super::{Exit, control, forecast, lists, print, say};

/// Public sites that may be scanned without saying who asks.
const ANONYMOUS_SITES: usize = 10;

/// Probe every endpoint of the lists, write a run directory, print the summary.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags are typed one by one")]
pub(super) struct Scan {
    /// List files; `-` is standard input, registry:URL a registry whose list is fetched first
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
    /// Ask a sample of so many sites, or endpoints, drawn by the seed; the tables tell what it says of the whole list
    #[arg(long, env = "MCP_CENSUS_SAMPLE", value_name = "N", conflicts_with_all = ["shard", "limit", "resume"])]
    sample: Option<NonZeroUsize>,
    /// What --sample draws: site, each with all its endpoints, or endpoint
    #[arg(long, env = "MCP_CENSUS_SAMPLE_BY", value_name = "UNIT", value_parser = sample_unit, default_value = Unit::Site.name())]
    sample_by: Unit,
    /// What samples are drawn by, to draw the same again [default: from the clock; the manifest keeps it]
    #[arg(
        long,
        env = "MCP_CENSUS_SEED",
        value_name = "S",
        conflicts_with = "resume"
    )]
    seed: Option<u64>,
    /// Ask a sample of N rows that work once more at the end; the report says how far the answers agree
    #[arg(
        long,
        env = "MCP_CENSUS_CONTROL",
        value_name = "N",
        conflicts_with = "resume"
    )]
    control: Option<NonZeroUsize>,
    /// Send the headers that this list, a client's configuration, has: credentials to whoever it names, so think twice
    #[arg(long, env = "MCP_CENSUS_SEND_HEADERS", value_name = "LIST")]
    send_headers: Option<PathBuf>,
    /// Leave alone what a site's robots.txt forbids to mcp-census, or to everyone; costs a request a host
    #[arg(long, env = "MCP_CENSUS_ROBOTS")]
    robots: bool,
    /// Where this machine is, for the record
    #[arg(long, env = "MCP_CENSUS_VANTAGE", value_name = "TEXT")]
    vantage: Option<String>,
    /// Tell what the scan would do: who is asked, how often, how long it takes; sends and writes nothing
    #[arg(long, env = "MCP_CENSUS_DRY_RUN", conflicts_with_all = ["resume", "out"])]
    dry_run: bool,
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
        ensure!(
            self.sample.is_none() || self.sample_by == Unit::Site || self.max_per_site.is_none(),
            "--max-per-site draws of each site that is drawn: use it with --sample-by site"
        );
        self.asking.read_exclusions()?;
        if self.dry_run {
            return self.foretell();
        }
        let self_check = self
            .self_check
            .then(super::gauntlet::self_check)
            .transpose()?;
        let (dir, mut manifest, targets, headers) = if self.resume {
            self.continued()?
        } else {
            self.fresh(Timestamp::now())?
        };
        manifest.self_check = self_check.or(manifest.self_check);
        let path = dir.path().to_owned();
        let fits = fitting(self.asking.width);
        let reach = Reach {
            questions: fits.questions,
            ..self.asking.reach()?
        };
        let prober = Prober::new(reach, self.asking.identity())?;
        let run = Run {
            dir,
            manifest,
            targets,
            headers,
            terms: self.asking.terms(),
            pace: Pace {
                width: fits.width,
                ..self.asking.pace()
            },
            prober,
        };
        let stop = Stop::default();
        let scanned = super::runtime()?.block_on(async {
            let interrupts = tokio::spawn(heed_interrupts(stop.clone()));
            let scanned = match scan::run(run, stop.clone(), true).await {
                Ok(manifest) => control::ask_again(&path, manifest, &self.asking, &stop).await,
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

    fn fresh(&self, started_at: Timestamp) -> Result<(RunDir, Manifest, Vec<Target>, Headers)> {
        let out = self
            .out
            .clone()
            .unwrap_or_else(|| default_out(started_at, &self.lists));
        let made = !out.exists();
        let dir = RunDir::create(&out)?;
        match self.freeze(&dir, started_at) {
            Ok((manifest, targets, headers)) => Ok((dir, manifest, targets, headers)),
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

    fn freeze(
        &self,
        dir: &RunDir,
        started_at: Timestamp,
    ) -> Result<(Manifest, Vec<Target>, Headers)> {
        let mut freezer = self.freezer();
        let mut rows = 0;
        let mut headers = Headers::default();
        let mut read = Vec::new();
        if let Some(list) = &self.send_headers {
            ensure!(
                self.lists.contains(list),
                "--send-headers {} is none of the lists",
                list.display()
            );
        }
        let fetched = self.fetched(dir)?;
        dir.replace(file::TARGETS, |to| {
            read = lists::freeze(
                &fetched,
                self.list_format,
                self.send_headers.as_deref(),
                &mut freezer,
                |entry| {
                    rows += 1;
                    keep_headers(&mut headers, &entry);
                    serde_json::to_writer(&mut *to, &entry)?;
                    Ok(to.write_all(b"\n")?)
                },
            )?;
            Ok(())
        })?;
        ensure_rows(rows, &self.lists)?;
        for list in &read {
            warn_of_headers(&list.file);
        }
        let targets = freezer.into_targets();
        require_contact(&self.asking, &targets)?;
        self.asking.refuse_strangers(&targets)?;
        let manifest = Manifest {
            vantage: self.vantage.clone(),
            lists: read.into_iter().map(|it| it.file).collect(),
            seed: self.seed.unwrap_or_else(|| seed(started_at)),
            robots: self.robots,
            max_per_site: self.max_per_site,
            sample: self.sampling(),
            shard: self.shard,
            control: self.control.map(NonZeroUsize::get),
            rows,
            endpoints: targets.len() as u64,
            ..Manifest::begun(started_at, super::typed(), self.asking.parameters())
        };
        Ok((manifest, targets, headers))
    }

    fn sampling(&self) -> Option<Sampling> {
        let size = self.sample?.get();
        let by = self.sample_by;
        Some(Sampling { size, by })
    }

    fn freezer(&self) -> Freezer {
        Freezer::new(self.asking.policy())
            .with_limit(self.limit)
            .with_shard(self.shard, &Suffixes::default())
    }

    /// The lists, with those of registries fetched into the run directory.
    fn fetched(&self, dir: &RunDir) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for (number, list) in self.lists.iter().enumerate() {
            let Some(registry) = registry_of(list)? else {
                files.push(list.clone());
                continue;
            };
            let walk = Walk {
                registry,
                ..Walk::default()
            };
            let to = dir.path().join(format!("list-{number}.ndjson"));
            let fetched = super::fetch::fetch(&self.asking, &walk, &to)?;
            if !fetched.state.complete {
                say(&format!(
                    "the registry's list is not whole, and every table will say so: {}",
                    fetched.state.why.unwrap_or_default()
                ));
            }
            files.push(to);
        }
        Ok(files)
    }

    /// What a scan of the lists would do.
    fn foretell(&self) -> Result<Exit> {
        let format = self.shape.without_tables()?;
        for list in &self.lists {
            if registry_of(list)?.is_some() {
                bail!("--dry-run sends nothing: fetch the list first, with mcp-census fetch");
            }
        }
        let mut freezer = self.freezer();
        let mut forecast = Forecast::default();
        let lists = lists::freeze(&self.lists, self.list_format, None, &mut freezer, |entry| {
            forecast.add(&entry);
            Ok(())
        })?;
        ensure_rows(lists.iter().map(|it| it.file.rows).sum(), &self.lists)?;
        let suffixes = Suffixes::default();
        let seed = self.seed.unwrap_or_default();
        let drawn = self.sampling();
        let (targets, _) = scan::drawn(freezer.into_targets(), drawn, &suffixes, seed);
        let (targets, _) = scan::sample(targets, self.max_per_site, &suffixes, seed);
        self.asking.refuse_strangers(&targets)?;
        let terms = self.asking.terms();
        let conduct = Conduct {
            terms: &terms,
            robots: self.robots,
            tempo: self.asking.tempo(),
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

    /// The run in `--out`, and its own parameters in place of what was typed.
    fn continued(&mut self) -> Result<(RunDir, Manifest, Vec<Target>, Headers)> {
        let dir = RunDir::resume(self.out.as_deref().context("--resume needs --out")?)?;
        let manifest: Manifest = dir.read_json(file::MANIFEST)?;
        ensure!(
            manifest.parts.is_empty(),
            "{} was merged from other runs: continue those, and merge them again",
            dir.path().display()
        );
        ensure!(
            manifest.rules_version == RULES_VERSION,
            "{} was begun with reading rules {}, and this build has {}: start a new run",
            dir.path().display(),
            manifest.rules_version,
            RULES_VERSION
        );
        let mut resumed = Asking::from_parameters(&manifest.parameters)?;
        // Whoever has asked since the run began is left alone as well.
        resumed
            .excluded
            .extend(std::mem::take(&mut self.asking.excluded));
        self.asking = resumed;
        for list in &manifest.lists {
            warn_of_headers(list);
        }
        let mut kept: Vec<(url::Url, Option<crate::outcome::Transport>)> = Vec::new();
        let mut headers = Headers::default();
        dir.each_target(|entry: Entry| {
            keep_headers(&mut headers, &entry);
            if let Aim::Endpoint { address, .. } = entry.aim {
                kept.push((address, entry.transport));
            }
            Ok(())
        })?;
        Ok((dir, manifest, roll::targets(kept), headers))
    }
}

/// A census of strangers' servers says who takes it.
///
/// # Errors
/// When the targets are of more public sites than may be asked without a name.
pub(super) fn require_contact(asking: &Asking, targets: &[Target]) -> Result<()> {
    if asking.contact.is_some() {
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

/// What this machine's file descriptors allow.
struct Fits {
    /// Requests in flight.
    width: usize,
    /// Names being looked up.
    questions: usize,
}

/// Fits a width to this machine's file descriptors. The limit is raised as far as it goes.
fn fitting(width: usize) -> Fits {
    /// For the run's files, and what the runtime holds.
    const OURS: usize = 64;
    let questions = QUESTIONS.min(width);
    let wanted = width + questions * QUESTION_SOCKETS + OURS;
    let limit = rlimit::increase_nofile_limit(u64::try_from(wanted).unwrap_or(u64::MAX));
    let limit = limit.map_or(wanted, |it| usize::try_from(it).unwrap_or(usize::MAX));
    if limit >= wanted {
        return Fits { width, questions };
    }
    let questions = questions.min(limit / 8).max(16);
    let fits = limit
        .saturating_sub(questions * QUESTION_SOCKETS + OURS)
        .max(16);
    if fits < width {
        say(&format!(
            "{limit} open files allow {fits} requests in flight, not {width}; raise the limit with ulimit -n"
        ));
    }
    Fits {
        width: width.min(fits),
        questions,
    }
}

/// Keeps the headers that an endpoint is sent. Where several rows name it, the first that has any speaks.
pub(super) fn keep_headers(kept: &mut Headers, entry: &Entry) {
    if let Aim::Endpoint { number, .. } = entry.aim
        && !entry.headers.is_empty()
    {
        kept.0
            .entry(number)
            .or_insert_with(|| entry.headers.clone());
    }
}

/// Says loudly whose credentials are about to be sent: their names, never their values.
fn warn_of_headers(list: &ListFile) {
    if !list.headers_sent.is_empty() {
        say(&format!(
            "WARNING: sending the headers that {} configures to the servers it names: {}",
            list.path,
            list.headers_sent.join(", ")
        ));
    }
}

/// The registry that stands in place of a list file, if one does.
fn registry_of(list: &Path) -> Result<Option<url::Url>> {
    let Some(address) = list.to_str().and_then(|it| it.strip_prefix("registry:")) else {
        return Ok(None);
    };
    let address = if address.is_empty() {
        OFFICIAL
    } else {
        address
    };
    let url = url::Url::parse(address).with_context(|| {
        format!(
            "registry:{}: write an address after the colon, or nothing for the official registry",
            crate::target::redacted_raw(address)
        )
    })?;
    Ok(Some(url))
}

fn sample_unit(name: &str) -> Result<Unit, String> {
    Unit::named(name).ok_or_else(|| "use site or endpoint".to_owned())
}

pub(super) fn list_format(name: &str) -> Result<Format, String> {
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

/// Lists that hold nothing are no population.
fn ensure_rows(rows: u64, lists: &[PathBuf]) -> Result<()> {
    ensure!(
        rows > 0,
        "{} has no rows: there is nothing to scan",
        named(lists)
    );
    Ok(())
}

fn named(lists: &[PathBuf]) -> String {
    let names: Vec<String> = lists
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(", ")
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
