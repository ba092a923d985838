//! `report`: a run's evidence -> its tables.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::reckon;
use crate::row::inert;
use crate::store::{RunDir, file};

use super::Exit;

/// Read a run's evidence again and write its tables; sends nothing.
#[derive(Debug, Args)]
pub(super) struct Report {
    /// A run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
}

impl Report {
    pub(super) fn run(self) -> Result<Exit> {
        write_tables(&RunDir::open(&self.run)?)?;
        Ok(Exit::Done)
    }
}

/// Writes the files that a run's evidence tells.
///
/// # Errors
/// When the run cannot be read, or a file cannot be written.
pub(super) fn write_tables(dir: &RunDir) -> Result<()> {
    dir.replace(file::RESULTS, |to| {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut wrote_header = false;
        reckon::each_row(dir, |reckoned| {
            if !wrote_header {
                writer.write_record(crate::row::Row::COLUMNS.iter().map(|(name, _)| *name))?;
                wrote_header = true;
            }
            let mut cells = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
            cells.serialize(&reckoned.row)?;
            let line = cells.into_inner()?;
            let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_slice());
            for record in reader.records() {
                writer.write_record(record?.iter().map(inert))?;
            }
            Ok(())
        })?;
        to.write_all(&writer.into_inner()?)?;
        Ok(())
    })
}
