//! What was typed: the tables are for people, the rest is what the harness runs of itself.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::bench::Plan;
use crate::clients::{self, Client};
use crate::cost::{self, Bounds};
use crate::rows;
use crate::server::{self, Serve};
use crate::waiting::{self, Waiting};

/// Measure the engine on loopback, beside bare client loops.
#[derive(Debug, Parser)]
#[command(name = "harness")]
struct Harness {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The figures that take about a minute
    Quick(Plan),
    /// Every figure, or those that are named
    Table(Plan),
    /// Be the servers until stdin ends
    Serve(Serve),
    /// Be a bare loop
    Client(Client),
    /// Wait for a pace
    Wait(Waiting),
    /// Run a command and write what it cost
    Account {
        /// The core it runs on
        #[arg(long)]
        core: Option<usize>,
        /// The file descriptors it may have
        #[arg(long)]
        files: Option<u64>,
        /// Where it is written
        #[arg(long)]
        to: PathBuf,
        /// The command
        #[arg(last = true)]
        command: Vec<OsString>,
    },
}

pub(crate) fn run() -> Result<()> {
    match Harness::parse().command {
        Command::Quick(plan) => rows::run(&plan, &rows::QUICK),
        Command::Table(plan) => rows::run(&plan, &rows::ALL),
        Command::Serve(serve) => server::run(&serve),
        Command::Client(client) => say(&clients::run(&client)?.to_string()),
        Command::Wait(waiting) => say(&waiting::run(&waiting)?.to_string()),
        Command::Account {
            core,
            files,
            to,
            command,
        } => cost::account(Bounds { core, files }, &to, &command),
    }
}

/// Writes a line to stdout.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}

/// Writes a line to stderr.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
