//! `fetch`: a registry -> its list in a file. How it is walked is `registry`'s affair.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use indicatif::ProgressBar;
use ipnet::IpNet;
use url::Url;

use crate::probe::Prober;
use crate::registry::{self, Fetched, OFFICIAL, Since, Walk};
use crate::tally::grouped;

use super::options::{Asking, Span, name_server};
use super::{Exit, say};

/// Where there is no terminal, a line is written each so many pages.
const PAGES_A_LINE: usize = 50;

/// Take a registry's list into a file, to be scanned; what breaks off is taken up again by the same command.
#[derive(Debug, Args)]
pub(super) struct Fetch {
    /// The registry's base address
    #[arg(long, env = "MCP_CENSUS_REGISTRY", value_name = "URL", default_value = OFFICIAL)]
    registry: Url,
    /// The list, an entry a line; FILE.meta.json tells how it came about
    #[arg(
        long,
        env = "MCP_CENSUS_FETCH_OUT",
        value_name = "FILE",
        default_value = "registry.ndjson"
    )]
    out: PathBuf,
    /// Work into the list what has changed since a time (RFC 3339), or since the `last` fetch
    #[arg(long, env = "MCP_CENSUS_SINCE", value_name = "TIME", value_parser = since)]
    since: Option<Since>,
    /// Entries on a page
    #[arg(long, env = "MCP_CENSUS_PAGE_SIZE", value_name = "N", default_value_t = Walk::default().page_size)]
    page_size: u32,
    /// Pages read at most; a list that has more is partial
    #[arg(long, env = "MCP_CENSUS_MAX_PAGES", value_name = "N", default_value_t = Walk::default().max_pages)]
    max_pages: usize,
    /// Servers read at most; a list that has more is partial
    #[arg(long, env = "MCP_CENSUS_MAX_SERVERS", value_name = "N", default_value_t = Walk::default().max_servers)]
    max_servers: u64,
    /// Pages a second; 0 for no limit
    #[arg(long, env = "MCP_CENSUS_FETCH_RATE", value_name = "N", value_parser = rate, default_value = "1")]
    rate: f64,
    /// Times a page is asked for before the walk breaks off
    #[arg(long, env = "MCP_CENSUS_TRIES", value_name = "N", default_value_t = Walk::default().tries)]
    tries: u32,
    /// The wait after a first failure; it doubles with each further one, and Retry-After comes before it
    #[arg(long, env = "MCP_CENSUS_BACKOFF", value_name = "DUR", default_value_t = Span(Walk::default().backoff))]
    backoff: Span,
    /// Longest time for one page
    #[arg(long, env = "MCP_CENSUS_FETCH_TIMEOUT", value_name = "DUR", default_value_t = Span(Duration::from_secs(30)))]
    timeout: Span,
    /// Who asks: a URL or an address, sent with every request
    #[arg(long, env = "MCP_CENSUS_CONTACT", value_name = "WHO")]
    contact: Option<String>,
    /// Name server to ask instead of the system's
    #[arg(long, env = "MCP_CENSUS_DNS_SERVER", value_name = "ADDR", value_parser = name_server)]
    dns_server: Option<SocketAddr>,
    /// Certificates to trust beside the public roots, PEM
    #[arg(long, env = "MCP_CENSUS_CA_CERT", value_name = "FILE")]
    ca_cert: Vec<PathBuf>,
    /// Opens an address range that is not public; nothing else does
    #[arg(
        long,
        env = "MCP_CENSUS_ALLOW_NET",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    allow_net: Vec<IpNet>,
}

impl Fetch {
    pub(super) fn run(self) -> Result<Exit> {
        let asking = Asking {
            timeout: self.timeout,
            contact: self.contact,
            dns_server: self.dns_server,
            ca_cert: self.ca_cert,
            allow_net: self.allow_net,
            ..Asking::default()
        };
        let walk = Walk {
            registry: self.registry,
            page_size: self.page_size,
            max_pages: self.max_pages,
            max_servers: self.max_servers,
            every: if self.rate == 0.0 {
                Duration::ZERO
            } else {
                Duration::from_secs_f64(1.0 / self.rate)
            },
            tries: self.tries,
            backoff: self.backoff.0,
            since: self.since,
        };
        let Fetched { state, published } = fetch(&asking, &walk, &self.out)?;
        let out = self.out.display();
        if state.complete {
            say(&format!(
                "{out}: {} servers from {} pages of {}, whole",
                grouped(state.entries),
                grouped(state.pages.len() as u64),
                state.registry
            ));
            return Ok(Exit::Done);
        }
        let why = state.why.unwrap_or_default();
        let next = if state.resumable {
            "the same command goes on from there"
        } else {
            "the same command starts anew"
        };
        if published {
            bail!(
                "{out} is not whole, and a scan of it will say so: {} servers; {why}; {next}",
                grouped(state.entries)
            );
        }
        bail!(
            "{out} stays as it was: {} servers were read into {out}.part; {why}; {next}",
            grouped(state.entries)
        );
    }
}

/// Fetches a registry's list, and shows how it goes.
///
/// # Errors
/// When nothing could be read, or a file cannot be read or written.
pub(super) fn fetch(asking: &Asking, walk: &Walk, out: &Path) -> Result<Fetched> {
    let identity = asking.identity();
    let prober = Prober::new(asking.reach()?, identity.clone())?;
    let spinner = std::io::stderr()
        .is_terminal()
        .then(ProgressBar::new_spinner);
    let fetched =
        super::runtime()?.block_on(registry::fetch(&prober, &identity, walk, out, |state| {
            let line = format!(
                "{} pages, {} servers",
                grouped(state.pages.len() as u64),
                grouped(state.entries)
            );
            match &spinner {
                Some(spinner) => {
                    spinner.set_message(line);
                    spinner.tick();
                }
                None if state.pages.len().is_multiple_of(PAGES_A_LINE) => say(&line),
                None => {}
            }
        }));
    if let Some(spinner) = spinner {
        spinner.finish_and_clear();
    }
    fetched
}

fn since(text: &str) -> Result<Since, String> {
    if text == "last" {
        return Ok(Since::Last);
    }
    text.parse()
        .map(Since::Time)
        .map_err(|_| "write it as 2026-11-30T12:00:00Z, or last".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rate: &f64| *rate == 0.0 || (0.001..=1000.0).contains(rate))
        .ok_or_else(|| "write a number of pages a second, such as 1 or 0.5".to_owned())
}
