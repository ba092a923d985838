//! `report`: a run's evidence -> its tables. `scan` and `demo` end with the same.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::Timestamp;

use crate::finding::Check;
use crate::inquiry::Profile;
use crate::manifest::{Manifest, Setting};
use crate::outcome::Verdict;
use crate::reckon;
use crate::report::{self, Format, Page};
use crate::roll::Aim;
use crate::row::{INPUT_PREFIX, Row, VANTAGE_PREFIX, inert};
use crate::store::{self, RunDir, file};
use crate::tally::{Drawn, RunFacts, Summary, TableName, Tally};

use super::conformance::{self, Conformance};
use super::{Exit, print, say};

/// How the summary is shown on stdout.
#[derive(Debug, Clone, Args)]
pub(super) struct Shape {
    /// What to write to stdout: text, csv, md, json or html
    #[arg(long, env = "MCP_CENSUS_FORMAT", value_name = "NAME", value_parser = format_named, default_value = Format::Text.name())]
    format: Format,
    /// Write one table only, by its name in summary.csv
    #[arg(long, value_name = "NAME", value_parser = table_named)]
    table: Option<TableName>,
}

impl Shape {
    /// Writes a run's tables into its directory, and shows the summary.
    ///
    /// # Errors
    /// When the run cannot be read, or a table cannot be written.
    pub(super) fn show(&self, dir: &RunDir) -> Result<()> {
        let summary = write_tables(dir)?;
        let shown = match self.table {
            Some(table) => report::one_table(&summary, table, self.format)
                .with_context(|| format!("this run has no table {table}"))?,
            None => self.whole(dir, &summary)?,
        };
        print(&shown)
    }

    /// The format of what is no table of a run.
    ///
    /// # Errors
    /// When one table of a run was asked for.
    pub(super) fn without_tables(&self) -> Result<Format> {
        match self.table {
            None => Ok(self.format),
            Some(table) => bail!("--table {table}: a run has that table, and a dry run has none"),
        }
    }

    /// Whether a whole summary is shown as text.
    pub(super) fn is_text(&self) -> bool {
        self.format == Format::Text && self.table.is_none()
    }

    fn whole(&self, dir: &RunDir, summary: &Summary) -> Result<String> {
        Ok(match self.format {
            Format::Text => report::text(summary, width(), is_coloured()),
            Format::Csv => report::csv_long(summary),
            Format::Markdown => report::markdown(summary),
            Format::Json => report::json(summary),
            Format::Html => dir.read_text(file::REPORT_HTML)?,
        })
    }
}

pub(super) fn format_named(name: &str) -> Result<Format, String> {
    one_of(Format::named(name), Format::ALL.iter().map(|it| it.name()))
}

fn table_named(name: &str) -> Result<TableName, String> {
    one_of(
        TableName::named(name),
        TableName::ALL.iter().map(|it| it.name()),
    )
}

fn one_of<T>(found: Option<T>, names: impl Iterator<Item = &'static str>) -> Result<T, String> {
    found.ok_or_else(|| format!("use one of {}", names.collect::<Vec<_>>().join(", ")))
}

/// The terminal's width, as the shell tells it.
pub(super) fn width() -> usize {
    std::env::var("COLUMNS")
        .ok()
        .and_then(|it| it.parse().ok())
        .filter(|it| *it >= report::WIDTH)
        .unwrap_or(report::WIDTH)
}

fn is_coloured() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
    std::io::stdout().is_terminal()
        && !set("NO_COLOR")
        && std::env::var("TERM").is_ok_and(|it| it != "dumb")
}

/// Read a run's evidence again and write its tables; sends nothing.
#[derive(Debug, Args)]
pub(super) struct Report {
    /// A run directory
    #[arg(value_name = "RUN", required_unless_present = "schema")]
    run: Option<PathBuf>,
    /// Print the JSON Schema of summary.json, and do nothing else
    #[arg(long, exclusive = true)]
    schema: bool,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    conformance: Conformance,
}

impl Report {
    pub(super) fn run(self) -> Result<Exit> {
        let Some(run) = self.run else {
            print(report::SCHEMA)?;
            return Ok(Exit::Done);
        };
        let dir = RunDir::open(&run)?;
        self.shape.show(&dir)?;
        self.conformance.write(&dir, self.shape.is_text())
    }
}

/// Writes the files that a run's evidence tells, and gives the summary.
///
/// # Errors
/// When the run cannot be read, or a file cannot be written.
pub(super) fn write_tables(dir: &RunDir) -> Result<Summary> {
    let manifest: Manifest = dir.read_json(file::MANIFEST)?;
    if let Some(at) = manifest.evidence_removed_at {
        bail!(
            "the evidence of {} was removed at {}; its tables stand there as they were made",
            dir.path().display(),
            to_the_second(at)
        );
    }
    let columns = InputColumns::of(&manifest);
    let facts = facts(&manifest);
    let mut tally = Tally::default();
    let mut page = Page::of(manifest.rows);
    let mut unread = 0u64;
    let mut again = asked_again(dir)?;
    dir.replace(file::RESULTS, |results| {
        dir.replace(file::FINDINGS, |findings| {
            let mut results = csv::Writer::from_writer(results);
            let mut findings = csv::Writer::from_writer(findings);
            results.write_record(columns.header())?;
            findings.write_record(report::FINDINGS.map(|(name, _)| name))?;
            reckon::each_row(dir, |reckoned| {
                let row = &reckoned.row;
                let mut cells = row.cells();
                let said = columns.said(&reckoned.vantages);
                let own = columns.cells(reckoned.entry.list, &reckoned.entry.extra);
                cells.extend(said.into_iter().chain(own).map(Cow::Owned));
                results.write_record(cells.iter().map(|it| it.as_bytes()))?;
                write_findings(&mut findings, row)?;
                if manifest.parameters.profile == Profile::Compliance {
                    let checked = conformance::checked(&manifest, &reckoned);
                    conformance::write_findings(&mut findings, row, &checked)?;
                }
                unread += u64::from(row.attempts == 0 && row.endpoint.is_some());
                tally.add(row);
                tally.add_said(&reckoned.vantages);
                if let Aim::Endpoint { address, .. } = &reckoned.entry.aim
                    && let Some(second) = again.remove(address.as_str())
                {
                    tally.add_again(row, &second);
                }
                page.add(row, &reckoned.exchanges);
                for (at, exchanges) in &reckoned.elsewhere {
                    let vantage = columns.vantages.get(*at).map_or("", String::as_str);
                    page.add_elsewhere(vantage, exchanges);
                }
                Ok(())
            })?;
            results.flush()?;
            Ok(findings.flush()?)
        })
    })?;
    let summary = tally.summary(&facts);
    write_summary(dir.path(), &summary)?;
    let compliance = manifest.parameters.profile == Profile::Compliance;
    let package = report::data_package(&summary, &columns.at(), &columns.further(), compliance);
    dir.replace(file::DATA_PACKAGE, |to| {
        Ok(to.write_all(package.as_bytes())?)
    })?;
    dir.replace(file::REPORT_HTML, |to| {
        Ok(to.write_all(page.finish(&summary, tally.measured_by_site()).as_bytes())?)
    })?;
    if !manifest.complete {
        say(&format!(
            "{} is not complete: {unread} rows were not asked",
            dir.path().display()
        ));
    }
    Ok(summary)
}

/// The rows of a run's control arm, by the addresses that were asked. They are written beside their evidence.
fn asked_again(dir: &RunDir) -> Result<HashMap<String, Row>> {
    let mut again = HashMap::new();
    let folder = dir.file(file::CONTROL);
    if !folder.join(file::MANIFEST).exists() {
        return Ok(again);
    }
    let control = RunDir::open(&folder)?;
    control.replace(file::RESULTS, |to| {
        let mut results = csv::Writer::from_writer(to);
        results.write_record(Row::COLUMNS.iter().map(|(name, _)| *name))?;
        reckon::each_row(&control, |reckoned| {
            results.write_record(reckoned.row.cells().iter().map(|it| it.as_bytes()))?;
            if let Aim::Endpoint { address, .. } = reckoned.entry.aim {
                again.insert(address.into(), reckoned.row);
            }
            Ok(())
        })?;
        Ok(results.flush()?)
    })?;
    Ok(again)
}

/// Writes a summary in each of its forms.
///
/// # Errors
/// When a file cannot be written.
pub(super) fn write_summary(folder: &std::path::Path, summary: &Summary) -> Result<()> {
    for (name, text) in [
        (file::SUMMARY_CSV, report::csv_long(summary)),
        (file::SUMMARY_MD, report::markdown(summary)),
        (file::SUMMARY_JSON, report::json(summary)),
    ] {
        store::replace(&folder.join(name), |to| Ok(to.write_all(text.as_bytes())?))?;
    }
    Ok(())
}

/// A near miss is a note: it is no check of the specification that could be passed.
fn write_findings(to: &mut csv::Writer<impl Write>, row: &Row) -> Result<()> {
    for finding in row.findings.split(';').filter(|it| !it.is_empty()) {
        let (check, detail) = finding.split_once(':').unwrap_or((finding, ""));
        to.write_record([
            &inert(&row.name),
            &inert(&row.url),
            check,
            "note",
            "warn",
            &inert(detail),
        ])?;
    }
    Ok(())
}

fn facts(manifest: &Manifest) -> RunFacts {
    RunFacts {
        tool: manifest.tool.clone(),
        rules_version: manifest.rules_version,
        asked_version: manifest.parameters.protocol_version.clone(),
        lists: manifest.lists.iter().map(|it| it.path.clone()).collect(),
        partial: manifest.lists.iter().any(|it| it.partial) || manifest.shard.is_some(),
        complete: manifest.complete,
        endpoints: Some(manifest.endpoints),
        requests: Some(manifest.requests),
        vantage: manifest.vantage.clone(),
        started_at: Some(to_the_second(manifest.started_at)),
        ended_at: manifest.ended_at.map(to_the_second),
        suffixes: manifest.suffixes.clone(),
        drawn: (manifest.sample.is_some() || manifest.max_per_site.is_some()).then(|| Drawn {
            by: manifest.sample.map(|it| it.by),
        }),
        sample: sample(manifest),
        vantages: manifest.vantages().into_iter().map(str::to_owned).collect(),
        instrument: instrument(manifest),
    }
}

/// What was drawn, in words.
fn sample(manifest: &Manifest) -> Option<String> {
    let per_site = manifest
        .max_per_site
        .map(|it| format!("at most {it} endpoints of a site"));
    let drawn = match (manifest.sample, per_site) {
        (Some(sample), Some(per_site)) => format!("{sample}, {per_site}"),
        (Some(sample), None) => sample.to_string(),
        (None, per_site) => per_site?,
    };
    Some(format!("{drawn}, drawn by seed {}", manifest.seed))
}

/// The settings of a run, or of the runs it was merged from, with how many had each value.
fn instrument(manifest: &Manifest) -> Vec<(Setting, String, u64)> {
    let runs: Vec<&Manifest> = if manifest.parts.is_empty() {
        vec![manifest]
    } else {
        manifest.parts.iter().map(|it| &it.manifest).collect()
    };
    let mut settings: Vec<(Setting, String, u64)> = Vec::new();
    for &setting in Setting::ALL {
        let begin = settings.len();
        for run in &runs {
            let value = run.setting(setting);
            match settings[begin..].iter_mut().find(|it| it.1 == value) {
                Some((_, _, runs)) => *runs += 1,
                None => settings.push((setting, value, 1)),
            }
        }
    }
    settings
}

/// When a run was, as exactly as a reader needs it.
fn to_the_second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The columns beside those that every row has: what each vantage says, where several have asked, and the lists' own,
/// each name once, in order of appearance.
struct InputColumns {
    vantages: Vec<String>,
    names: Vec<String>,
    /// For each list, where its columns stand.
    places: Vec<Vec<usize>>,
}

impl InputColumns {
    fn of(manifest: &Manifest) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut places = Vec::new();
        for list in &manifest.lists {
            let place = |name: &String| {
                names.iter().position(|it| it == name).unwrap_or_else(|| {
                    names.push(name.clone());
                    names.len() - 1
                })
            };
            places.push(list.extra_columns.iter().map(place).collect());
        }
        Self {
            vantages: manifest.vantages().into_iter().map(str::to_owned).collect(),
            names,
            places,
        }
    }

    fn header(&self) -> Vec<String> {
        let own = Row::COLUMNS.iter().map(|(name, _)| (*name).to_owned());
        own.chain(self.at()).chain(self.further()).collect()
    }

    /// The names of the vantages' columns as they stand in the results.
    fn at(&self) -> Vec<String> {
        self.vantages
            .iter()
            .map(|name| inert(&format!("{VANTAGE_PREFIX}{name}")))
            .collect()
    }

    /// What each vantage says of a row; empty where nobody was asked.
    fn said(&self, verdicts: &[Verdict]) -> Vec<String> {
        let said = |at: usize| {
            verdicts
                .get(at)
                .map_or_else(String::new, ToString::to_string)
        };
        (0..self.vantages.len()).map(said).collect()
    }

    /// The names of the lists' columns as they stand in the results.
    fn further(&self) -> Vec<String> {
        self.names
            .iter()
            .map(|name| inert(&format!("{INPUT_PREFIX}{name}")))
            .collect()
    }

    fn cells(&self, list: u32, extra: &[String]) -> Vec<String> {
        let mut cells = vec![String::new(); self.names.len()];
        let places = self
            .places
            .get(list as usize)
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (place, value) in places.iter().zip(extra) {
            cells[*place] = inert(value);
        }
        cells
    }
}

/// Writes the tables of a run as a sample to keep: the same on every machine, so without timings.
///
/// # Errors
/// When the run cannot be read, or a file cannot be written.
pub(super) fn write_sample(dir: &RunDir, folder: &std::path::Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let manifest: Manifest = dir.read_json(file::MANIFEST)?;
    let mut facts = facts(&manifest);
    (facts.started_at, facts.ended_at) = (None, None);
    let mut tally = Tally::default();
    store::replace(&folder.join(file::RESULTS), |to| {
        let mut results = csv::Writer::from_writer(to);
        results.write_record(Row::COLUMNS.iter().map(|(name, _)| *name))?;
        reckon::each_row(dir, |reckoned| {
            tally.add(&reckoned.row);
            let row = timeless(reckoned.row);
            results.write_record(row.cells().iter().map(|it| it.as_bytes()))?;
            Ok(())
        })?;
        Ok(results.flush()?)
    })?;
    let summary = tally.summary(&facts).without_timings();
    write_summary(folder, &summary)?;
    store::replace(&folder.join("summary.txt"), |to| {
        Ok(to.write_all(report::text(&summary, report::WIDTH, false).as_bytes())?)
    })
}

/// A row without what differs from run to run: times, and the ports that the system chose.
fn timeless(row: Row) -> Row {
    let portless = |url: String| -> String {
        url::Url::parse(&url).map_or(url, |mut it| {
            // Only a URL without a host has no port to take off.
            let _ = it.set_port(None);
            it.to_string()
        })
    };
    let is_timed = |finding: &&str| *finding == Check::SlowFirstByte.name();
    let findings: Vec<&str> = row.findings.split(';').filter(|it| !is_timed(it)).collect();
    Row {
        findings: findings.join(";"),
        url: portless(row.url),
        endpoint: row.endpoint.map(portless),
        final_url: row.final_url.map(portless),
        dns_ms: None,
        connect_ms: None,
        tls_ms: None,
        first_byte_ms: None,
        total_ms: None,
        started_at: None,
        ..row
    }
}
