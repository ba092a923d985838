//! What `scan` and `report` write of the checks: tables beside the others, JUnit XML, SARIF, and a baseline held
//! against the run.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::catalogue::{self, Baseline, Checked, Server, Tally};
use crate::exchange::Exchange;
use crate::inquiry::Profile;
use crate::manifest::Manifest;
use crate::reckon::{self, Reckoned};
use crate::report::{self, checks};
use crate::roll::Aim;
use crate::row::{Row, inert};
use crate::store::{self, RunDir, file};
use crate::target::Target;

use super::{Exit, print, say};

/// What becomes of the checks.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Conformance {
    /// Write the checks as JUnit XML
    #[arg(long, env = "MCP_CENSUS_JUNIT", value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write the checks as SARIF 2.1.0
    #[arg(long, env = "MCP_CENSUS_SARIF", value_name = "FILE")]
    sarif: Option<PathBuf>,
    /// Accept the failures in this file; exit 3 where there are others
    #[arg(long, env = "MCP_CENSUS_BASELINE", value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the failures of this run to --baseline
    #[arg(long, requires = "baseline")]
    update_baseline: bool,
}

impl Conformance {
    /// Writes what is wanted of a run's checks. `shown` says whether a summary in text is being printed.
    ///
    /// # Errors
    /// When the run or the baseline cannot be read, or a file cannot be written.
    pub(super) fn write(&self, dir: &RunDir, shown: bool) -> Result<Exit> {
        let manifest: Manifest = dir.read_json(file::MANIFEST)?;
        let asked = manifest.parameters.profile == Profile::Compliance;
        let wanted = self.junit.is_some() || self.sarif.is_some() || self.baseline.is_some();
        if !asked && !wanted {
            return Ok(Exit::Done);
        }
        let baseline = self.read_baseline()?;
        let servers = servers(dir)?;
        if asked {
            let mut tally = Tally::default();
            for server in &servers {
                tally.add(server);
            }
            for (name, text) in [
                (file::CHECKS, checks::by_check(&tally)),
                (file::SERVERS, checks::by_server(&servers)),
                (file::READINESS, checks::by_readiness(&tally)),
            ] {
                dir.replace(name, |to| Ok(to.write_all(text.as_bytes())?))?;
            }
            if shown {
                print(&checks::told(&tally))?;
            }
        }
        if let Some(path) = &self.junit {
            let text = report::junit(&manifest.tool, &servers, &baseline);
            store::replace(path, |to| Ok(to.write_all(text.as_bytes())?))?;
        }
        if let Some(path) = &self.sarif {
            let known = self.baseline.is_some().then_some(&baseline);
            let text = report::sarif(
                env!("CARGO_PKG_NAME"),
                env!("CARGO_PKG_VERSION"),
                &servers,
                known,
            );
            store::replace(path, |to| Ok(to.write_all(text.as_bytes())?))?;
        }
        self.hold(&baseline, &servers)
    }

    fn read_baseline(&self) -> Result<Baseline> {
        let Some(path) = &self.baseline else {
            return Ok(Baseline::default());
        };
        // The first time there is none to update.
        if self.update_baseline && !path.exists() {
            return Ok(Baseline::default());
        }
        let text = std::fs::read_to_string(path).with_context(|| {
            format!("cannot read {}; --update-baseline makes it", path.display())
        })?;
        Baseline::read(&text).with_context(|| format!("cannot understand {}", path.display()))
    }

    /// Holds the run against the baseline, or makes a new one of it.
    fn hold(&self, baseline: &Baseline, servers: &[Server]) -> Result<Exit> {
        let Some(path) = &self.baseline else {
            return Ok(Exit::Done);
        };
        let compared = baseline.compare(servers);
        for (url, check) in &compared.fixed {
            say(&format!("fixed: {url} {check}"));
        }
        if self.update_baseline {
            let updated = baseline.updated(servers);
            let text = updated.write();
            store::replace(path, |to| Ok(to.write_all(text.as_bytes())?))?;
            say(&format!(
                "{} has {} failures now, {} of them new",
                path.display(),
                updated.len(),
                compared.new.len()
            ));
            return Ok(Exit::Done);
        }
        for (url, check) in &compared.new {
            say(&format!("new failure: {url} {check}"));
        }
        say(&format!(
            "against {}: {} accepted, {} new, {} fixed",
            path.display(),
            compared.accepted.len(),
            compared.new.len(),
            compared.fixed.len()
        ));
        Ok(if compared.new.is_empty() {
            Exit::Done
        } else {
            Exit::Threshold
        })
    }
}

/// The failures of a run that a baseline does not have: address and check.
///
/// # Errors
/// When the run or the baseline cannot be read.
pub(super) fn new_failures(dir: &RunDir, baseline: PathBuf) -> Result<Vec<(String, String)>> {
    let conformance = Conformance {
        baseline: Some(baseline),
        ..Conformance::default()
    };
    let servers = servers(dir)?;
    let new = conformance.read_baseline()?.compare(&servers).new;
    Ok(new
        .into_iter()
        .map(|(url, check)| (url.clone(), check.to_string()))
        .collect())
}

/// Every row of a run, held against the catalogue.
fn servers(dir: &RunDir) -> Result<Vec<Server>> {
    let mut servers = Vec::new();
    let manifest: Manifest = dir.read_json(file::MANIFEST)?;
    reckon::each_row(dir, |reckoned| {
        let row = &reckoned.row;
        let unmeasured =
            (!row.verdict.is_measured()).then(|| format!("{}: {}", row.outcome, row.detail));
        servers.push(Server {
            name: row.name.clone(),
            url: row.url.clone(),
            revision: row.protocol_version.clone(),
            checked: checked(&manifest, &reckoned),
            way_in: attempt(&manifest, &reckoned).and_then(|(_, it)| catalogue::discovered(it)),
            unmeasured,
        });
        Ok(())
    })?;
    Ok(servers)
}

/// What became of the checks at one row's endpoint; nothing where nothing was measured.
pub(super) fn checked(manifest: &Manifest, reckoned: &Reckoned) -> Vec<Checked> {
    attempt(manifest, reckoned).map_or_else(Vec::new, |(target, attempt)| {
        catalogue::evaluate(&target, attempt)
    })
}

/// The attempt that speaks for a row; none where nothing was measured.
fn attempt<'a>(manifest: &Manifest, reckoned: &'a Reckoned) -> Option<(Target, &'a [Exchange])> {
    if !reckoned.row.verdict.is_measured() {
        return None;
    }
    let Aim::Endpoint { number, address } = &reckoned.entry.aim else {
        return None;
    };
    let target = Target {
        endpoint: *number,
        url: address.clone(),
        declared: reckoned.entry.transport,
    };
    let version = &manifest.parameters.protocol_version;
    let attempt = catalogue::speaking(&target, version, &reckoned.exchanges)?;
    Some((target, attempt))
}

/// Writes the checks of a row to `findings.csv`; why one was not decided stands in its detail.
///
/// # Errors
/// When the file cannot be written.
pub(super) fn write_findings(
    to: &mut csv::Writer<impl Write>,
    row: &Row,
    checked: &[Checked],
) -> Result<()> {
    for it in checked {
        to.write_record([
            &inert(&row.name),
            &inert(&row.url),
            it.check.name(),
            it.check.rule().level.name(),
            it.status.name(),
            &inert(&it.told()),
        ])?;
    }
    Ok(())
}
