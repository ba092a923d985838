//! `manifest.json`: what a run was, so that its numbers can be defended and its evidence read again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::exchange::LocalFault;
use crate::inquiry::{self, Opening, Profile};
use crate::names::names;
use crate::sampling::Sampling;
use crate::target::Shard;

/// Which set of reading rules this build has. It grows with every change that can move a row.
pub const RULES_VERSION: u32 = 1;

names! {
    /// How a run came to start when it did.
    pub enum Start {
        /// At its time.
        OnTime = "on_time",
        /// Late: another run was still going.
        Late = "late",
        /// Late: at its time nobody was there, or the window was closed. It stands for the last start that was missed.
        CaughtUp = "caught_up",
        /// When somebody asked for it, not for a time of the schedule.
        Asked = "asked",
    }
}

/// What a periodic run was for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Occasion {
    /// Whose run it is.
    pub sweep: String,
    /// The start it is for; none where somebody asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
    /// How it came to start when it did.
    pub start: Option<Start>,
    /// Seconds after its time.
    #[serde(default)]
    pub late_s: u64,
    /// How often it was taken up again.
    #[serde(default)]
    pub resumed: u32,
}

/// A run, described.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The program and its version.
    pub tool: String,
    /// The reading rules that its tables were made with.
    pub rules_version: u32,
    /// The command as it was typed.
    pub command: Vec<String>,
    /// Where it was asked from, in the operator's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vantage: Option<String>,
    /// The lists, in order.
    pub lists: Vec<ListFile>,
    /// Orders lanes of equal length, and draws samples.
    pub seed: u64,
    /// What `robots.txt` forbids was left alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub robots: bool,
    /// How many endpoints of a site were asked at most, drawn by the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_site: Option<usize>,
    /// What was drawn of the list by the seed, where not all of it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sampling>,
    /// The part of the list that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Good rows that were to be asked again at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<usize>,
    /// Recorded behaviours that the instrument read before it started, all of them right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_check: Option<usize>,
    /// The runs that were merged into this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// How it was paced and bounded.
    pub parameters: Parameters,
    /// Suffixes beside the public list under which every name is a site of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suffixes: Vec<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended; none while it runs, or where it was killed.
    pub ended_at: Option<Timestamp>,
    /// Every endpoint was asked to the end.
    pub complete: bool,
    /// What this machine was short of for so long that the run was halted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub halted_by: Option<LocalFault>,
    /// Input rows.
    pub rows: u64,
    /// Endpoints among them.
    pub endpoints: u64,
    /// HTTP requests sent.
    pub requests: u64,
    /// Requests to the site that was asked most, and which that is.
    pub most_asked: Option<(String, u64)>,
    /// The fingerprint of the endpoints that were to be asked: shares of different ones are of different things.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub population: String,
    /// Seconds for which the instrument was in doubt, and what it measured meanwhile does not count.
    #[serde(default, skip_serializing_if = "is_none")]
    pub doubt_s: u64,
    /// What the run was for, where it is one of a series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occasion: Option<Occasion>,
    /// When its evidence was removed; its tables stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_removed_at: Option<Timestamp>,
}

/// A run that was merged into another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// Its directory, as it was given.
    pub path: String,
    /// What it was.
    pub manifest: Manifest,
}

/// A list as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListFile {
    /// Its path as given, `-` for standard input.
    pub path: String,
    /// Its format.
    pub format: String,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Rows read from it.
    pub rows: u64,
    /// It is known not to be whole: pages of a registry are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// The names of the configured headers that were sent, because the operator asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers_sent: Vec<String>,
    /// The names of its further columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_columns: Vec<String>,
}

/// How a run asked, paced and bounded. Durations in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// The protocol version that `initialize` asked for.
    pub protocol_version: String,
    /// What was asked first.
    #[serde(default = "initialize")]
    pub opening: Opening,
    /// How much was asked.
    #[serde(default = "census")]
    pub profile: Profile,
    /// Requests that might be spent on one endpoint for the checks of the specification.
    #[serde(default = "budget")]
    pub budget: usize,
    /// Servers of one's own were also asked what is wrong on purpose.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub intrusive: bool,
    /// The hosts that were called one's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mine: Vec<String>,
    /// Who asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contact: Option<String>,
    /// Requests in flight.
    pub width: usize,
    /// Endpoints in flight in one lane.
    pub depth: usize,
    /// Between request starts in one lane.
    pub gap_ms: u64,
    /// Requests a second; 0: no limit.
    pub rate: u32,
    /// Requests a second to one address; 0: no limit.
    #[serde(default)]
    pub per_address: u32,
    /// One exchange.
    pub timeout_ms: u64,
    /// Name, connection and handshake.
    pub connect_timeout_ms: u64,
    /// Times a doubtful reading is asked again.
    pub confirm: u8,
    /// The name server, where it was not the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_server: Option<String>,
    /// Files of certificates that were trusted beside the public roots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ca_cert: Vec<String>,
    /// Ranges that were opened beside the public addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_net: Vec<String>,
    /// Hosts and ranges that were left alone because they asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<String>,
}

// What runs did that are older than the parameter.

const fn initialize() -> Opening {
    Opening::Initialize
}

const fn census() -> Profile {
    Profile::Census
}

const fn budget() -> usize {
    inquiry::BUDGET
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
const fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Manifest {
    /// A run that begins.
    #[must_use]
    pub fn begun(started_at: Timestamp, command: Vec<String>, parameters: Parameters) -> Self {
        Self {
            tool: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_owned(),
            rules_version: RULES_VERSION,
            command,
            vantage: None,
            lists: Vec::new(),
            seed: 0,
            robots: false,
            max_per_site: None,
            sample: None,
            shard: None,
            control: None,
            self_check: None,
            parts: Vec::new(),
            parameters,
            suffixes: Vec::new(),
            started_at,
            ended_at: None,
            complete: false,
            halted_by: None,
            rows: 0,
            endpoints: 0,
            requests: 0,
            most_asked: None,
            population: String::new(),
            doubt_s: 0,
            occasion: None,
            evidence_removed_at: None,
        }
    }
}

names! {
    /// What an instrument is described by.
    pub enum Setting {
        /// The program and its version.
        Tool = "tool",
        /// The reading rules.
        RulesVersion = "rules_version",
        /// Where it was asked from, in the operator's words.
        Vantage = "vantage",
        /// The protocol version that `initialize` asked for.
        ProtocolVersion = "protocol_version",
        /// What was asked first.
        Opening = "opening",
        /// How much was asked.
        Profile = "profile",
        /// Requests that might be spent on one endpoint for the checks of the specification.
        Budget = "budget",
        /// Whether negative probes were sent.
        Intrusive = "intrusive",
        /// The hosts that the operator said are their own.
        Mine = "mine",
        /// The longest time for one exchange.
        Timeout = "timeout_ms",
        /// The longest time for name, connection and handshake.
        ConnectTimeout = "connect_timeout_ms",
        /// Times a doubtful answer is asked again.
        Confirm = "confirm",
        /// Requests in flight.
        Width = "width",
        /// Endpoints of one site in flight.
        Depth = "depth",
        /// Least time between two requests at one site.
        Gap = "gap_ms",
        /// Requests a second; 0 for no limit.
        Rate = "rate",
        /// Requests a second to one address; 0 for no limit.
        PerAddress = "per_address",
        /// The name server.
        DnsServer = "dns_server",
        /// Certificates that were trusted beside the public roots.
        CaCert = "ca_cert",
        /// Ranges that were opened beside the public addresses.
        AllowNet = "allow_net",
        /// Hosts and ranges that asked to be left alone.
        Excluded = "excluded",
        /// Whether what `robots.txt` forbids was left alone.
        Robots = "robots",
        /// The part of the list that was asked.
        Shard = "shard",
        /// What was drawn of the list.
        Sample = "sample",
        /// Endpoints asked of one site at most, drawn by the seed.
        MaxPerSite = "max_per_site",
        /// What samples and the order of lanes are drawn by.
        Seed = "seed",
        /// Recorded behaviours that the instrument was tried on first, all read right.
        SelfCheck = "self_check",
        /// Good rows that were asked again at the end.
        Control = "control",
        /// Whether every endpoint was asked to the end.
        Complete = "complete",
    }
}

impl Manifest {
    /// The value of a setting in words; empty where nothing was set.
    #[must_use]
    pub fn setting(&self, setting: Setting) -> String {
        let asked = &self.parameters;
        let optional = |it: Option<usize>| it.map_or_else(String::new, |it| it.to_string());
        let whether = |it: bool| if it { "yes" } else { "no" }.to_owned();
        match setting {
            Setting::Tool => self.tool.clone(),
            Setting::RulesVersion => self.rules_version.to_string(),
            Setting::Vantage => self.vantage.clone().unwrap_or_default(),
            Setting::ProtocolVersion => asked.protocol_version.clone(),
            Setting::Opening => asked.opening.name().to_owned(),
            Setting::Profile => asked.profile.name().to_owned(),
            Setting::Budget => asked.budget.to_string(),
            Setting::Intrusive => whether(asked.intrusive),
            Setting::Mine => asked.mine.join(", "),
            Setting::Timeout => asked.timeout_ms.to_string(),
            Setting::ConnectTimeout => asked.connect_timeout_ms.to_string(),
            Setting::Confirm => asked.confirm.to_string(),
            Setting::Width => asked.width.to_string(),
            Setting::Depth => asked.depth.to_string(),
            Setting::Gap => asked.gap_ms.to_string(),
            Setting::Rate => asked.rate.to_string(),
            Setting::PerAddress => asked.per_address.to_string(),
            Setting::DnsServer => asked.dns_server.clone().unwrap_or_default(),
            Setting::CaCert => asked.ca_cert.join(", "),
            Setting::AllowNet => asked.allow_net.join(", "),
            Setting::Excluded => asked.excluded.len().to_string(),
            Setting::Robots => whether(self.robots),
            Setting::Shard => self.shard.map_or_else(String::new, |it| it.to_string()),
            Setting::Sample => self.sample.map_or_else(String::new, |it| it.to_string()),
            Setting::MaxPerSite => optional(self.max_per_site),
            Setting::Seed => self.seed.to_string(),
            Setting::SelfCheck => optional(self.self_check),
            Setting::Control => optional(self.control),
            Setting::Complete => whether(self.complete),
        }
    }

    /// The names of the vantage points that the evidence is of, where they are several. The evidence of each has its
    /// endpoints' numbers raised by [`Self::endpoints`] over that of the one before.
    #[must_use]
    pub fn vantages(&self) -> Vec<&str> {
        self.parts
            .iter()
            .filter(|part| part.manifest.shard.is_none())
            .map(|part| part.manifest.vantage.as_deref().unwrap_or_default())
            .collect()
    }
}
