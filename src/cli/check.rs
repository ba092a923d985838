//! `check`: one endpoint, explained.

use anyhow::{Context, Result};
use clap::Args;

use crate::inquiry::{Opening, Terms};
use crate::outcome::{Detail, Unmeasured, Verdict};
use crate::probe::Prober;
use crate::roll::{Aim, Freezer, Listed};
use crate::row::Row;
use crate::target::{self, Suffixes, Target};
use crate::{inquiry, story};

use super::options::Asking;
use super::{Exit, print, say};

/// Probe endpoints and explain each: every exchange, what decided, findings, a `curl` line.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Addresses to ask
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// The transport to expect: streamable-http or sse
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,
    /// Write rows and exchanges as JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    asking: Asking,
}

impl Check {
    pub(super) fn run(mut self) -> Result<Exit> {
        let excluding = self.asking.read_exclusions()?;
        let runtime = super::runtime()?;
        let prober = Prober::new(self.asking.reach()?, self.asking.identity())?;
        let mut all_working = true;
        for url in &self.urls {
            if let Some(line) = target::address(url)
                .ok()
                .and_then(|it| excluding.line(&it.url))
            {
                say(&format!(
                    "{} is not asked: {line}",
                    target::redacted_raw(url)
                ));
            }
            let row = runtime.block_on(self.check(&prober, url))?;
            all_working &= row.verdict == Verdict::Working;
        }
        Ok(if all_working {
            Exit::Done
        } else {
            Exit::Threshold
        })
    }

    /// A check speaks like the clients of today; `--opening initialize` asks what a census asks.
    fn terms(&self) -> Terms {
        Terms {
            opening: self.asking.opening.unwrap_or(Opening::Discover),
            ..self.asking.terms()
        }
    }

    async fn check(&self, prober: &Prober, url: &str) -> Result<Row> {
        let transport = match &self.transport {
            Some(name) => Some(
                crate::list::transport(name)
                    .with_context(|| format!("--transport {name}: use streamable-http or sse"))?,
            ),
            None => None,
        };
        let entry = Freezer::new(self.asking.policy()).freeze(Listed {
            url: url.to_owned(),
            transport,
            ..Listed::default()
        });
        let (site, exchanges) = match &entry.aim {
            Aim::Endpoint { number, address } => {
                let target = Target {
                    endpoint: *number,
                    url: address.clone(),
                    declared: transport,
                };
                (
                    Some(Suffixes::default().site(address)),
                    prober.probe(&target, &self.terms()).await,
                )
            }
            Aim::Unprobeable { .. } | Aim::LeftOut { .. } => (None, Vec::new()),
        };
        let settled = match &entry.aim {
            Aim::Endpoint { number, address } => {
                let target = Target {
                    endpoint: *number,
                    url: address.clone(),
                    declared: transport,
                };
                inquiry::settled(&target, &self.asking.protocol_version, &exchanges)
            }
            Aim::Unprobeable { .. } | Aim::LeftOut { .. } => None,
        };
        let otherwise = match &entry.aim {
            Aim::Unprobeable { why, .. } => Detail::Unprobeable(*why),
            Aim::LeftOut { .. } | Aim::Endpoint { .. } => {
                Detail::Unmeasured(Unmeasured::Interrupted)
            }
        };
        let row = Row::new(&entry, site, settled.as_ref(), &exchanges, otherwise);
        let findings: Vec<_> = entry
            .findings
            .iter()
            .chain(settled.iter().flat_map(|it| &it.reading.findings))
            .cloned()
            .collect();
        if self.json {
            let value =
                serde_json::json!({ "row": row, "findings": findings, "exchanges": exchanges });
            print(&format!("{value}\n"))?;
        } else {
            print(&story::story(&row, &exchanges, &findings))?;
        }
        Ok(row)
    }
}
