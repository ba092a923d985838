//! What a scan is set up with, typed or from `sweeps.toml`: lists -> a frozen run, or one that is continued.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, FromArgMatches as _};
use jiff::Timestamp;
use url::Host;

use crate::list::Format;
use crate::manifest::{ListFile, Manifest, RULES_VERSION};
use crate::periodic::file::Flaw;
use crate::periodic::plan::Flag;
use crate::probe::{Prober, Reach};
use crate::registry::{OFFICIAL, Walk};
use crate::road::Pace;
use crate::roll::{self, Aim, Entry, Freezer};
use crate::sampling::{Sampling, Unit};
use crate::scan::{Headers, Run};
use crate::stats;
use crate::store::{RunDir, file};
use crate::target::{Shard, Suffixes, Target};
use crate::watch::Watch;

use super::machine;
use super::options::Asking;
use super::say;

/// Public sites that may be scanned without saying who asks.
const ANONYMOUS_SITES: usize = 10;

/// What a scan is set up with.
#[derive(Debug, Clone, Args)]
pub(super) struct Setup {
    /// What the lists are written in, instead of what their content says
    #[arg(long, env = "MCP_CENSUS_LIST_FORMAT", value_name = "NAME", value_parser = list_format)]
    pub(super) list_format: Option<Format>,
    /// Ask the first N endpoints only; the others are unmeasured
    #[arg(long, env = "MCP_CENSUS_LIMIT", value_name = "N")]
    pub(super) limit: Option<u32>,
    /// Ask N endpoints of each site only, drawn by the run's seed; the others are unmeasured
    #[arg(long, env = "MCP_CENSUS_MAX_PER_SITE", value_name = "N")]
    pub(super) max_per_site: Option<usize>,
    /// Ask part I of N only: parts are told by site, and cover the list without overlap
    #[arg(long, env = "MCP_CENSUS_SHARD", value_name = "I/N")]
    pub(super) shard: Option<Shard>,
    /// Ask a sample of so many sites, or endpoints, drawn by the seed; the tables tell what it says of the whole list
    #[arg(long, env = "MCP_CENSUS_SAMPLE", value_name = "N", conflicts_with_all = ["shard", "limit"])]
    pub(super) sample: Option<NonZeroUsize>,
    /// What --sample draws: site, each with all its endpoints, or endpoint
    #[arg(long, env = "MCP_CENSUS_SAMPLE_BY", value_name = "UNIT", value_parser = sample_unit, default_value = Unit::Site.name())]
    pub(super) sample_by: Unit,
    /// What samples are drawn by, to draw the same again [default: from the clock; the manifest keeps it]
    #[arg(long, env = "MCP_CENSUS_SEED", value_name = "S")]
    pub(super) seed: Option<u64>,
    /// Ask a sample of N rows that work once more at the end; the report says how far the answers agree
    #[arg(long, env = "MCP_CENSUS_CONTROL", value_name = "N")]
    pub(super) control: Option<NonZeroUsize>,
    /// Send the headers that this list, a client's configuration, has: credentials to whoever it names, so think twice
    #[arg(long, env = "MCP_CENSUS_SEND_HEADERS", value_name = "LIST")]
    pub(super) send_headers: Option<PathBuf>,
    /// Leave alone what a site's robots.txt forbids to mcp-census, or to everyone; costs a request a host
    #[arg(long, env = "MCP_CENSUS_ROBOTS")]
    pub(super) robots: bool,
    /// Where this machine is, for the record
    #[arg(long, env = "MCP_CENSUS_VANTAGE", value_name = "TEXT")]
    pub(super) vantage: Option<String>,
    /// Replay the gauntlet first, and refuse to start where the instrument fails
    #[arg(long, env = "MCP_CENSUS_SELF_CHECK")]
    pub(super) self_check: bool,
    #[command(flatten)]
    pub(super) asking: Asking,
}

/// A run that can begin, or go on.
#[derive(Debug)]
pub(super) struct Prepared {
    /// Where it is written.
    pub(super) dir: RunDir,
    /// What it is.
    pub(super) manifest: Manifest,
    targets: Vec<Target>,
    headers: Headers,
    /// What watches over the instrument.
    pub(super) watch: Arc<Watch>,
}

impl Setup {
    /// The setup that these flags of `scan` make.
    ///
    /// # Errors
    /// The first flag that is none, or that cannot have its value, with its line.
    pub(super) fn of_flags(flags: &[Flag]) -> Result<Self, Flaw> {
        let command = || Self::augment_args(clap::Command::new("scan").no_binary_name(true));
        let known: Vec<String> = command()
            .get_arguments()
            .filter_map(|it| it.get_long().map(str::to_owned))
            // A sweep has a key of its own for that.
            .filter(|it| it != "self-check")
            .collect();
        for flag in flags {
            let flaw = |what| Flaw {
                line: flag.line,
                what,
            };
            if !known.contains(&flag.name) {
                return Err(flaw(format!(
                    "scan has no {}; a sweep takes {}",
                    flag.name,
                    known.join(", ")
                )));
            }
            command()
                .try_get_matches_from(arguments(flag))
                .map_err(|error| {
                    let said = error.render().to_string();
                    let said = said.lines().next().unwrap_or_default();
                    flaw(said.trim_start_matches("error: ").to_owned())
                })?;
        }
        let read = command()
            .try_get_matches_from(flags.iter().flat_map(arguments))
            .and_then(|matches| Self::from_arg_matches(&matches));
        read.map_err(|error| Flaw {
            line: flags.first().map_or(1, |it| it.line),
            what: error.to_string(),
        })
    }

    /// What cannot be asked for together.
    ///
    /// # Errors
    /// When it is.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            self.sample.is_none() || self.sample_by == Unit::Site || self.max_per_site.is_none(),
            "--max-per-site draws of each site that is drawn: use it with --sample-by site"
        );
        Ok(())
    }

    /// A new run of the lists in a directory.
    ///
    /// # Errors
    /// When a list cannot be read, or the directory cannot be written; nothing is left there then.
    pub(super) fn fresh(
        &self,
        lists: &[PathBuf],
        out: &Path,
        started_at: Timestamp,
    ) -> Result<Prepared> {
        let made = !out.exists();
        let dir = RunDir::create(out)?;
        match self.freeze(&dir, lists, started_at) {
            Ok((manifest, targets, headers)) => Ok(Prepared {
                dir,
                manifest,
                targets,
                headers,
                watch: Arc::default(),
            }),
            Err(error) => {
                drop(dir);
                if made {
                    // Nothing was measured: a directory that we made for nothing goes again.
                    let _ = std::fs::remove_dir_all(out);
                }
                Err(error)
            }
        }
    }

    /// The run, ready to be driven.
    ///
    /// # Errors
    /// When a certificate or the resolver's configuration cannot be read.
    pub(super) fn run_of(&self, prepared: Prepared) -> Result<Run> {
        let Prepared {
            dir,
            manifest,
            targets,
            headers,
            watch,
        } = prepared;
        let fits = machine::fitting(self.asking.width);
        let reach = Reach {
            questions: fits.questions,
            ..self.asking.reach()?
        };
        Ok(Run {
            dir,
            manifest,
            targets,
            headers,
            terms: self.asking.terms(),
            pace: Pace {
                width: fits.width,
                ..self.asking.pace()
            },
            prober: Prober::new(reach, self.asking.identity())?,
            watch,
        })
    }

    fn freeze(
        &self,
        dir: &RunDir,
        lists: &[PathBuf],
        started_at: Timestamp,
    ) -> Result<(Manifest, Vec<Target>, Headers)> {
        let mut freezer = self.freezer();
        let mut rows = 0;
        let mut headers = Headers::default();
        let mut read = Vec::new();
        if let Some(list) = &self.send_headers {
            ensure!(
                lists.contains(list),
                "--send-headers {} is none of the lists",
                list.display()
            );
        }
        let fetched = self.fetched(dir, lists)?;
        dir.replace(file::TARGETS, |to| {
            read = super::lists::freeze(
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
        ensure_rows(rows, lists)?;
        for list in &read {
            warn_of_headers(&list.file);
        }
        let targets = freezer.into_targets();
        require_contact(&self.asking, &targets)?;
        self.asking.refuse_strangers(&targets)?;
        let seed = self.seed.unwrap_or_else(|| seed(started_at));
        let manifest = Manifest {
            vantage: self.vantage.clone(),
            lists: read.into_iter().map(|it| it.file).collect(),
            seed,
            population: self.population(&targets, seed),
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

    pub(super) fn sampling(&self) -> Option<Sampling> {
        let size = self.sample?.get();
        let by = self.sample_by;
        Some(Sampling { size, by })
    }

    pub(super) fn freezer(&self) -> Freezer {
        Freezer::new(self.asking.policy())
            .with_limit(self.limit)
            .with_shard(self.shard, &Suffixes::default())
    }

    /// The lists, with those of registries fetched into the run directory.
    fn fetched(&self, dir: &RunDir, lists: &[PathBuf]) -> Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for (number, list) in lists.iter().enumerate() {
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

    /// What is asked, told apart in few characters: the order of a list, and what it says beside, make no difference.
    fn population(&self, targets: &[Target], seed: u64) -> String {
        let mut asked: Vec<&str> = targets.iter().map(|it| it.url.as_str()).collect();
        asked.sort_unstable();
        let (sites, sample) = (self.max_per_site, self.sampling());
        let drawn = (sites.is_some() || sample.is_some())
            .then(|| format!("{sites:?} of each site, {sample:?}, drawn by {seed}"));
        stats::fingerprint(asked.into_iter().chain(drawn.as_deref()))
    }

    /// The run in a directory, and its own parameters in place of what was typed.
    ///
    /// # Errors
    /// When there is none, or none that this build can go on with.
    pub(super) fn continued(&mut self, out: &Path) -> Result<Prepared> {
        let dir = RunDir::resume(out)?;
        let manifest: Manifest = dir.read_json(file::MANIFEST)?;
        ensure!(
            manifest.evidence_removed_at.is_none(),
            "the evidence of {} was removed: start a new run",
            dir.path().display()
        );
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
        let (targets, headers) = frozen(&dir)?;
        Ok(Prepared {
            dir,
            manifest,
            targets,
            headers,
            watch: Arc::default(),
        })
    }
}

/// A flag as it is typed.
fn arguments(flag: &Flag) -> Vec<String> {
    let name = &flag.name;
    if flag.values.is_empty() {
        return vec![format!("--{name}")];
    }
    let values = flag.values.iter();
    values.map(|value| format!("--{name}={value}")).collect()
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

/// The targets of a frozen list, and the headers that they are sent.
pub(super) fn frozen(dir: &RunDir) -> Result<(Vec<Target>, Headers)> {
    let mut kept: Vec<(url::Url, Option<crate::outcome::Transport>)> = Vec::new();
    let mut headers = Headers::default();
    dir.each_target(|entry: Entry| {
        keep_headers(&mut headers, &entry);
        if let Aim::Endpoint { address, .. } = entry.aim {
            kept.push((address, entry.transport));
        }
        Ok(())
    })?;
    Ok((roll::targets(kept), headers))
}

/// Keeps the headers that an endpoint is sent. Where several rows name it, the first that has any speaks.
fn keep_headers(kept: &mut Headers, entry: &Entry) {
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
pub(super) fn registry_of(list: &Path) -> Result<Option<url::Url>> {
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

/// Lists that hold nothing are no population.
pub(super) fn ensure_rows(rows: u64, lists: &[PathBuf]) -> Result<()> {
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
pub(super) fn seed(started_at: Timestamp) -> u64 {
    started_at.as_microsecond().unsigned_abs()
}
