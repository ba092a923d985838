//! Parse, run, exit code.

use std::process::ExitCode;

use clap::Parser as _;
use mcp_census::cli::{Cli, Exit};

/// A probe is some hundred short-lived allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(exit) => exit.into(),
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "this is where the person is told")]
            {
                eprintln!("mcp-census: {error:#}");
            }
            Exit::Failed.into()
        }
    }
}
