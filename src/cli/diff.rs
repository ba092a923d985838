//! `diff`: two runs -> what changed. It reads their results and manifests, and sends nothing.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::diff::Diff as Difference;
use crate::manifest::Manifest;
use crate::reckon::side;
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
