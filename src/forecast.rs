//! What a scan of a frozen list would do: who is asked, how often, and how long that takes at least.
//! A tally of frozen rows; it sends nothing, and how it is printed is `cli`'s affair.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use serde::Serialize;
use url::Url;

use crate::finding::Check;
use crate::outcome::{Transport, Unmeasured, Unprobeable};
use crate::roll::{Aim, Entry};
use crate::target::{self, Suffixes, Target};

/// Examples kept of each reason, and of each kind of variant.
const EXAMPLES: usize = 3;

/// Lanes, hosts and endpoints that get a line each.
const LARGEST: usize = 10;

/// Names of template variables that are counted apart; a list that is wrong throughout has any number of them.
const VARIABLES: usize = 1000;

/// Requests that an endpoint costs in the end, in tenths: sessions closed, fallbacks, confirmations.
/// The census of the demo, which has the mix of the published ones, takes 14.6.
const TENTHS_AN_ENDPOINT: u64 = 15;

/// The pace that a scan would keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tempo {
    /// The least time between two request starts in one lane.
    pub gap: Duration,
    /// Requests a second, all lanes together; 0 for no limit.
    pub rate: u32,
}

/// Rows, counted as they are frozen.
#[derive(Debug, Default)]
pub struct Forecast {
    rows: u64,
    unprobeable: BTreeMap<Unprobeable, Reason>,
    left_out: BTreeMap<Unmeasured, u64>,
    variables: BTreeMap<String, u64>,
    filled: u64,
    deprecated: u64,
    transports: BTreeMap<&'static str, u64>,
    auth: BTreeMap<String, u64>,
    /// The rows that name each endpoint, by its number.
    named: Vec<u32>,
}

/// Rows that cannot be probed for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Reason {
    /// How many.
    pub rows: u64,
    /// The first of them, without their secrets.
    pub examples: Vec<String>,
}

/// What a scan would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outlook {
    /// Input rows.
    pub rows: u64,
    /// Rows that name an endpoint which would be asked.
    pub rows_probed: u64,
    /// Endpoints that would be asked.
    pub endpoints: u64,
    /// Their hosts.
    pub hosts: u64,
    /// Their sites, so the lanes of the scan.
    pub sites: u64,
    /// Rows that cannot be probed, by reason.
    pub unprobeable: BTreeMap<Unprobeable, Reason>,
    /// Rows that this scan would leave alone.
    pub left_out: BTreeMap<Unmeasured, u64>,
    /// Placeholders in rows that are templates, with how many rows have each; the most frequent first.
    pub variables: Vec<(String, u64)>,
    /// Rows that are templates with a default for every placeholder.
    pub templates_filled: u64,
    /// Rows that their registry has as deprecated.
    pub deprecated: u64,
    /// Rows beyond the first of an endpoint.
    pub duplicates: u64,
    /// Endpoints that several rows name.
    pub repeated: u64,
    /// Those that most rows name.
    pub most_listed: Vec<(String, u64)>,
    /// Endpoints that differ from another by a slash at the end alone. They are two endpoints all the same.
    pub slash_variants: Variants,
    /// Endpoints that differ from another by `www.` alone.
    pub www_variants: Variants,
    /// Rows by the transport they declare.
    pub transports: BTreeMap<&'static str, u64>,
    /// Rows by the credentials they declare.
    pub auth: BTreeMap<String, u64>,
    /// Requests that are sent whatever is answered: one an endpoint, two where HTTP+SSE is declared.
    pub requests_least: u64,
    /// Requests that a census takes as a rule.
    pub requests_expected: u64,
    /// The largest lanes.
    pub largest_lanes: Vec<Lane>,
    /// The hosts that are contacted most, with their endpoints.
    pub largest_hosts: Vec<(String, u64)>,
    /// How long it takes at least.
    pub floor: Floor,
}

/// Endpoints that look like another one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Variants {
    /// How many.
    pub endpoints: u64,
    /// The first of them, without their secrets.
    pub examples: Vec<String>,
}

/// What would be sent to one site.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lane {
    /// The site.
    pub site: String,
    /// Its endpoints.
    pub endpoints: u64,
    /// Requests to it, at least.
    pub requests: u64,
    /// How long they take at least, in seconds.
    pub seconds: f64,
}

/// How long a scan takes at least, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Floor {
    /// What the largest lane takes at its gap.
    pub largest_lane: f64,
    /// What all requests take at the rate of the run.
    pub all_requests: f64,
    /// The longer of the two.
    pub seconds: f64,
}

impl Forecast {
    /// Counts a row.
    pub fn add(&mut self, entry: &Entry) {
        self.rows += 1;
        let has = |check: Check| entry.findings.iter().any(|it| it.check == check);
        self.filled += u64::from(has(Check::TemplateDefaultsUsed));
        self.deprecated += u64::from(has(Check::DeprecatedListing));
        let transport = entry.transport.map_or("none", Transport::name);
        *self.transports.entry(transport).or_default() += 1;
        let auth = entry.auth.as_deref().unwrap_or("unknown");
        match self.auth.get_mut(auth) {
            Some(rows) => *rows += 1,
            None => drop(self.auth.insert(auth.to_owned(), 1)),
        }
        match &entry.aim {
            Aim::Endpoint { number, .. } => {
                let number = *number as usize;
                if self.named.len() <= number {
                    self.named.resize(number + 1, 0);
                }
                self.named[number] += 1;
            }
            Aim::Unprobeable { why, said } => {
                let reason = self.unprobeable.entry(*why).or_default();
                reason.rows += 1;
                if reason.examples.len() < EXAMPLES {
                    let shown = target::redacted_raw(&entry.url);
                    reason
                        .examples
                        .push(said.clone().filter(|_| shown.is_empty()).unwrap_or(shown));
                }
                if *why == Unprobeable::Template {
                    self.count_variables(&entry.url);
                }
            }
            Aim::LeftOut { why, .. } => *self.left_out.entry(*why).or_default() += 1,
        }
    }

    fn count_variables(&mut self, url: &str) {
        let names: HashSet<&str> = target::placeholders(url).collect();
        for name in names {
            if let Some(rows) = self.variables.get_mut(name) {
                *rows += 1;
            } else if self.variables.len() < VARIABLES {
                self.variables.insert(name.to_owned(), 1);
            }
        }
    }

    /// What a scan of these targets would do. They are endpoints of the rows that were counted: all, or a sample.
    #[must_use]
    pub fn outlook(self, targets: &[Target], suffixes: &Suffixes, tempo: Tempo) -> Outlook {
        let mut hosts: HashMap<&str, u64> = HashMap::new();
        let mut lanes: HashMap<String, (u64, u64)> = HashMap::new();
        let mut requests_least = 0;
        for target in targets {
            *hosts
                .entry(target.url.host_str().unwrap_or_default())
                .or_default() += 1;
            let requests = match target.declared {
                Some(Transport::HttpSse) => 2,
                Some(Transport::StreamableHttp) | None => 1,
            };
            let lane = lanes.entry(suffixes.site(&target.url)).or_default();
            lane.0 += 1;
            lane.1 += requests;
            requests_least += requests;
        }
        let (hosts_in_all, sites) = (hosts.len() as u64, lanes.len() as u64);
        let (slash_variants, www_variants) = variants(targets);
        let named = |endpoint: u32| {
            let rows = self.named.get(endpoint as usize).copied();
            u64::from(rows.unwrap_or_default())
        };
        let mut lanes: Vec<(String, (u64, u64))> = lanes.into_iter().collect();
        lanes.sort_by(|(a, (_, a_sent)), (b, (_, b_sent))| b_sent.cmp(a_sent).then(a.cmp(b)));
        let busiest = lanes
            .first()
            .map_or(0.0, |(_, (_, requests))| at_gap(*requests, tempo.gap));
        let mut repeated: Vec<(String, u64)> = Vec::new();
        let mut several = 0;
        let mut rows_probed = 0;
        for target in targets {
            let rows = named(target.endpoint);
            rows_probed += rows;
            several += u64::from(rows > 1);
            if rows > 1 {
                repeated.push((target::redacted(&target.url), rows));
                // Kept short while it is made: only the largest are shown.
                if repeated.len() > 64 * LARGEST {
                    keep_largest(&mut repeated, LARGEST);
                }
            }
        }
        keep_largest(&mut repeated, EXAMPLES);
        let mut by_host: Vec<(&str, u64)> = hosts.into_iter().collect();
        by_host.sort_by_key(|(host, endpoints)| (Reverse(*endpoints), *host));
        by_host.truncate(LARGEST);
        let mut variables: Vec<(String, u64)> = self.variables.into_iter().collect();
        variables.sort_by(|(a, a_rows), (b, b_rows)| b_rows.cmp(a_rows).then(a.cmp(b)));
        let endpoints = targets.len() as u64;
        let rows_named: u64 = self.named.iter().map(|it| u64::from(*it)).sum();
        let mut left_out = self.left_out;
        if rows_named > rows_probed {
            *left_out.entry(Unmeasured::SampledOut).or_default() += rows_named - rows_probed;
        }
        let all_requests = if tempo.rate == 0 {
            0.0
        } else {
            seconds(requests_least) / f64::from(tempo.rate)
        };
        Outlook {
            rows: self.rows,
            rows_probed,
            endpoints,
            hosts: hosts_in_all,
            sites,
            unprobeable: self.unprobeable,
            left_out,
            variables,
            templates_filled: self.filled,
            deprecated: self.deprecated,
            duplicates: rows_probed.saturating_sub(endpoints),
            repeated: several,
            most_listed: repeated,
            slash_variants,
            www_variants,
            transports: self.transports,
            auth: self.auth,
            requests_least,
            requests_expected: requests_least.max(endpoints * TENTHS_AN_ENDPOINT / 10),
            largest_lanes: lanes
                .into_iter()
                .take(LARGEST)
                .map(|(site, (endpoints, requests))| Lane {
                    site,
                    endpoints,
                    requests,
                    seconds: at_gap(requests, tempo.gap),
                })
                .collect(),
            largest_hosts: by_host
                .into_iter()
                .map(|(host, it)| (host.to_owned(), it))
                .collect(),
            floor: Floor {
                largest_lane: busiest,
                all_requests,
                seconds: busiest.max(all_requests),
            },
        }
    }
}

fn at_gap(requests: u64, gap: Duration) -> f64 {
    seconds(requests) * gap.as_secs_f64()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a time for people, of far fewer than 2^52 requests"
)]
fn seconds(requests: u64) -> f64 {
    requests as f64
}

fn keep_largest(counted: &mut Vec<(String, u64)>, kept: usize) {
    counted.sort_by(|(a, a_rows), (b, b_rows)| b_rows.cmp(a_rows).then(a.cmp(b)));
    counted.truncate(kept);
}

/// The endpoints that differ from another by a slash at the end, and by `www.`.
fn variants(targets: &[Target]) -> (Variants, Variants) {
    let all: HashSet<&str> = targets.iter().map(|it| it.url.as_str()).collect();
    let (mut slash, mut www) = (Variants::default(), Variants::default());
    let note = |variants: &mut Variants, url: &Url, other: &Url| {
        if all.contains(other.as_str()) {
            variants.endpoints += 1;
            if variants.examples.len() < EXAMPLES {
                variants.examples.push(target::redacted(url));
            }
        }
    };
    for Target { url, .. } in targets {
        if let Some(path) = url.path().strip_suffix('/').filter(|it| !it.is_empty()) {
            let mut other = url.clone();
            other.set_path(path);
            note(&mut slash, url, &other);
        }
        if let Some(host) = url.host_str().and_then(|it| it.strip_prefix("www.")) {
            let mut other = url.clone();
            if other.set_host(Some(host)).is_ok() {
                note(&mut www, url, &other);
            }
        }
    }
    (slash, www)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roll::{Freezer, Listed};

    fn outlook(urls: &[&str]) -> Outlook {
        let mut freezer = Freezer::default();
        let mut forecast = Forecast::default();
        for url in urls {
            let transport = url.contains("/sse").then_some(Transport::HttpSse);
            let entry = freezer.freeze(Listed {
                url: (*url).to_owned(),
                transport,
                ..Listed::default()
            });
            forecast.add(&entry);
        }
        let tempo = Tempo {
            gap: Duration::from_millis(500),
            rate: 2,
        };
        forecast.outlook(&freezer.into_targets(), &Suffixes::default(), tempo)
    }

    #[test]
    fn every_row_is_counted_once_and_an_endpoint_is_asked_once() {
        let outlook = outlook(&[
            "https://a.example.com/mcp",
            "https://A.example.com:443/mcp#x",
            "https://b.example.com/sse",
            "https://c.example.org/mcp",
            "https://{tenant}.example.org/{tenant}/{path}",
            "ftp://c.example.org/",
            "",
        ]);
        assert_eq!(
            (outlook.rows, outlook.rows_probed, outlook.endpoints),
            (7, 4, 3)
        );
        assert_eq!((outlook.hosts, outlook.sites), (3, 2));
        assert_eq!((outlook.duplicates, outlook.repeated), (1, 1));
        assert_eq!(
            outlook.variables,
            [("{path}".to_owned(), 1), ("{tenant}".to_owned(), 1)]
        );
        assert_eq!(outlook.unprobeable[&Unprobeable::Scheme].rows, 1);
        assert_eq!(outlook.requests_least, 4);
        assert_eq!(
            (
                outlook.largest_lanes[0].site.as_str(),
                outlook.largest_lanes[0].requests
            ),
            ("example.com", 3)
        );
        assert_eq!(
            (outlook.floor.largest_lane, outlook.floor.all_requests),
            (1.5, 2.0)
        );
    }

    #[test]
    fn variants_are_told_of_and_not_merged() {
        let outlook = outlook(&[
            "https://example.com/mcp",
            "https://example.com/mcp/",
            "https://www.example.com/mcp",
            "https://www.example.org/mcp",
            "https://example.org/",
        ]);
        assert_eq!(outlook.endpoints, 5);
        assert_eq!(
            (
                outlook.slash_variants.endpoints,
                outlook.www_variants.endpoints
            ),
            (1, 1)
        );
    }
}
