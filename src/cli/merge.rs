//! `merge`: runs of one list -> one run. It sends nothing.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::merge;
use crate::store::RunDir;

use super::conformance::Conformance;
use super::report::Shape;
use super::{Exit, say};

/// Make one run of the shards of a list, or of its vantage points; sends nothing.
#[derive(Debug, Args)]
pub(super) struct Merge {
    /// Run directories: all shards of one list, or its runs from different vantages
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// The run directory to make
    #[arg(long, env = "MCP_CENSUS_OUT", value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    shape: Shape,
    #[command(flatten)]
    conformance: Conformance,
}

impl Merge {
    pub(super) fn run(self) -> Result<Exit> {
        let runs = self
            .runs
            .iter()
            .map(|it| RunDir::open(it))
            .collect::<Result<Vec<_>>>()?;
        let made = !self.out.exists();
        let dir = RunDir::create(&self.out)?;
        if let Err(error) = merge::merge(runs, &dir, super::typed()) {
            drop(dir);
            if made {
                // A directory that we made for nothing goes again.
                let _ = std::fs::remove_dir_all(&self.out);
            }
            return Err(error);
        }
        self.shape.show(&dir)?;
        let held = self.conformance.write(&dir, self.shape.is_text())?;
        say(&format!("the run is in {}", self.out.display()));
        Ok(held)
    }
}
