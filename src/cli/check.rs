//! `check`: endpoints, explained. They are asked as a scan asks them, in their lanes and under the same policy, and the
//! run is thrown away. Which rows of two lists are worth asking is `changed`'s affair.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::Timestamp;

use crate::catalogue::Checked;
use crate::inquiry::{self, Opening, Profile};
use crate::list::Format;
use crate::manifest::Manifest;
use crate::outcome::Verdict;
use crate::probe::Prober;
use crate::reckon::{self, Reckoned};
use crate::roll::{Aim, Entry, Freezer, Listed};
use crate::row::Row;
use crate::scan::{self, Headers, Run, Stop};
use crate::store::{RunDir, file};
use crate::story::{self, Known};
use crate::target::{self, Target};

use super::options::Asking;
use super::scan::{list_format, require_contact};
use super::{Exit, changed, conformance, print, say};

/// Probe endpoints and explain each: every exchange, what decided, every check, what to change first, a `curl` line.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Addresses to ask; with --changed-from, the new list
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Ask only the rows of a list that are new, or name another endpoint, since this older list of any format
    #[arg(long, value_name = "OLD", conflicts_with = "transport")]
    changed_from: Option<PathBuf>,
    /// What the lists are written in, instead of what their content says
    #[arg(long, value_name = "NAME", value_parser = list_format, requires = "changed_from")]
    list_format: Option<Format>,
    /// The transport to expect: streamable-http or sse
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// A verdict that is as good as working, such as gated
    #[arg(long, value_name = "VERDICT", value_parser = verdict)]
    accept: Vec<Verdict>,
    /// Write everything as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    asking: Asking,
}

impl Check {
    pub(super) fn run(mut self) -> Result<Exit> {
        let excluding = self.asking.read_exclusions()?;
        // A check speaks like the clients of today, and asks what they ask; a census can be asked for.
        self.asking.opening.get_or_insert(Opening::Discover);
        self.asking.profile.get_or_insert(Profile::Compliance);
        if let Some(old) = &self.changed_from {
            return self.gate(old);
        }
        for url in &self.urls {
            let line = target::address(url).ok();
            if let Some(line) = line.and_then(|it| excluding.line(&it.url)) {
                let url = target::redacted_raw(url);
                say(&format!("{url} is not asked: {line}"));
            }
        }
        self.explain()
    }

    /// The whole story of each address.
    fn explain(&self) -> Result<Exit> {
        let transport = match &self.transport {
            Some(name) => Some(
                crate::list::transport(name)
                    .with_context(|| format!("--transport {name}: use streamable-http or sse"))?,
            ),
            None => None,
        };
        let mut freezer = Freezer::new(self.asking.policy());
        let mut entries = Vec::new();
        for url in &self.urls {
            entries.push(freezer.freeze(Listed {
                url: url.clone(),
                transport,
                ..Listed::default()
            }));
        }
        let mut all_good = true;
        let ended = survey(&self.asking, &entries, freezer.into_targets(), |asked| {
            all_good &= self.is_good(asked.row());
            print(&if self.json {
                format!("{}\n", story::json(&asked.known()))
            } else {
                story::story(&asked.known())
            })
        })?;
        Ok(exit(ended, all_good))
    }

    /// The rows that a change of a list brings.
    fn gate(&self, old: &std::path::Path) -> Result<Exit> {
        let mut all_good = true;
        let changes = changed::changes(old, &self.urls, self.list_format, &self.asking)?;
        let entries: Vec<Entry> = changes.rows.iter().map(|it| it.entry.clone()).collect();
        let mut rows = changes.rows.iter();
        let ended = survey(&self.asking, &entries, changes.targets.clone(), |asked| {
            let is_good = self.is_good(asked.row());
            all_good &= is_good;
            let Some(change) = rows.next() else {
                return Ok(());
            };
            print(&if self.json {
                let mut told = story::json(&asked.known());
                told["change"] = change.kind.name().into();
                told["line"] = change.entry.line.into();
                format!("{told}\n")
            } else {
                changed::line(change, &asked.known(), is_good)
            })
        })?;
        say(&changes.told());
        Ok(exit(ended, all_good))
    }

    fn is_good(&self, row: &Row) -> bool {
        row.verdict == Verdict::Working || self.accept.contains(&row.verdict)
    }
}

/// How a survey ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// Everything was asked.
    Whole,
    /// Somebody stopped it.
    Interrupted,
}

const fn exit(ended: Ended, all_good: bool) -> Exit {
    if matches!(ended, Ended::Interrupted) {
        Exit::Interrupted
    } else if all_good {
        Exit::Done
    } else {
        Exit::Threshold
    }
}

/// A row that was asked, read.
pub(super) struct Asked {
    reckoned: Reckoned,
    decided_by: Option<usize>,
    findings: Vec<crate::finding::Finding>,
    checked: Vec<Checked>,
}

impl Asked {
    fn of(manifest: &Manifest, reckoned: Reckoned) -> Self {
        let mut findings = reckoned.entry.findings.clone();
        let mut decided_by = None;
        if let Aim::Endpoint { number, address } = &reckoned.entry.aim {
            let target = Target {
                endpoint: *number,
                url: address.clone(),
                declared: reckoned.entry.transport,
            };
            let version = &manifest.parameters.protocol_version;
            if let Some(settled) = inquiry::settled(&target, version, &reckoned.exchanges) {
                let attempts = inquiry::attempts(&reckoned.exchanges);
                let before: usize = attempts
                    .iter()
                    .take(settled.speaks)
                    .map(|it| it.len())
                    .sum();
                decided_by = Some(before + settled.reading.decided_by);
                findings.extend(settled.reading.findings);
            }
        }
        let checked = if manifest.parameters.profile == Profile::Compliance {
            conformance::checked(manifest, &reckoned)
        } else {
            Vec::new()
        };
        Self {
            reckoned,
            decided_by,
            findings,
            checked,
        }
    }

    pub(super) const fn row(&self) -> &Row {
        &self.reckoned.row
    }

    fn known(&self) -> Known<'_> {
        Known {
            row: &self.reckoned.row,
            exchanges: &self.reckoned.exchanges,
            decided_by: self.decided_by,
            findings: &self.findings,
            checked: &self.checked,
        }
    }
}

/// Asks the targets of some entries as a scan does, and hands on each entry's row, in order.
///
/// # Errors
/// When the run cannot be written or read, this machine cannot go on, or `each` fails.
fn survey(
    asking: &Asking,
    entries: &[Entry],
    targets: Vec<Target>,
    mut each: impl FnMut(Asked) -> Result<()>,
) -> Result<Ended> {
    require_contact(asking, &targets)?;
    asking.refuse_strangers(&targets)?;
    let folder = tempfile::tempdir().context("cannot make a folder for the answers")?;
    let path = folder.path().join("run");
    let dir = RunDir::create(&path)?;
    dir.replace(file::TARGETS, |to| {
        for entry in entries {
            serde_json::to_writer(&mut *to, entry)?;
            to.write_all(b"\n")?;
        }
        Ok(())
    })?;
    let run = Run {
        dir,
        manifest: Manifest {
            rows: entries.len() as u64,
            endpoints: targets.len() as u64,
            ..Manifest::begun(Timestamp::now(), Vec::new(), asking.parameters())
        },
        targets,
        headers: Headers::default(),
        terms: asking.terms(),
        pace: asking.pace(),
        prober: Prober::new(asking.reach()?, asking.identity())?,
    };
    let stop = Stop::default();
    let scanned = super::runtime()?.block_on(async {
        let interrupts = tokio::spawn(super::scan::heed_interrupts(stop.clone()));
        let scanned = scan::run(run, stop.clone(), false).await;
        interrupts.abort();
        scanned
    })?;
    if let Some(short) = scanned.halted_by {
        bail!("halted: {}", short.about());
    }
    let dir = RunDir::open(&path)?;
    let manifest: Manifest = dir.read_json(file::MANIFEST)?;
    reckon::each_row(&dir, |reckoned| each(Asked::of(&manifest, reckoned)))?;
    Ok(if stop.soft.is_cancelled() {
        Ended::Interrupted
    } else {
        Ended::Whole
    })
}

fn verdict(name: &str) -> Result<Verdict, String> {
    Verdict::named(name).ok_or_else(|| {
        let names: Vec<&str> = Verdict::ALL.iter().map(|it| it.name()).collect();
        format!("use one of {}", names.join(", "))
    })
}
