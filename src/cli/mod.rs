//! What was typed -> what it means. One file a command; everything fallible about flags is here.

mod changed;
mod check;
mod conformance;
mod control;
mod demo;
mod diff;
mod exclude;
mod fetch;
mod forecast;
mod gauntlet;
mod lists;
mod machine;
mod merge;
mod options;
mod report;
mod scan;
mod setup;
mod sweep;
mod words;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
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
    /// A threshold was met: an endpoint that was to work does not.
    Threshold = 3,
    /// Interrupted; what was measured is written.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Take a census of remote MCP servers: who speaks MCP, who answers with what else, and how sure we are.
#[derive(Debug, Parser)]
#[command(name = "mcp-census", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Results go to stdout, everything else to stderr. Exit codes:
  0    done; broken servers are a finding, not a failure
  1    we failed
  2    usage
  3    an endpoint that was to work does not, or a check fails that did not before
  130  interrupted; what was measured is written";

#[derive(Debug, Subcommand)]
enum Command {
    Scan(Box<scan::Scan>),
    Check(Box<check::Check>),
    Sweep(Box<sweep::Sweep>),
    Fetch(Box<fetch::Fetch>),
    Report(report::Report),
    Diff(diff::Diff),
    Merge(merge::Merge),
    Demo(demo::Demo),
    Gauntlet(gauntlet::Gauntlet),
    #[command(subcommand)]
    Jsonrpc(words::Jsonrpc),
    Explain(words::Explain),
    Completions(words::Completions),
    Man(words::Man),
}

impl Cli {
    /// Runs what was asked for.
    ///
    /// # Errors
    /// When it cannot be done; the message is for the person who typed it.
    pub fn run(self) -> Result<Exit> {
        match self.command {
            Command::Scan(scan) => scan.run(),
            Command::Check(check) => check.run(),
            Command::Sweep(sweep) => sweep.run(),
            Command::Fetch(fetch) => fetch.run(),
            Command::Report(report) => report.run(),
            Command::Diff(diff) => diff.run(),
            Command::Merge(merge) => merge.run(),
            Command::Demo(demo) => demo.run(),
            Command::Gauntlet(gauntlet) => gauntlet.run(),
            Command::Jsonrpc(jsonrpc) => jsonrpc.run(),
            Command::Explain(explain) => explain.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }
}

/// The command as it was typed, for a manifest. An address can hold a key.
fn typed() -> Vec<String> {
    std::env::args()
        .map(|it| {
            if it.contains("://") {
                crate::target::redacted_raw(&it)
            } else {
                it
            }
        })
        .collect()
}

/// Writes a result to stdout. A reader that has gone, as `head` does, had what it wanted.
fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to stdout"),
    }
}

/// A word to the person at the terminal. Where stderr is gone there is nobody to tell.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "mcp-census: {text}");
}

/// The runtime that requests are sent on: one thread, since a second costs a fifth more CPU and brings nothing
/// where a scan waits for the network. The writer of the evidence has a thread of its own.
fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}

/// The runtime of a scan together with the servers that it scans.
fn world_runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
}
