//! Options that several commands share, and how their values are read.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use ipnet::IpNet;

use crate::catalogue::Own;
use crate::exclude::Exclusions;
use crate::forecast::Tempo;
use crate::inquiry::{self, Opening, Profile, Terms};
use crate::manifest::Parameters;
use crate::mcp::{self, Identity};
use crate::probe::{Limits, Reach};
use crate::road::Pace;
use crate::target::{AddressPolicy, Target};

use super::exclude::Files;

/// How to ask, and how hard.
#[derive(Debug, Clone, Args)]
pub(super) struct Asking {
    /// Requests in flight, all sites together
    #[arg(long, env = "MCP_CENSUS_WIDTH", value_name = "N", default_value_t = Self::default().width)]
    pub(super) width: usize,
    /// Requests a second, all sites together; 0 for no limit
    #[arg(long, env = "MCP_CENSUS_RATE", value_name = "N", default_value_t = Self::default().rate)]
    pub(super) rate: u32,
    /// Least time between two request starts at one site
    #[arg(long, env = "MCP_CENSUS_GAP", value_name = "DUR", default_value_t = Self::default().gap)]
    pub(super) gap: Span,
    /// Endpoints of one site in flight
    #[arg(long, env = "MCP_CENSUS_DEPTH", value_name = "N", default_value_t = Self::default().depth)]
    pub(super) depth: usize,
    /// Requests a second to one address, whatever names it has; 0 for no limit
    #[arg(long, env = "MCP_CENSUS_PER_ADDRESS", value_name = "N", default_value_t = Self::default().per_address)]
    pub(super) per_address: u32,
    /// Longest time for one exchange, first packet to last byte
    #[arg(long, env = "MCP_CENSUS_TIMEOUT", value_name = "DUR", default_value_t = Self::default().timeout)]
    pub(super) timeout: Span,
    /// Longest time for name, connection and TLS handshake together
    #[arg(long, env = "MCP_CENSUS_CONNECT_TIMEOUT", value_name = "DUR", default_value_t = Self::default().connect_timeout)]
    pub(super) connect_timeout: Span,
    /// Times a doubtful answer is asked again before it counts
    #[arg(long, env = "MCP_CENSUS_CONFIRM", value_name = "N", default_value_t = Self::default().confirm)]
    pub(super) confirm: u8,
    /// Who asks: a URL or an address, sent with every request
    #[arg(long, env = "MCP_CENSUS_CONTACT", value_name = "WHO")]
    pub(super) contact: Option<String>,
    /// Name server to ask, instead of the system's
    #[arg(long, env = "MCP_CENSUS_DNS_SERVER", value_name = "ADDR", value_parser = name_server)]
    pub(super) dns_server: Option<SocketAddr>,
    /// Certificates (PEM) to trust beside the public roots
    #[arg(long, env = "MCP_CENSUS_CA_CERT", value_name = "FILE")]
    pub(super) ca_cert: Vec<PathBuf>,
    /// Opens an address range that is not public to probing; nothing else does
    #[arg(
        long,
        env = "MCP_CENSUS_ALLOW_NET",
        value_name = "CIDR",
        value_delimiter = ','
    )]
    pub(super) allow_net: Vec<IpNet>,
    /// What is asked first: initialize, or discover, as clients of 2026-07-28 do [default: initialize; check: discover]
    #[arg(long, env = "MCP_CENSUS_OPENING", value_name = "NAME", value_parser = opening)]
    pub(super) opening: Option<Opening>,
    /// How much is asked: census, or compliance, which also asks what ordinary clients ask next [default: census; check: compliance]
    #[arg(long, env = "MCP_CENSUS_PROFILE", value_name = "NAME", value_parser = profile)]
    pub(super) profile: Option<Profile>,
    /// Requests that may be spent on one endpoint under --profile compliance
    #[arg(
        long,
        env = "MCP_CENSUS_BUDGET",
        value_name = "N",
        help = format!(
            "Requests that may be spent on one endpoint under --profile compliance [default: {}; with --intrusive: {}]",
            inquiry::BUDGET,
            inquiry::OWN_BUDGET
        )
    )]
    pub(super) budget: Option<usize>,
    /// Also ask what is wrong on purpose, under --profile compliance: only of servers listed by an address inside
    /// --allow-net, or named by --mine
    #[arg(long, env = "MCP_CENSUS_INTRUSIVE")]
    pub(super) intrusive: bool,
    /// A host that is yours, so that --intrusive may ask it
    #[arg(
        long,
        env = "MCP_CENSUS_MINE",
        value_name = "HOST",
        value_delimiter = ','
    )]
    pub(super) mine: Vec<String>,
    /// Protocol version that `initialize` asks for
    #[arg(long, env = "MCP_CENSUS_PROTOCOL_VERSION", value_name = "DATE", value_parser = version, default_value = mcp::ASKED_VERSION)]
    pub(super) protocol_version: String,
    /// Who asked to be left alone: a host, which covers its subdomains, an address or a range (CIDR) a line
    #[arg(long, env = "MCP_CENSUS_EXCLUDE", value_name = "FILE")]
    pub(super) exclude: Vec<PathBuf>,
    /// Who asked to be left alone, once the files have been read.
    #[arg(skip)]
    pub(super) excluded: Exclusions,
}

impl Default for Asking {
    fn default() -> Self {
        let (pace, limits) = (Pace::default(), Limits::default());
        Self {
            width: pace.width,
            rate: pace.rate.map_or(0, NonZeroU32::get),
            gap: Span(pace.gap),
            depth: pace.depth,
            per_address: pace.per_address.map_or(0, NonZeroU32::get),
            timeout: Span(limits.total),
            connect_timeout: Span(limits.connect),
            confirm: 1,
            contact: None,
            dns_server: None,
            ca_cert: Vec::new(),
            allow_net: Vec::new(),
            opening: None,
            profile: None,
            budget: None,
            intrusive: false,
            mine: Vec::new(),
            protocol_version: mcp::ASKED_VERSION.to_owned(),
            exclude: Vec::new(),
            excluded: Exclusions::default(),
        }
    }
}

impl Asking {
    /// Reads who asked to be left alone, the built-in file among them.
    ///
    /// # Errors
    /// When a file cannot be read, or a line excludes nothing.
    pub(super) fn read_exclusions(&mut self) -> Result<Files> {
        let files = Files::read(&self.exclude)?;
        self.excluded = files.exclusions()?;
        Ok(files)
    }

    /// The address policy.
    #[must_use]
    pub(super) fn policy(&self) -> AddressPolicy {
        AddressPolicy::opening(self.allow_net.clone()).excluding(self.excluded.clone())
    }

    /// Who asks.
    #[must_use]
    pub(super) fn identity(&self) -> Identity {
        Identity {
            contact: self.contact.clone(),
        }
    }

    /// What holds for every inquiry.
    #[must_use]
    pub(super) fn terms(&self) -> Terms {
        Terms {
            identity: self.identity(),
            version: self.protocol_version.clone(),
            confirm: self.confirm,
            profile: self.profile.unwrap_or(Profile::Census),
            budget: self.budget(),
            opening: self.opening.unwrap_or(Opening::Initialize),
            own: self.own(),
        }
    }

    /// Requests that may be spent on one endpoint.
    fn budget(&self) -> usize {
        self.budget.unwrap_or(if self.intrusive {
            inquiry::OWN_BUDGET
        } else {
            inquiry::BUDGET
        })
    }

    /// The servers that are also asked what is wrong on purpose.
    fn own(&self) -> Option<Own> {
        self.intrusive.then(|| Own {
            nets: self.allow_net.clone(),
            hosts: self.mine.iter().map(|it| it.to_lowercase()).collect(),
        })
    }

    /// Refuses to ask what is wrong on purpose of servers that are not shown to be one's own.
    ///
    /// # Errors
    /// When there is such a server among the targets, or nothing is asked for checks at all.
    pub(super) fn refuse_strangers(&self, targets: &[Target]) -> Result<()> {
        let Some(own) = self.own() else {
            return Ok(());
        };
        ensure!(
            self.profile == Some(Profile::Compliance),
            "--intrusive is for the checks of --profile compliance"
        );
        let strange: Vec<&str> = targets
            .iter()
            .filter(|it| !own.covers(&it.url))
            .filter_map(|it| it.url.host_str())
            .collect();
        if let [first, ..] = strange.as_slice() {
            bail!(
                "--intrusive asks what is wrong on purpose, so it is for servers of your own: {first} is no address \
                 inside --allow-net, and --mine does not name it ({} such endpoints in all)",
                strange.len()
            );
        }
        Ok(())
    }

    /// How hard to push.
    #[must_use]
    pub(super) fn pace(&self) -> Pace {
        Pace {
            width: self.width.max(1),
            depth: self.depth.max(1),
            gap: self.gap.0,
            rate: NonZeroU32::new(self.rate),
            per_address: NonZeroU32::new(self.per_address),
        }
    }

    /// How fast, for a forecast.
    pub(super) fn tempo(&self) -> Tempo {
        let pace = self.pace();
        Tempo {
            gap: pace.gap,
            rate: self.rate,
            per_operator: pace.per_operator().map_or(0, NonZeroU32::get),
            per_address: self.per_address,
        }
    }

    /// For the manifest.
    pub(super) fn parameters(&self) -> Parameters {
        let ms = |it: Duration| u64::try_from(it.as_millis()).unwrap_or(u64::MAX);
        Parameters {
            protocol_version: self.protocol_version.clone(),
            contact: self.contact.clone(),
            width: self.width,
            depth: self.depth,
            gap_ms: ms(self.gap.0),
            rate: self.rate,
            per_address: self.per_address,
            timeout_ms: ms(self.timeout.0),
            connect_timeout_ms: ms(self.connect_timeout.0),
            confirm: self.confirm,
            dns_server: self.dns_server.map(|it| it.to_string()),
            ca_cert: self
                .ca_cert
                .iter()
                .map(|it| it.display().to_string())
                .collect(),
            allow_net: self.allow_net.iter().map(ToString::to_string).collect(),
            excluded: self.excluded.lines(),
            profile: self.profile.unwrap_or(Profile::Census),
            budget: self.budget(),
            intrusive: self.intrusive,
            mine: self.mine.clone(),
            opening: self.opening.unwrap_or(Opening::Initialize),
        }
    }

    /// From the manifest of a run that is continued.
    ///
    /// # Errors
    /// When the manifest holds something that this build does not understand.
    pub(super) fn from_parameters(parameters: &Parameters) -> Result<Self> {
        let Parameters {
            protocol_version,
            contact,
            width,
            depth,
            gap_ms,
            rate,
            per_address,
            timeout_ms,
            connect_timeout_ms,
            confirm,
            dns_server,
            ca_cert,
            allow_net,
            opening,
            profile,
            budget,
            intrusive,
            mine,
            excluded,
        } = parameters.clone();
        Ok(Self {
            width,
            rate,
            per_address,
            gap: Span(Duration::from_millis(gap_ms)),
            depth,
            timeout: Span(Duration::from_millis(timeout_ms)),
            connect_timeout: Span(Duration::from_millis(connect_timeout_ms)),
            confirm,
            contact,
            dns_server: dns_server
                .map(|it| it.parse())
                .transpose()
                .context("the manifest's dns_server is no address")?,
            ca_cert: ca_cert.into_iter().map(PathBuf::from).collect(),
            allow_net: allow_net
                .iter()
                .map(|it| it.parse())
                .collect::<Result<_, _>>()
                .context("the manifest's allow_net is no range")?,
            opening: Some(opening),
            profile: Some(profile),
            budget: Some(budget),
            intrusive,
            mine,
            protocol_version,
            exclude: Vec::new(),
            excluded: Exclusions::read(&excluded.join("\n"))
                .map_err(|flaw| anyhow::anyhow!("the manifest's exclusions, {flaw}"))?,
        })
    }

    /// How to reach targets.
    ///
    /// # Errors
    /// When a certificate file cannot be read.
    pub(super) fn reach(&self) -> Result<Reach> {
        let read = |path: &PathBuf| {
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
        };
        Ok(Reach {
            limits: Limits {
                connect: self.connect_timeout.0.min(self.timeout.0),
                total: self.timeout.0,
            },
            policy: Arc::new(self.policy()),
            dns_server: self.dns_server,
            extra_roots: self.ca_cert.iter().map(read).collect::<Result<_>>()?,
            ..Reach::default()
        })
    }
}

/// A duration as people write it: `500ms`, `7s`, `1m30s`; a bare number is seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span(pub(super) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(duration) = self;
        if duration.subsec_millis() == 0 {
            write!(f, "{}s", duration.as_secs())
        } else {
            write!(f, "{}ms", duration.as_millis())
        }
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(seconds) = text.parse::<f64>() {
            return Duration::try_from_secs_f64(seconds)
                .map(Self)
                .map_err(|error| error.to_string());
        }
        let signed: jiff::SignedDuration = text
            .parse()
            .map_err(|_| "write it as 500ms, 7s or 1m30s".to_owned())?;
        Duration::try_from(signed)
            .map(Self)
            .map_err(|_| "it cannot be negative".to_owned())
    }
}

fn profile(name: &str) -> Result<Profile, String> {
    Profile::named(name).ok_or_else(|| "use census or compliance".to_owned())
}

fn opening(name: &str) -> Result<Opening, String> {
    Opening::named(name).ok_or_else(|| "use initialize or discover".to_owned())
}

/// A revision's name. A version that could be none would measure how servers treat nonsense.
fn version(text: &str) -> Result<String, String> {
    if mcp::is_date(text) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "write it as a date, such as {}",
            mcp::ASKED_VERSION
        ))
    }
}

/// Reads an address with or without a port.
pub(super) fn name_server(text: &str) -> Result<SocketAddr, String> {
    const DNS_PORT: u16 = 53;
    text.parse::<SocketAddr>()
        .or_else(|_| {
            text.parse::<std::net::IpAddr>()
                .map(|address| SocketAddr::new(address, DNS_PORT))
        })
        .map_err(|_| "write it as 9.9.9.9 or 127.0.0.1:5300".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, ms) in [
            ("500ms", 500),
            ("7s", 7000),
            ("1m30s", 90_000),
            ("0", 0),
            ("0.5", 500),
        ] {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(ms))), "{text}");
        }
        assert!(
            ["soon", "-3s", "-3"]
                .iter()
                .all(|text| text.parse::<Span>().is_err())
        );
        assert_eq!(
            (
                Span(Duration::from_millis(1500)).to_string(),
                Span(Duration::from_secs(15)).to_string()
            ),
            ("1500ms".into(), "15s".into())
        );
    }
}
