//! The commands that ask nobody anything: `jsonrpc`, `explain`, `completions`, `man`.

use std::io::{self, BufRead};

use anyhow::{Context, Result};
use clap::{Args, CommandFactory, Subcommand};

use crate::explain;
use crate::jsonrpc::{self, Shape};

use super::{Cli, Exit, print};

/// Sort and answer JSON-RPC messages, one a line on stdin.
#[derive(Debug, Subcommand)]
pub(super) enum Jsonrpc {
    /// Say of each message what it is: request, notification, result, error or invalid
    Classify,
    /// Answer each request: `supported`, or the error response; a notification gets no answer
    Answer {
        /// A method that is supported
        #[arg(long, value_name = "METHOD")]
        supports: Vec<String>,
    },
}

impl Jsonrpc {
    pub(super) fn run(self) -> Result<Exit> {
        for line in io::stdin().lock().lines() {
            let line = line.context("cannot read stdin")?;
            if line.trim().is_empty() {
                continue;
            }
            match &self {
                Self::Classify => print(&format!("{}\n", Shape::of(&line)))?,
                Self::Answer { supports } => {
                    if let Some(answer) = jsonrpc::answer(&line, supports) {
                        print(&format!("{answer}\n"))?;
                    }
                }
            }
        }
        Ok(Exit::Done)
    }
}

/// Say what a JSON-RPC error code, an outcome, a verdict or a finding means.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// For example -32001, `auth_required`, gated, `error_id_null`
    #[arg(value_name = "CODE", allow_hyphen_values = true, required = true)]
    what: Vec<String>,
}

impl Explain {
    pub(super) fn run(self) -> Result<Exit> {
        for what in &self.what {
            print(&explain::explain(what)?)?;
        }
        Ok(Exit::Done)
    }
}

/// Write a completion script for a shell.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// bash, zsh, fish, elvish or powershell
    shell: clap_complete::Shell,
}

impl Completions {
    pub(super) fn run(self) -> Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut Cli::command(),
            env!("CARGO_PKG_NAME"),
            &mut script,
        );
        print(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Done)
    }
}

/// Write the man page.
#[derive(Debug, Args)]
pub(super) struct Man {}

impl Man {
    #[expect(clippy::unused_self, reason = "every command is run the same way")]
    pub(super) fn run(self) -> Result<Exit> {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command())
            .render(&mut page)
            .context("cannot render the man page")?;
        print(&String::from_utf8_lossy(&page))?;
        Ok(Exit::Done)
    }
}
