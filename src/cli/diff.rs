//! `diff`: two runs -> what changed. It reads their results and manifests, and sends nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::diff::{Diff as Difference, Seen, Side};
use crate::manifest::Manifest;
use crate::outcome::{Outcome, Verdict};
use crate::report::{self, Format};
use crate::store::{RunDir, file};

use super::report::format_named;
use super::{Exit, print};

/// Tell what changed between two runs, and what only the instrument changed; sends nothing.
#[derive(Debug, Args)]
pub(super) struct Diff {
    /// The run directory of before
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// The run directory of after
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Compare runs of different lists, over the endpoints that both have
    #[arg(long)]
    intersect: bool,
    /// What to write to stdout: text, csv, md, json or html
    #[arg(long, env = "MCP_CENSUS_FORMAT", value_name = "NAME", value_parser = format_named, default_value = Format::Text.name())]
    format: Format,
}

impl Diff {
    pub(super) fn run(self) -> Result<Exit> {
        let manifests = [&self.before, &self.after].map(|it| manifest(it));
        let [before, after] = manifests;
        let (before, after) = (before?, after?);
        let diff = Difference::between(
            &side(&self.before, &before)?,
            &side(&self.after, &after)?,
            self.intersect,
        )?;
        print(&match self.format {
            Format::Text => report::change_text(&diff),
            Format::Csv => report::change_csv(&diff),
            Format::Markdown => report::change_markdown(&diff),
            Format::Json => report::change_json(&diff),
            Format::Html => report::change_page(&diff),
        })?;
        Ok(Exit::Done)
    }
}

fn manifest(path: &Path) -> Result<Manifest> {
    RunDir::open(path)?.read_json(file::MANIFEST)
}

fn side<'a>(path: &Path, manifest: &'a Manifest) -> Result<Side<'a>> {
    let results = path.join(file::RESULTS);
    let shown = results.display();
    let mut reader =
        csv::Reader::from_path(&results).with_context(|| format!("cannot read {shown}"))?;
    let mut rows = Vec::new();
    for (number, row) in reader.deserialize::<BTreeMap<String, String>>().enumerate() {
        let row = row
            .with_context(|| format!("cannot understand row {} of {shown}", number + 1))
            .and_then(|row| {
                seen(row)
                    .with_context(|| format!("cannot understand row {} of {shown}", number + 1))
            })?;
        rows.push(row);
    }
    Ok(Side {
        label: path.display().to_string(),
        manifest,
        rows,
    })
}

/// A row of results, by the names of its columns.
fn seen(mut row: BTreeMap<String, String>) -> Result<Seen> {
    let mut take = |name: &str| {
        row.remove(name)
            .with_context(|| format!("it has no {name}"))
    };
    let (endpoint, url) = (take("endpoint")?, take("url")?);
    let (outcome, verdict) = (take("outcome")?, take("verdict")?);
    Ok(Seen {
        endpoint: if endpoint.is_empty() { url } else { endpoint },
        name: take("name")?,
        outcome: Outcome::named(&outcome).with_context(|| format!("{outcome:?} is no outcome"))?,
        detail: take("detail")?,
        verdict: Verdict::named(&verdict).with_context(|| format!("{verdict:?} is no verdict"))?,
        era: take("era")?,
        version: take("protocol_version")?,
        auth: take("auth_scheme")?,
        server: take("server_name")?,
    })
}
