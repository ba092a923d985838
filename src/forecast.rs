//! What a scan of a frozen list would do: who is asked, how often, and how long that takes at least.
//! A tally of frozen rows; it sends nothing, and how it is printed is `cli`'s affair.

mod cost;
mod time;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use url::{Host, Position, Url};

use crate::finding::Check;
use crate::inquiry::Terms;
use crate::outcome::{Transport, Unmeasured, Unprobeable};
use crate::roll::{Aim, Entry};
use crate::tally::operator;
use crate::target::{self, Suffixes, Target};

pub use cost::Assumed;
use cost::{Cost, Load};
pub use time::{Floor, Tempo};

/// Examples kept of each reason, and of each kind of variant.
const EXAMPLES: usize = 3;

/// Lanes, hosts and endpoints that get a line each.
const LARGEST: usize = 10;

/// Names of template variables that are counted apart; a list that is wrong throughout has any number of them.
const VARIABLES: usize = 1000;

/// How a scan would go about it.
#[derive(Debug, Clone, Copy)]
pub struct Conduct<'a> {
    /// What is asked.
    pub terms: &'a Terms,
    /// Whether `robots.txt` is read first.
    pub robots: bool,
    /// How fast.
    pub tempo: Tempo,
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
    /// Requests that are sent whatever is answered, where every name leads somewhere: one an endpoint, and one an
    /// origin where `robots.txt` is read.
    pub requests_least: u64,
    /// Requests that a scan takes as a rule.
    pub requests_expected: u64,
    /// Those of them that ask a doubtful answer again.
    pub requests_confirming: u64,
    /// Those of them that read a `robots.txt`.
    pub requests_robots: u64,
    /// What is expected of endpoints.
    pub assumed: Assumed,
    /// The largest lanes.
    pub largest_lanes: Vec<Lane>,
    /// The hosts that are contacted most, with their endpoints.
    pub largest_hosts: Vec<(String, u64)>,
    /// How long the least takes at least.
    pub floor: Floor,
    /// How long what is expected takes at least.
    pub expected: Floor,
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
    /// Requests to it, as expected.
    pub requests: u64,
    /// How long they take at least, in seconds.
    pub seconds: f64,
}

/// What would be sent, by who it is sent to.
#[derive(Debug, Default)]
struct Loads<'a> {
    hosts: HashMap<&'a str, u64>,
    lanes: HashMap<String, Load>,
    operators: HashMap<String, Load>,
    addresses: HashMap<&'a str, Load>,
    in_all: Load,
}

impl<'a> Loads<'a> {
    fn of(targets: &'a [Target], suffixes: &Suffixes, robots: bool) -> Self {
        let mut loads = Self::default();
        let mut origins = HashSet::new();
        for Target { url, declared, .. } in targets {
            let is_stream = *declared == Some(Transport::HttpSse);
            let load = Load {
                posts: u64::from(!is_stream),
                streams: u64::from(is_stream),
                origins: u64::from(robots && origins.insert(&url[..Position::BeforePath])),
            };
            let host = url.host_str().unwrap_or_default();
            *loads.hosts.entry(host).or_default() += 1;
            if matches!(url.host(), Some(Host::Ipv4(_) | Host::Ipv6(_))) {
                let sum = loads.addresses.entry(host).or_default();
                *sum = sum.and(load);
            }
            let lane = loads.lanes.entry(suffixes.site(url)).or_default();
            *lane = lane.and(load);
            loads.in_all = loads.in_all.and(load);
        }
        for (site, load) in &loads.lanes {
            let operator = operator(site, &[]);
            if operator != site {
                match loads.operators.get_mut(operator) {
                    Some(sum) => *sum = sum.and(*load),
                    None => drop(loads.operators.insert(operator.to_owned(), *load)),
                }
            }
        }
        loads
    }

    /// How long it takes at least where a load is so many requests.
    fn floor(&self, tempo: &Tempo, requests: impl Fn(Load) -> u64) -> Floor {
        let most = |loads: &mut dyn Iterator<Item = &Load>| {
            loads.map(|load| requests(*load)).max().unwrap_or_default()
        };
        Floor::of(
            tempo,
            most(&mut self.lanes.values()),
            most(&mut self.operators.values()),
            most(&mut self.addresses.values()),
            requests(self.in_all),
        )
    }

    /// The largest lanes.
    fn largest_lanes(&self, cost: Cost, tempo: &Tempo) -> Vec<Lane> {
        let mut lanes: Vec<(&String, u64, u64)> = self
            .lanes
            .iter()
            .map(|(site, load)| (site, load.endpoints(), cost.expected(*load)))
            .collect();
        lanes.sort_unstable_by_key(|(site, endpoints, requests)| {
            (Reverse(*requests), Reverse(*endpoints), *site)
        });
        lanes.truncate(LARGEST);
        let lane = |(site, endpoints, requests): (&String, u64, u64)| Lane {
            site: site.clone(),
            endpoints,
            requests,
            seconds: tempo.in_a_lane(requests),
        };
        lanes.into_iter().map(lane).collect()
    }

    /// The hosts that are contacted most.
    fn largest_hosts(&self) -> Vec<(String, u64)> {
        let mut hosts: Vec<(&str, u64)> =
            self.hosts.iter().map(|(host, it)| (*host, *it)).collect();
        hosts.sort_unstable_by_key(|(host, endpoints)| (Reverse(*endpoints), *host));
        hosts.truncate(LARGEST);
        let owned = |(host, endpoints): (&str, u64)| (host.to_owned(), endpoints);
        hosts.into_iter().map(owned).collect()
    }
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
    pub fn outlook(
        self,
        targets: &[Target],
        suffixes: &Suffixes,
        conduct: &Conduct<'_>,
    ) -> Outlook {
        let (slash_variants, www_variants) = variants(targets);
        let loads = Loads::of(targets, suffixes, conduct.robots);
        let cost = Cost::under(conduct.terms);
        let mut repeated: Vec<(String, u64)> = Vec::new();
        let mut several = 0;
        let mut rows_probed = 0;
        for target in targets {
            let rows = self.named.get(target.endpoint as usize).copied();
            let rows = u64::from(rows.unwrap_or_default());
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
        let mut variables: Vec<(String, u64)> = self.variables.into_iter().collect();
        keep_largest(&mut variables, VARIABLES);
        let endpoints = targets.len() as u64;
        let rows_named: u64 = self.named.iter().map(|it| u64::from(*it)).sum();
        let mut left_out = self.left_out;
        if rows_named > rows_probed {
            *left_out.entry(Unmeasured::SampledOut).or_default() += rows_named - rows_probed;
        }
        Outlook {
            rows: self.rows,
            rows_probed,
            endpoints,
            hosts: loads.hosts.len() as u64,
            sites: loads.lanes.len() as u64,
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
            requests_least: loads.in_all.least(),
            requests_expected: cost.expected(loads.in_all),
            requests_confirming: cost.confirming(loads.in_all),
            requests_robots: loads.in_all.origins,
            assumed: cost.assumed(conduct.terms, conduct.robots),
            largest_lanes: loads.largest_lanes(cost, &conduct.tempo),
            largest_hosts: loads.largest_hosts(),
            floor: loads.floor(&conduct.tempo, Load::least),
            expected: loads.floor(&conduct.tempo, |load| cost.expected(load)),
        }
    }
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
    use crate::inquiry::{BUDGET, Opening, Profile};
    use crate::mcp::{ASKED_VERSION, Identity};
    use crate::roll::{Freezer, Listed};
    use crate::target::AddressPolicy;
    use std::time::Duration;

    fn terms() -> Terms {
        Terms {
            identity: Identity { contact: None },
            version: ASKED_VERSION.to_owned(),
            confirm: 1,
            profile: Profile::Census,
            budget: BUDGET,
            opening: Opening::Initialize,
            own: None,
        }
    }

    const TEMPO: Tempo = Tempo {
        gap: Duration::from_millis(500),
        rate: 2,
        per_operator: 10,
        per_address: 20,
    };

    fn outlook(urls: &[&str]) -> Outlook {
        let terms = terms();
        conducted(
            urls,
            &Conduct {
                terms: &terms,
                robots: false,
                tempo: TEMPO,
            },
        )
    }

    fn conducted(urls: &[&str], conduct: &Conduct<'_>) -> Outlook {
        let documentation = vec!["192.0.2.0/24".parse().unwrap()];
        let mut freezer = Freezer::new(AddressPolicy::opening(documentation));
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
        forecast.outlook(&freezer.into_targets(), &Suffixes::default(), conduct)
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
        assert_eq!(outlook.requests_least, 3);
        assert_eq!(
            (
                outlook.largest_lanes[0].site.as_str(),
                outlook.largest_lanes[0].endpoints
            ),
            ("example.com", 2)
        );
        assert_eq!(
            (outlook.floor.largest_lane, outlook.floor.all_requests),
            (0.5, 1.0)
        );
    }

    #[test]
    fn a_scan_takes_at_least_as_long_as_what_holds_it_back_most() {
        let terms = terms();
        let tenants: Vec<String> = (0..101)
            .map(|it| format!("https://t{it}.vercel.app/mcp"))
            .collect();
        let paths: Vec<String> = (0..41)
            .map(|it| format!("https://192.0.2.7/{it}"))
            .collect();
        let urls: Vec<&str> = tenants.iter().chain(&paths).map(String::as_str).collect();
        let floor = |gap, rate, per_address| {
            let tempo = Tempo {
                gap: Duration::from_millis(gap),
                rate,
                per_address,
                ..TEMPO
            };
            let conduct = Conduct {
                terms: &terms,
                robots: false,
                tempo,
            };
            conducted(&urls, &conduct).floor
        };
        let unhurried = floor(500, 0, 20);
        assert_eq!(
            (unhurried.largest_lane, unhurried.seconds),
            (20.0, 20.0),
            "the first of a lane starts at once, each further one after a gap"
        );
        let by_operator = floor(50, 0, 20);
        assert_eq!(
            (by_operator.largest_operator, by_operator.seconds),
            (10.0, 10.0)
        );
        let by_address = floor(50, 0, 2);
        assert_eq!(
            (by_address.largest_address, by_address.seconds),
            (20.0, 20.0)
        );
        let by_rate = floor(50, 1, 20);
        assert_eq!((by_rate.all_requests, by_rate.seconds), (141.0, 141.0));
    }

    #[test]
    fn what_is_asked_decides_what_is_expected() {
        let urls = ["https://a.example/mcp", "https://b.example/mcp"];
        let urls: Vec<String> = urls
            .iter()
            .flat_map(|url| (0..500).map(move |it| format!("{url}/{it}")))
            .collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let expected = |terms: &Terms, robots| {
            let outlook = conducted(
                &urls,
                &Conduct {
                    terms,
                    robots,
                    tempo: TEMPO,
                },
            );
            assert!(outlook.expected.seconds >= outlook.floor.seconds);
            outlook.requests_expected
        };
        let usual = expected(&terms(), false);
        assert_eq!(expected(&terms(), true), usual + 2, "an origin each");
        let unconfirmed = Terms {
            confirm: 0,
            ..terms()
        };
        assert!(expected(&unconfirmed, false) < usual);
        let discovering = Terms {
            opening: Opening::Discover,
            ..terms()
        };
        assert!(expected(&discovering, false) > usual);
        let checking = |budget| Terms {
            profile: Profile::Compliance,
            budget,
            ..terms()
        };
        assert!(expected(&checking(8), false) > expected(&checking(4), false));
        assert!(expected(&checking(4), false) > usual);
    }

    #[test]
    fn variants_are_told_of_and_not_merged() {
        let outlook = outlook(&[
            "https://example.com/mcp",
            "https://example.com/mcp/",
            "https://www.example.com/mcp",
            "https://www.example.org/mcp",
            "https://example.org/",
            // One endpoint, whose path is empty.
            "https://example.org",
            // Templates are no endpoints.
            "https://{x}.example.org/mcp",
            "https://{x}.example.org/mcp/",
        ]);
        assert_eq!((outlook.endpoints, outlook.duplicates), (5, 1));
        assert_eq!(
            (
                outlook.slash_variants.endpoints,
                outlook.www_variants.endpoints
            ),
            (1, 1)
        );
    }
}
