//! `scan`: lists -> a run directory.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::Timestamp;
use url::Host;

use crate::manifest::{ListFile, Manifest, Parameters, RULES_VERSION};
use crate::probe::Prober;
use crate::roll::{self, Entry, Freezer, Listed};
use crate::scan::{self, Run, Stop};
use crate::store::{RunDir, file};
use crate::target::{Suffixes, Target};

use super::Exit;
use super::options::Asking;

/// Public sites that may be scanned without saying who asks.
const ANONYMOUS_SITES: usize = 10;

/// Probe every endpoint of the lists, write a run directory, print the summary.
#[derive(Debug, Args)]
pub(super) struct Scan {
    /// List files; `-` is standard input
    #[arg(value_name = "LIST")]
    lists: Vec<PathBuf>,
    /// The run directory [default: reports/<UTC start>-<list>]
    #[arg(long, env = "MCP_CENSUS_OUT", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the run in --out
    #[arg(long, requires = "out")]
    resume: bool,
    #[command(flatten)]
    asking: Asking,
}

impl Scan {
    pub(super) fn run(self) -> Result<Exit> {
        let started_at = Timestamp::now();
        let (dir, manifest, targets) = if self.resume { self.continued()? } else { self.fresh(started_at)? };
        let prober = Prober::new(self.asking.reach()?, self.asking.identity())?;
        let run = Run { dir, manifest, targets, terms: self.asking.terms(), pace: self.asking.pace(), prober };
        let path = run.dir.path().to_owned();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")?;
        let stop = Stop::default();
        let manifest = runtime.block_on(async {
            tokio::spawn(heed_interrupts(stop.clone()));
            scan::run(run, stop.clone(), true).await
        })?;
        runtime.shutdown_background();
        super::report::write_tables(&RunDir::open(&path)?)?;
        if stop.soft.is_cancelled() {
            eprintln_hint(&format!("interrupted; continue with: mcp-census scan --resume --out {}", path.display()));
            return Ok(Exit::Interrupted);
        }
        let _ = manifest;
        Ok(Exit::Done)
    }

    fn fresh(&self, started_at: Timestamp) -> Result<(RunDir, Manifest, Vec<Target>)> {
        let mut freezer = Freezer::new(self.asking.policy(), Vec::new());
        let mut entries: Vec<Entry> = Vec::new();
        let mut lists = Vec::new();
        for (number, path) in self.lists.iter().enumerate() {
            let mut reader = csv::ReaderBuilder::new().flexible(true).from_path(path).with_context(|| format!("cannot read {}", path.display()))?;
            let before = entries.len();
            for record in reader.records() {
                let record = record?;
                let listed = Listed {
                    list: u32::try_from(number)?,
                    line: record.position().map_or(0, csv::Position::line),
                    name: record.get(0).unwrap_or_default().into(),
                    url: record.get(1).unwrap_or_default().into(),
                    transport: record.get(2).and_then(crate::outcome::Transport::named),
                    ..Listed::default()
                };
                entries.push(freezer.freeze(listed));
            }
            lists.push(ListFile { path: path.display().to_string(), format: "csv".into(), sha256: String::new(), rows: (entries.len() - before) as u64 });
        }
        let targets = freezer.into_targets();
        self.require_contact(&targets)?;
        let out = self.out.clone().unwrap_or_else(|| PathBuf::from(format!("reports/{}", started_at.strftime("%Y%m%dT%H%M%SZ"))));
        let dir = RunDir::create(&out)?;
        dir.replace(file::TARGETS, |to| {
            for entry in &entries {
                serde_json::to_writer(&mut *to, entry)?;
                to.write_all(b"\n")?;
            }
            Ok(())
        })?;
        let asking = &self.asking;
        let ms = |it: std::time::Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
        let manifest = Manifest {
            tool: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_owned(),
            rules_version: RULES_VERSION,
            command: std::env::args().collect(),
            vantage: None,
            contact: asking.contact.clone(),
            asked_version: asking.protocol_version.clone(),
            lists,
            extra_columns: Vec::new(),
            seed: 0,
            parameters: Parameters {
                width: asking.width,
                depth: asking.depth,
                gap_ms: ms(asking.gap),
                rate: asking.rate,
                timeout_ms: ms(asking.timeout),
                connect_timeout_ms: ms(asking.connect_timeout),
                confirm: asking.confirm,
            },
            suffixes: Vec::new(),
            started_at,
            ended_at: None,
            complete: false,
            rows: entries.len() as u64,
            endpoints: targets.len() as u64,
            requests: 0,
            most_asked: None,
        };
        Ok((dir, manifest, targets))
    }

    fn continued(&self) -> Result<(RunDir, Manifest, Vec<Target>)> {
        let dir = RunDir::resume(self.out.as_deref().context("--resume needs --out")?)?;
        let manifest: Manifest = dir.read_json(file::MANIFEST)?;
        let mut entries: Vec<Entry> = Vec::new();
        dir.each_target(|entry| {
            entries.push(entry);
            Ok(())
        })?;
        let targets = roll::targets(&entries);
        Ok((dir, manifest, targets))
    }

    /// A census of strangers' servers says who takes it.
    fn require_contact(&self, targets: &[Target]) -> Result<()> {
        if self.asking.contact.is_some() {
            return Ok(());
        }
        let sites: BTreeSet<String> = targets
            .iter()
            .filter(|target| match target.url.host() {
                Some(Host::Ipv4(address)) => crate::target::is_public(address.into()),
                Some(Host::Ipv6(address)) => crate::target::is_public(address.into()),
                Some(Host::Domain(_)) | None => true,
            })
            .map(|target| Suffixes::default().site(&target.url))
            .collect();
        if sites.len() > ANONYMOUS_SITES {
            bail!(
                "this list has {} public sites; say who asks with --contact (a URL or an address where operators can reach you)",
                sites.len()
            );
        }
        Ok(())
    }
}

#[expect(clippy::print_stderr, reason = "a word to the person at the terminal")]
fn eprintln_hint(text: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("mcp-census: {text}");
    } else {
        eprintln!("mcp-census: {text}");
    }
}

/// Ctrl-C once drains; twice stops.
async fn heed_interrupts(stop: Stop) {
    for token in [stop.soft, stop.hard] {
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        token.cancel();
    }
}
