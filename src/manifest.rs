//! `manifest.json`: what a run was, so that its numbers can be defended and its evidence read again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::exchange::LocalFault;
use crate::inquiry::{self, Opening, Profile};

/// Which set of reading rules this build has. It grows with every change that can move a row.
pub const RULES_VERSION: u32 = 1;

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
        }
    }
}
