//! `demo`: an embedded world of 1,100 servers, really served and really scanned; needs no network.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use jiff::Timestamp;

use crate::manifest::{ListFile, Manifest};
use crate::scan::{self, Run, Stop};
use crate::store::RunDir;
use crate::world::mix::Mix;
use crate::world::{self, World};

use super::options::{Asking, Span};
use super::report::{Shape, write_sample};
use super::{Exit, say};

/// Scan an embedded loopback world of 1,100 servers; needs no network.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// The run directory [default: reports/START-demo, START in UTC]
    #[arg(long, env = "MCP_CENSUS_OUT", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write the tables without what differs from run to run, to keep as a sample
    #[arg(long, value_name = "DIR")]
    sample: Option<PathBuf>,
    #[command(flatten)]
    shape: Shape,
}

impl Demo {
    pub(super) fn run(self) -> Result<Exit> {
        let started_at = Timestamp::now();
        let out = self.out.clone().unwrap_or_else(|| {
            PathBuf::from(format!(
                "reports/{}-demo",
                started_at.strftime("%Y%m%dT%H%M%SZ")
            ))
        });
        let dir = RunDir::create(&out)?;
        let stop = Stop::default();
        super::world_runtime()?.block_on(async {
            let world = World::demo(&Mix::embedded())
                .await
                .context("cannot serve the demo's world")?;
            let interrupts = tokio::spawn(super::scan::heed_interrupts(stop.clone()));
            let scanned = scan::run(run(dir, &world, started_at)?, stop.clone(), true).await;
            interrupts.abort();
            scanned
        })?;
        self.shape.show(&RunDir::open(&out)?)?;
        if let Some(sample) = &self.sample {
            write_sample(&RunDir::open(&out)?, sample)?;
        }
        say(&format!("the run is in {}", out.display()));
        Ok(if stop.soft.is_cancelled() {
            Exit::Interrupted
        } else {
            Exit::Done
        })
    }
}

/// The run over a world.
fn run(dir: RunDir, world: &World, started_at: Timestamp) -> Result<Run> {
    let asking = Asking {
        gap: Span(Duration::from_millis(20)),
        rate: 0,
        per_address: 0,
        timeout: Span(Duration::from_secs(5)),
        connect_timeout: Span(Duration::from_secs(4)),
        contact: Some("https://demo.test/about".to_owned()),
        dns_server: Some(world.dns()),
        allow_net: super::gauntlet::loopback()?,
        ..Asking::default()
    };
    let command = vec![env!("CARGO_PKG_NAME").to_owned(), "demo".to_owned()];
    let list = ListFile {
        path: "demo".into(),
        format: "demo".into(),
        sha256: String::new(),
        rows: world.targets().len() as u64,
        partial: false,
        headers_sent: Vec::new(),
        extra_columns: Vec::new(),
    };
    let manifest = Manifest {
        vantage: Some("loopback".to_owned()),
        lists: vec![list],
        suffixes: vec![world::DEMO.to_owned()],
        ..Manifest::begun(started_at, command, asking.parameters())
    };
    super::gauntlet::over(world, dir, world.targets().iter(), &asking, manifest)
}
