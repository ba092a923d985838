//! Rows -> counts -> the tables of a report. A tally keeps no row: its memory grows with distinct keys only, so a
//! census of any length can be counted as it is read. How tables look is `report`'s affair.

mod action;
mod estimate;
mod family;
mod instrument;
mod layer;
mod places;
mod platform;
#[cfg(test)]
pub(crate) mod sample;
mod summary;
mod tables;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

pub use action::{Mechanism, checks, mechanism};
pub use estimate::Drawn;
pub use family::family;
pub use layer::Layer;
pub use platform::operator;
pub use summary::{Line, NotMeasured, RunFacts, Share, Summary, Table, TableName, grouped, plain};

use crate::finding::Check;
use crate::outcome::{Era, Outcome, Transport, Unmeasured, Verdict};
use crate::row::Row;

/// Counts of a census under way.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    rows: u64,
    by_verdict: BTreeMap<(Outcome, Verdict), u64>,
    /// Of measured rows, and apart from them of the others.
    details: BTreeMap<(Outcome, bool, String), u64>,
    reached: BTreeMap<Layer, u64>,
    codes: BTreeMap<i64, u64>,
    messages: BTreeMap<(Option<u16>, i64, String), u64>,
    /// Of measured rows, and apart from them of the others.
    statuses: BTreeMap<(bool, Option<u16>), u64>,
    versions: BTreeMap<String, u64>,
    transports: BTreeMap<(Option<Transport>, Option<Transport>, Era), u64>,
    gates: BTreeMap<(Gate, String), u64>,
    /// By verdict, in buckets of a millisecond.
    times: BTreeMap<Verdict, BTreeMap<u64, u64>>,
    endpoints: Places<Score<u32>>,
    hosts: Places<Host>,
    sites: Places<Site>,
    findings: BTreeMap<String, u64>,
    actions: BTreeMap<(Mechanism, String), u64>,
    /// What the vantage points say, in their order.
    said: BTreeMap<Vec<Verdict>, u64>,
    again: instrument::Again,
}

/// By name. There are as many as the list is long, and little else of a report grows with it: what is kept of each is
/// small, and its counts are of one place's rows.
type Places<T> = HashMap<Box<str>, T>;

/// How many rows there are of something, and how they fared.
#[derive(Debug, Clone, Copy, Default)]
struct Score<Count = u64> {
    rows: Count,
    measured: Count,
    working: Count,
    /// Not in the sample.
    left_out: Count,
}

/// The rows of one site.
#[derive(Debug, Clone, Default)]
struct Site {
    score: Score<u32>,
    /// What was measured of it, mostly one thing.
    measured: Vec<((Verdict, Outcome), u32)>,
}

impl Site {
    fn add(&mut self, row: &Row) {
        self.score.add(row);
        if row.verdict.is_measured() {
            let what = (row.verdict, row.outcome);
            match self.measured.iter_mut().find(|(it, _)| *it == what) {
                Some((_, count)) => *count += 1,
                None => self.measured.push((what, 1)),
            }
        }
    }
}

impl Score<u32> {
    fn add(&mut self, row: &Row) {
        let verdict = row.verdict;
        self.rows += 1;
        self.left_out += u32::from(is_left_out(row));
        self.measured += u32::from(verdict.is_measured());
        self.working += u32::from(verdict == Verdict::Working);
    }

    /// The rows that are in the sample.
    const fn asked(&self) -> u32 {
        self.rows - self.left_out
    }
}

impl Score {
    fn merge(&mut self, other: impl Into<Self>) {
        let other = other.into();
        self.rows += other.rows;
        self.measured += other.measured;
        self.working += other.working;
        self.left_out += other.left_out;
    }
}

impl From<Score<u32>> for Score {
    fn from(one: Score<u32>) -> Self {
        Self {
            rows: one.rows.into(),
            measured: one.measured.into(),
            working: one.working.into(),
            left_out: one.left_out.into(),
        }
    }
}

/// Whether a row is not in the sample that was drawn.
fn is_left_out(row: &Row) -> bool {
    row.outcome == Outcome::Unmeasured && row.detail == Unmeasured::SampledOut.name()
}

#[derive(Debug, Clone, Copy, Default)]
struct Host {
    score: Score<u32>,
    not_found: u32,
    deployment_gone: u32,
}

/// How an endpoint asks for credentials or payment: by a status of HTTP, or where another one belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gate {
    Status(u16),
    InsteadOf(u16),
}

/// Times are told apart up to a minute; no exchange is given longer.
const LONGEST_MS: u64 = 60_000;

impl Tally {
    /// Counts a row.
    pub fn add(&mut self, row: &Row) {
        let measured = row.verdict.is_measured();
        self.rows += 1;
        more(&mut self.by_verdict, (row.outcome, row.verdict));
        more(
            &mut self.details,
            (row.outcome, measured, kind(row).to_owned()),
        );
        if measured || row.http_status.is_some() {
            more(&mut self.statuses, (measured, row.http_status));
        }
        if let Some(endpoint) = &row.endpoint {
            entry(&mut self.endpoints, endpoint).add(row);
        }
        if let Some(site) = &row.site {
            entry(&mut self.sites, site).add(row);
        }
        self.add_action(row);
        let mut found: Vec<&str> = checks(row).collect();
        found.sort_unstable();
        found.dedup();
        for check in &found {
            more(&mut self.findings, (*check).to_owned());
        }
        if measured {
            self.add_measured(row, &found);
        }
    }

    fn add_measured(&mut self, row: &Row, found: &[&str]) {
        if let Some(layer) = Layer::reached(row) {
            more(&mut self.reached, layer);
        }
        if row.outcome == Outcome::JsonrpcError
            && let Some(code) = row.rpc_code.or_else(|| row.detail.parse().ok())
        {
            more(&mut self.codes, code);
            more(&mut self.messages, (row.http_status, code, family(row)));
        }
        if let Some(version) = &row.protocol_version {
            more(&mut self.versions, version.clone());
        }
        more(
            &mut self.transports,
            (row.declared_transport, row.transport, row.era),
        );
        let status = match row.outcome {
            Outcome::AuthRequired => Some(401),
            Outcome::PaymentRequired => Some(402),
            Outcome::Forbidden => Some(403),
            Outcome::Success
            | Outcome::JsonrpcError
            | Outcome::ProtocolViolation
            | Outcome::HtmlPage
            | Outcome::NonEnvelope
            | Outcome::InvalidJson
            | Outcome::EmptyBody
            | Outcome::NotFound
            | Outcome::MethodNotAllowed
            | Outcome::Redirect
            | Outcome::HttpError
            | Outcome::RateLimited
            | Outcome::Timeout
            | Outcome::DnsFailure
            | Outcome::ConnectFailure
            | Outcome::TlsFailure
            | Outcome::ConnectionDropped
            | Outcome::Unprobeable
            | Outcome::Unmeasured => None,
        };
        if let Some(status) = status {
            more(&mut self.gates, (Gate::Status(status), row.detail.clone()));
        }
        for (check, status) in [
            (Check::AuthInJsonrpc, 401),
            (Check::AuthWithWrongStatus, 401),
            (Check::PaymentInJsonrpc, 402),
        ] {
            if found.contains(&check.name()) {
                more(
                    &mut self.gates,
                    (Gate::InsteadOf(status), check.name().to_owned()),
                );
            }
        }
        if let Some(time) = row.total_ms {
            let times = self.times.entry(row.verdict).or_default();
            more(times, whole_ms(time));
        }
    }

    fn add_action(&mut self, row: &Row) {
        let mechanism = mechanism(row);
        if let Some(host) = &row.host {
            let host = entry(&mut self.hosts, host);
            host.score.add(row);
            host.not_found += u32::from(mechanism == Some(Mechanism::PathNotFound));
            host.deployment_gone += u32::from(mechanism == Some(Mechanism::DeploymentGone));
        }
        let Some(mechanism) = mechanism else { return };
        let place = match mechanism {
            // Whether the host or the path is gone is known when all rows are.
            Mechanism::PathNotFound | Mechanism::HostNotFound if row.host.is_some() => return,
            Mechanism::PathNotFound | Mechanism::HostNotFound | Mechanism::TlsCertificate => {
                row.host.as_ref()
            }
            Mechanism::TemplateLeftIn
            | Mechanism::UnusableAddress
            | Mechanism::CredentialsListed => None,
            Mechanism::DeadName
            | Mechanism::DeploymentGone
            | Mechanism::IsStreamableHttp
            | Mechanism::IsSse
            | Mechanism::Moved
            | Mechanism::ListedAsHttp => row.site.as_ref(),
        };
        let place = place.cloned().unwrap_or_else(|| LIST.to_owned());
        more(&mut self.actions, (mechanism, place));
    }

    /// The sizes of the sites that have any measured rows: how many, in no order.
    pub fn measured_by_site(&self) -> impl Iterator<Item = u64> {
        let sizes = self.sites.values().map(|it| it.score.measured.into());
        sizes.filter(|it| *it > 0)
    }

    /// Input rows counted so far.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    fn score(&self) -> Score {
        let mut all = Score::default();
        for (&(_, verdict), &count) in &self.by_verdict {
            all.rows += count;
            all.measured += if verdict.is_measured() { count } else { 0 };
            all.working += if verdict == Verdict::Working {
                count
            } else {
                0
            };
        }
        all
    }
}

/// Where a row is to be mended that names no place: in the list itself.
const LIST: &str = "the list";

/// The detail without what only holds for one row: `retry_after=30`.
fn kind(row: &Row) -> &str {
    row.detail
        .split_once('=')
        .map_or(row.detail.as_str(), |(kind, _)| kind)
}

fn more<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) {
    *counts.entry(key).or_default() += 1;
}

fn entry<'a, T: Default>(all: &'a mut Places<T>, key: &str) -> &'a mut T {
    all.entry(key.into()).or_default()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "kept between 0 and a minute; what is no number becomes 0"
)]
fn whole_ms(time: f64) -> u64 {
    (time.max(0.0) as u64).min(LONGEST_MS)
}
