//! What was typed -> what it means. One file a command; everything fallible about flags is here.

mod options;
mod report;
mod scan;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What the process tells its caller. A finding is not a failure: a census of broken servers exits 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// We failed.
    Failed = 1,
    /// The command makes no sense; clap's own code.
    Usage = 2,
    /// A threshold was met.
    Threshold = 3,
    /// Interrupted; what was measured is written.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A registry census scanner for remote MCP servers.
#[derive(Debug, Parser)]
#[command(name = "mcp-census", version, about, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Probe every endpoint of the lists, write a run directory, print the summary.
    Scan(Box<scan::Scan>),
    /// Read a run's evidence again and write its tables; sends nothing.
    Report(report::Report),
}

impl Cli {
    /// Runs what was asked for.
    ///
    /// # Errors
    /// When it cannot be done; the message is for the person who typed it.
    pub fn run(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Scan(scan) => scan.run(),
            Command::Report(report) => report.run(),
        }
    }
}
