//! What a report says, before it is written in any format: tables of counts, each with its unit and its denominator.
//! How they come about is the tally's affair, how they look is `report`'s.

use serde::{Serialize, Serializer};

use super::Drawn;
use crate::finding::Check;
use crate::manifest::Setting;
use crate::names::names;
use crate::stats;
use crate::unseen;

names! {
    /// The tables of a report, in the order they are written in.
    pub enum TableName {
        /// Outcomes of the answer to `initialize`.
        Outcomes = "outcomes",
        /// Verdicts: what the outcomes come to.
        Verdicts = "verdicts",
        /// What the sample tells of the whole list.
        Estimates = "estimates",
        /// How far each endpoint got, layer by layer.
        Funnel = "funnel",
        /// What narrows the outcomes.
        Details = "details",
        /// JSON-RPC errors by code and name.
        JsonrpcErrors = "jsonrpc_errors",
        /// JSON-RPC errors by HTTP status, code and family of message.
        JsonrpcErrorMessages = "jsonrpc_error_messages",
        /// HTTP statuses that decided.
        HttpStatuses = "http_statuses",
        /// Protocol versions that servers answered with.
        ProtocolVersions = "protocol_versions",
        /// Transports, declared against observed, and the era of the protocol.
        EraTransport = "era_transport",
        /// Gates: how credentials or payment are asked for.
        Authentication = "authentication",
        /// Time to the end of the exchange, by verdict.
        Latency = "latency",
        /// Time to the end of the exchange, where there was an answer.
        LatencyHistogram = "latency_histogram",
        /// The same census in other units.
        Units = "units",
        /// The share that works without the largest.
        Concentration = "concentration",
        /// Where endpoints are hosted, by operator.
        Platforms = "platforms",
        /// What was noticed beside the outcome.
        Findings = "findings",
        /// Rows that a list's maintainer can act on, by mechanism.
        RowsToActOn = "rows_to_act_on",
        /// What was not measured, and why.
        NotMeasured = "not_measured",
        /// What several vantage points say of the same rows.
        Disagreement = "disagreement",
        /// The control arm: rows that worked, asked again at the end.
        Control = "control",
        /// The instrument: its versions, its parameters, and what was tried on it.
        Instrument = "instrument",
    }
}

/// What rows alone cannot tell of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RunFacts {
    /// The program and its version.
    pub tool: String,
    /// The version of the reading rules.
    pub rules_version: u32,
    /// The protocol version that `initialize` asked for.
    pub asked_version: String,
    /// The names of the lists, in order.
    pub lists: Vec<String>,
    /// The lists are known not to be whole: a sample, a shard, a truncated registry.
    pub partial: bool,
    /// Every endpoint was asked to the end.
    pub complete: bool,
    /// Distinct endpoints of the frozen list; counted from the rows where it is not given. Rows show addresses
    /// without their secrets, so two endpoints can look like one there.
    pub endpoints: Option<u64>,
    /// HTTP requests sent.
    pub requests: Option<u64>,
    /// Where it was asked from, in the operator's words.
    pub vantage: Option<String>,
    /// When it began, RFC 3339.
    pub started_at: Option<String>,
    /// When it ended, RFC 3339.
    pub ended_at: Option<String>,
    /// Suffixes beside the public list under which every name is a site of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suffixes: Vec<String>,
    /// How the rows were drawn, where not all were to be asked.
    #[serde(skip)]
    pub drawn: Option<Drawn>,
    /// What the sample is, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// The vantage points, where they are several.
    #[serde(skip)]
    pub vantages: Vec<String>,
    /// The settings of the instrument, each value with how many of the runs had it; its table is made of them.
    #[serde(skip)]
    pub instrument: Vec<(Setting, String, u64)>,
}

/// Everything a report says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What the run was.
    pub facts: RunFacts,
    /// Input rows.
    pub rows: u64,
    /// Rows whose verdict is a measurement.
    pub measured: u64,
    /// Measured rows that work.
    pub working: u64,
    /// [`Self::working`] as a share of [`Self::measured`].
    pub share: Option<Share>,
    /// Rows that could have been measured and were not.
    pub not_measured: NotMeasured,
    /// The tables, in the order of [`TableName::ALL`].
    pub tables: Vec<Table>,
}

impl Summary {
    /// One table; `None` where it was left out.
    #[must_use]
    pub fn table(&self, name: TableName) -> Option<&Table> {
        self.tables.iter().find(|it| it.name == name)
    }

    /// The summary without what differs between two runs over the same world: tables of timings, the clock,
    /// and the one finding that is made from a timing.
    #[must_use]
    pub fn without_timings(mut self) -> Self {
        self.facts.started_at = None;
        self.facts.ended_at = None;
        self.tables.retain(|it| !it.is_timed());
        for table in &mut self.tables {
            // A world's name server listens where the system lets it.
            if table.name == TableName::Instrument {
                let dns = Setting::DnsServer.name();
                table.lines.retain(|it| it.key[0] != dns);
            }
            if table.name == TableName::Findings {
                table
                    .lines
                    .retain(|it| it.key[0] != Check::SlowFirstByte.name());
            }
        }
        self
    }
}

/// Counts by key.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Its name.
    pub name: TableName,
    /// Its heading.
    pub title: String,
    /// What is counted.
    pub unit: &'static str,
    /// What shares are of, in words; empty where there are none.
    pub denominator_of: &'static str,
    /// How many of those there are, where it is one number for the whole table; each share has its own too.
    pub denominator: Option<u64>,
    /// The names of the keys and, last, of the count.
    pub columns: Vec<&'static str>,
    /// The counts, in the order they are to be read in.
    pub lines: Vec<Line>,
    /// What the table leaves out because it was not measured.
    pub not_measured: Option<NotMeasured>,
    /// A table for people has the values of its last key as columns.
    #[serde(skip)]
    pub spread: bool,
}

impl Table {
    /// A table without lines.
    #[must_use]
    pub fn new(name: TableName, unit: &'static str, columns: &[&'static str]) -> Self {
        Self {
            name,
            title: name.about().trim_end_matches('.').to_owned(),
            unit,
            denominator_of: "",
            denominator: None,
            columns: columns.to_vec(),
            lines: Vec::new(),
            not_measured: None,
            spread: false,
        }
    }

    /// Whether it is made of timings.
    #[must_use]
    pub const fn is_timed(&self) -> bool {
        matches!(self.name, TableName::Latency | TableName::LatencyHistogram)
    }

    /// Its unit and denominator in words.
    #[must_use]
    pub fn basis(&self) -> String {
        match (self.denominator_of, self.denominator) {
            ("", _) => format!("unit: {}", self.unit),
            (of, None) => format!("unit: {}; shares of {of}", self.unit),
            (of, Some(count)) => format!("unit: {}; shares of {} {of}", self.unit, grouped(count)),
        }
    }

    /// Adds a count that is no share of anything.
    pub fn count(&mut self, key: &[&str], about: impl Into<String>, count: u64) {
        self.lines.push(Line {
            key: key.iter().map(|it| plain(it)).collect(),
            about: about.into(),
            count,
            share: None,
        });
    }

    /// Adds a count as a share of `of`.
    pub fn share(&mut self, key: &[&str], about: impl Into<String>, count: u64, of: u64) {
        self.count(key, about, count);
        if let Some(line) = self.lines.last_mut() {
            line.share = Share::new(count, of);
        }
    }
}

/// One count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// What is counted, a value for each key. A word of ours or of a stranger's server.
    pub key: Vec<String>,
    /// What that means, in words; it may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// How many; in tables of timings, milliseconds.
    pub count: u64,
    /// The count as a share, where it is one.
    pub share: Option<Share>,
}

/// A share with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// What it is a share of.
    pub of: u64,
    /// The share, as a fraction.
    #[serde(serialize_with = "rounded")]
    pub fraction: f64,
    /// The lower end of its interval.
    #[serde(serialize_with = "rounded")]
    pub low: f64,
    /// The upper end of its interval.
    #[serde(serialize_with = "rounded")]
    pub high: f64,
}

impl Share {
    /// `count` of `of`; `None` of nothing.
    #[must_use]
    pub fn new(count: u64, of: u64) -> Option<Self> {
        stats::wilson(count, of).map(|interval| Self {
            of,
            fraction: stats::fraction(count, of),
            low: interval.low,
            high: interval.high,
        })
    }
}

/// What was not measured, and what that leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct NotMeasured {
    /// Rows that were not measured. Those that could not be asked at all are not among them.
    pub rows: u64,
    /// Rows measured and not measured together.
    pub of: u64,
    /// The share of those that works if none of the unmeasured does.
    #[serde(serialize_with = "rounded")]
    pub working_if_none: f64,
    /// The share of those that works if all of the unmeasured do.
    #[serde(serialize_with = "rounded")]
    pub working_if_all: f64,
}

impl NotMeasured {
    /// The bounds that `rows` without a measurement leave around `working` of `measured`.
    #[must_use]
    pub fn new(rows: u64, measured: u64, working: u64) -> Self {
        let of = measured + rows;
        Self {
            rows,
            of,
            working_if_none: stats::fraction(working, of),
            working_if_all: stats::fraction(working + rows, of),
        }
    }
}

/// Six decimals: more than any census resolves, and the same on every machine.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn rounded<S: Serializer>(fraction: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64((fraction * 1e6).round() / 1e6)
}

/// How much of one key is kept, in characters.
const KEY: usize = 120;

/// A text of a stranger's as it may be shown: control characters become spaces; what reorders or hides other
/// characters goes; what is longer than a key needs to be is cut.
#[must_use]
pub fn plain(text: &str) -> String {
    let mut kept = text
        .chars()
        .filter(|it| !unseen::hides(*it))
        .map(|it| if unseen::acts(it) { ' ' } else { it });
    let mut shown: String = kept.by_ref().take(KEY).collect();
    if kept.next().is_some() {
        shown.push_str("...");
    }
    shown
}

/// A number with its thousands set apart.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (number, want) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), want);
        }
    }

    #[test]
    fn a_strangers_text_does_nothing_to_a_terminal() {
        for (text, want) in [
            ("2025-06-18", "2025-06-18"),
            ("\x1b[31mred\r\n", " [31mred  "),
            ("a\u{202e}b\u{2066}c\u{200b}d\u{e0041}", "abcd"),
            ("\u{9b}2J", " 2J"),
        ] {
            assert_eq!(plain(text), want);
        }
        assert_eq!(plain(&"x".repeat(500)).len(), 123);
    }

    #[test]
    fn what_was_not_measured_leaves_a_range_open() {
        let open = NotMeasured::new(20, 80, 40);
        assert_eq!(
            (open.of, open.working_if_none, open.working_if_all),
            (100, 0.4, 0.6)
        );
        assert_eq!(NotMeasured::new(0, 0, 0), NotMeasured::default());
    }
}
