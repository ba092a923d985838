//! `gauntlet`: the corpus served by the built-in misbehaving server, scanned through the ordinary code path,
//! and every reading held against what is known to be right.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use ipnet::IpNet;
use jiff::Timestamp;

use crate::catalogue::{Checked, Status};
use crate::inquiry::{Opening, Profile};
use crate::manifest::Manifest;
use crate::mcp;
use crate::outcome::Outcome;
use crate::probe::Prober;
use crate::reckon;
use crate::roll::{Freezer, Listed};
use crate::row::Row;
use crate::scan::{self, Run, Stop};
use crate::store::{RunDir, file};
use crate::world::case::{self, Case, Expect};
use crate::world::{self, Offered, World};

use super::options::{Asking, Span};
use super::{Exit, conformance, print, say};

/// Longer than the slowest case that must be waited for, shorter than those that must not.
const TIMEOUT: Duration = Duration::from_secs(6);

/// Replay recorded server behaviours against this instrument, and report every disagreement.
#[derive(Debug, Args)]
pub(super) struct Gauntlet {
    /// Cases to replay instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
}

impl Gauntlet {
    pub(super) fn run(self) -> Result<Exit> {
        let cases = match &self.cases {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                case::read(&text)
                    .with_context(|| format!("cannot understand {}", path.display()))?
            }
            None => built_in(),
        };
        let judged = replay(cases)?;
        print(&judged.table())?;
        Ok(if judged.wrong() == 0 {
            Exit::Done
        } else {
            Exit::Failed
        })
    }
}

/// Replays the built-in cases, and gives how many there are.
///
/// # Errors
/// When the instrument reads one of them wrong.
pub(super) fn self_check() -> Result<usize> {
    let judged = replay(built_in())?;
    ensure!(
        judged.wrong() == 0,
        "the instrument fails its self-check; nothing was scanned\n{}",
        judged.table()
    );
    say(&format!(
        "self-check: {} behaviours read right",
        judged.verdicts.len()
    ));
    Ok(judged.verdicts.len())
}

/// Every recorded behaviour, and the servers of the checks.
fn built_in() -> Vec<Case> {
    let mut cases = case::corpus();
    cases.extend(case::checks());
    cases
}

/// How the instrument did.
pub(super) struct Judged {
    verdicts: Vec<Judgement>,
    skipped: usize,
}

/// One case held against its expectation.
struct Judgement {
    id: String,
    title: String,
    expect: Expect,
    /// The row, where there is one.
    row: Option<Row>,
    /// What became of the checks, where the server was held against them.
    checked: Vec<Checked>,
}

/// A row, and what became of the checks.
type Read = (Row, Vec<Checked>);

/// How a reading agrees with what is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    /// The outcome, its detail, the hint and every finding.
    Whole,
    /// The outcome.
    Outcome,
    /// An outcome that can be argued for.
    Arguable,
    /// Not at all.
    Wrong,
}

impl Judgement {
    fn agreement(&self) -> Agreement {
        let Some(row) = &self.row else {
            return Agreement::Wrong;
        };
        if self.expect.checks.is_some() && self.expect.checks != Some(self.broken()) {
            return Agreement::Wrong;
        }
        if row.outcome.name() != self.expect.category {
            let arguable = self
                .expect
                .also_ok
                .iter()
                .any(|it| it == row.outcome.name());
            return if arguable {
                Agreement::Arguable
            } else {
                Agreement::Wrong
            };
        }
        let detail = self
            .expect
            .detail
            .as_ref()
            .is_none_or(|it| *it == row.detail);
        let findings: Vec<&str> = row.findings.split(';').collect();
        let noticed = self
            .expect
            .findings
            .iter()
            .all(|it| findings.contains(&it.as_str()));
        let hint =
            self.expect.hint.as_deref().unwrap_or_default() == row.hint.map_or("", |it| it.name());
        if detail && noticed && hint {
            Agreement::Whole
        } else {
            Agreement::Outcome
        }
    }

    /// The checks that are not held to.
    fn broken(&self) -> BTreeMap<String, String> {
        self.checked
            .iter()
            .filter(|it| matches!(it.status, Status::Fail | Status::Warn))
            .map(|it| (it.check.name().to_owned(), it.status.name().to_owned()))
            .collect()
    }

    fn line(&self) -> String {
        let want = format!(
            "{}/{}",
            self.expect.category,
            self.expect.detail.as_deref().unwrap_or("*")
        );
        let got = self.row.as_ref().map_or("no row".to_owned(), |row| {
            format!("{}/{}", row.outcome, row.detail)
        });
        let mut line = format!("{}: want {want}, got {got} - {}", self.id, self.title);
        if let Some(wanted) = &self.expect.checks
            && *wanted != self.broken()
        {
            let _ = write!(line, "; want broken {wanted:?}, got {:?}", self.broken());
        }
        if let Some(row) = &self.row {
            let missing: Vec<&str> = self
                .expect
                .findings
                .iter()
                .map(String::as_str)
                .filter(|it| !row.findings.split(';').any(|found| found == *it))
                .collect();
            if !missing.is_empty() {
                let _ = write!(line, "; not noticed: {}", missing.join(", "));
            }
            let (want, got) = (
                self.expect.hint.as_deref().unwrap_or("none"),
                row.hint.map_or("none", |it| it.name()),
            );
            if want != got {
                let _ = write!(line, "; want hint {want}, got {got}");
            }
        }
        line
    }
}

impl Judged {
    fn count(&self, agreement: Agreement) -> usize {
        self.verdicts
            .iter()
            .filter(|it| it.agreement() == agreement)
            .count()
    }

    fn wrong(&self) -> usize {
        self.count(Agreement::Wrong)
    }

    /// The table by category, then every disagreement.
    fn table(&self) -> String {
        let mut by_category: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
        for judgement in &self.verdicts {
            by_category
                .entry(judgement.expect.category.as_str())
                .or_default()[judgement.agreement() as usize] += 1;
        }
        let mut out = format!(
            "{:<20} {:>6} {:>8} {:>8} {:>6}\n",
            "category", "whole", "outcome", "arguable", "wrong"
        );
        let order = Outcome::ALL.iter().map(|it| it.name());
        for (name, counts) in
            order.filter_map(|name| by_category.get(name).map(|counts| (name, counts)))
        {
            let _ = writeln!(
                out,
                "{name:<20} {:>6} {:>8} {:>8} {:>6}",
                counts[0], counts[1], counts[2], counts[3]
            );
        }
        for (agreement, word) in [
            (Agreement::Wrong, "WRONG"),
            (Agreement::Arguable, "arguable"),
            (Agreement::Outcome, "outcome only"),
        ] {
            for judgement in self
                .verdicts
                .iter()
                .filter(|it| it.agreement() == agreement)
            {
                let _ = writeln!(out, "{word}: {}", judgement.line());
            }
        }
        let right = self.verdicts.len() - self.wrong();
        let _ = writeln!(
            out,
            "{} cases: {right} right, {} wrong, {} cannot be served on loopback",
            self.verdicts.len(),
            self.wrong(),
            self.skipped
        );
        out
    }
}

/// How a case is asked: cases that are asked alike are scanned together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Manner {
    version: String,
    opening: &'static str,
    /// Everything is asked that there is a check for.
    for_checks: bool,
}

impl Manner {
    fn of(case: &Case) -> Self {
        let hint = &case.request_hint;
        let version = hint.protocol_version.as_deref();
        let opening = hint.opening.as_deref().and_then(Opening::named);
        Self {
            version: version.unwrap_or(mcp::ASKED_VERSION).to_owned(),
            opening: opening.unwrap_or(Opening::Initialize).name(),
            for_checks: case.expect.checks.is_some(),
        }
    }

    /// Every case is a server and a site of its own: the cases need no pace.
    fn asking(&self, world: &World, width: usize) -> Result<Asking> {
        let own_hosts = world.targets().iter().filter_map(|it| {
            let url = url::Url::parse(&it.url).ok()?;
            url.host_str().map(str::to_owned)
        });
        Ok(Asking {
            allow_net: loopback()?,
            protocol_version: self.version.clone(),
            opening: Opening::named(self.opening),
            profile: self.for_checks.then_some(Profile::Compliance),
            intrusive: self.for_checks,
            mine: own_hosts.collect(),
            ..unpaced(world, width)
        })
    }
}

fn unpaced(world: &World, width: usize) -> Asking {
    Asking {
        gap: Span(Duration::ZERO),
        rate: 0,
        per_address: 0,
        width: width.max(1),
        timeout: Span(TIMEOUT),
        confirm: 0,
        dns_server: Some(world.dns()),
        ..Asking::default()
    }
}

/// Serves the cases, scans them, and judges every row.
pub(super) fn replay(cases: Vec<Case>) -> Result<Judged> {
    let expected: Vec<(String, String, Expect, Manner)> = cases
        .iter()
        .map(|case| {
            let manner = Manner::of(case);
            let (id, title) = (case.id.clone(), case.title.clone());
            (id, title, case.expect.clone(), manner)
        })
        .collect();
    let folder = tempfile::tempdir().context("cannot make a folder for the gauntlet's run")?;
    let (mut rows, skipped) = super::world_runtime()?.block_on(async {
        let world = World::gauntlet(cases)
            .await
            .context("cannot serve the gauntlet")?;
        let mut rows: BTreeMap<String, Read> = BTreeMap::new();
        let mut manners: Vec<&Manner> = expected.iter().map(|it| &it.3).collect();
        manners.sort();
        manners.dedup();
        for (number, manner) in manners.into_iter().enumerate() {
            let asked = |offered: &&Offered| {
                expected
                    .iter()
                    .any(|it| it.0 == offered.name && it.3 == *manner)
            };
            let offered: Vec<&Offered> = world.targets().iter().filter(asked).collect();
            let dir = RunDir::create(&folder.path().join(number.to_string()))?;
            let asking = manner.asking(&world, expected.len())?;
            rows.extend(scan_world(&world, dir, &offered, &asking).await?);
        }
        let strict: Vec<&Offered> = world.strict_targets().iter().collect();
        let dir = RunDir::create(&folder.path().join("strict"))?;
        let asking = unpaced(&world, expected.len());
        rows.extend(scan_world(&world, dir, &strict, &asking).await?);
        let skipped: Vec<String> = world
            .skipped()
            .iter()
            .map(|it| it.split(':').next().unwrap_or(it).to_owned())
            .collect();
        anyhow::Ok((rows, skipped))
    })?;
    let verdicts = expected
        .into_iter()
        .filter(|(id, ..)| !skipped.contains(id))
        .map(|(id, title, expect, _)| {
            let (row, checked) = rows.remove(&id).unzip();
            Judgement {
                row,
                checked: checked.unwrap_or_default(),
                id,
                title,
                expect,
            }
        })
        .collect();
    Ok(Judged {
        verdicts,
        skipped: skipped.len(),
    })
}

/// Scans what a world offers, and gives its rows by name.
async fn scan_world(
    world: &World,
    dir: RunDir,
    offered: &[&Offered],
    asking: &Asking,
) -> Result<BTreeMap<String, Read>> {
    let path = dir.path().to_owned();
    let manifest = Manifest {
        suffixes: vec![world::GAUNTLET.to_owned()],
        ..Manifest::begun(
            Timestamp::now(),
            vec!["gauntlet".to_owned()],
            asking.parameters(),
        )
    };
    scan::run(
        over(world, dir, offered.iter().copied(), asking, manifest)?,
        Stop::default(),
        false,
    )
    .await?;
    let mut rows = BTreeMap::new();
    let dir = RunDir::open(&path)?;
    let manifest: Manifest = dir.read_json(file::MANIFEST)?;
    reckon::each_row(&dir, |reckoned| {
        let checked = conformance::checked(&manifest, &reckoned);
        rows.insert(reckoned.row.name.clone(), (reckoned.row, checked));
        Ok(())
    })?;
    Ok(rows)
}

/// A run over what a world offers: the list frozen, everything set to reach it.
///
/// # Errors
/// When the list cannot be written.
pub(super) fn over<'a>(
    world: &World,
    dir: RunDir,
    offered: impl Iterator<Item = &'a Offered>,
    asking: &Asking,
    manifest: Manifest,
) -> Result<Run> {
    let mut freezer = Freezer::new(asking.policy());
    let mut rows = 0;
    dir.replace(file::TARGETS, |to| {
        for offered in offered {
            rows += 1;
            let transport = crate::list::transport(&offered.transport);
            let listed = Listed {
                line: rows,
                name: offered.name.clone(),
                url: offered.url.clone(),
                transport,
                ..Listed::default()
            };
            serde_json::to_writer(&mut *to, &freezer.freeze(listed))?;
            to.write_all(b"\n")?;
        }
        Ok(())
    })?;
    let targets = freezer.into_targets();
    let mut reach = asking.reach()?;
    reach.extra_roots.push(world.ca_pem().to_owned());
    let prober = Prober::new(reach, asking.identity())?;
    let manifest = Manifest {
        rows,
        endpoints: targets.len() as u64,
        ..manifest
    };
    Ok(Run {
        headers: scan::Headers::default(),
        dir,
        manifest,
        targets,
        terms: asking.terms(),
        pace: asking.pace(),
        prober,
        watch: Arc::default(),
    })
}

/// The ranges that a world's servers stand in.
///
/// # Errors
/// Never: the ranges are constants.
pub(super) fn loopback() -> Result<Vec<IpNet>> {
    Ok(vec![
        "127.0.0.0/8".parse().context("a range")?,
        "::1/128".parse().context("a range")?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::CheckId;

    #[test]
    fn every_recorded_behaviour_is_read_right() {
        let judged = replay(case::corpus()).unwrap();
        assert_eq!(
            judged.count(Agreement::Whole),
            judged.verdicts.len(),
            "\n{}",
            judged.table()
        );
        assert!(judged.verdicts.len() > 200);
    }

    #[test]
    fn every_check_is_passed_by_a_served_server_and_broken_alone_by_another() {
        let judged = replay(case::checks()).unwrap();
        assert_eq!(
            judged.count(Agreement::Whole),
            judged.verdicts.len(),
            "\n{}",
            judged.table()
        );
        let (good, bad): (Vec<&Judgement>, Vec<&Judgement>) = judged
            .verdicts
            .iter()
            .partition(|it| it.expect.checks.as_ref().is_some_and(BTreeMap::is_empty));
        let passes = |check: CheckId| {
            good.iter()
                .flat_map(|it| &it.checked)
                .any(|it| it.check == check && it.status == Status::Pass)
        };
        let breaks = |check: CheckId| {
            bad.iter()
                .any(|it| it.broken().keys().eq([check.name()].iter()))
        };
        let unserved = |served: &dyn Fn(CheckId) -> bool| -> Vec<&str> {
            let checks = CheckId::ALL.iter().copied();
            checks
                .filter(|it| !served(*it))
                .map(CheckId::name)
                .collect()
        };
        assert_eq!(unserved(&passes), Vec::<&str>::new());
        assert_eq!(
            unserved(&breaks),
            ["as.dcr"],
            "a server may register clients or not"
        );
    }
}
