//! The frozen list: every input row with the endpoint it names, or why it names none. Which endpoints there
//! are, and in which lanes they run, follows from it. Reading list files is `list`'s affair.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::finding::{Check, Finding};
use crate::outcome::{Transport, Unmeasured, Unprobeable};
use crate::target::{self, AddressPolicy, Shard, Suffixes, Target};

/// One input row, as it stands in `targets.ndjson`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "AsRead")]
pub struct Entry {
    /// Which of the run's lists it comes from, counted from 0.
    pub list: u32,
    /// Its line there, counted from 1; in a list that is one JSON text, the number of the entry.
    pub line: u64,
    /// The name the list gives.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The address as listed.
    pub url: String,
    /// The transport the list declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<Transport>,
    /// The credentials the list declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
    /// What it aims at.
    #[serde(flatten)]
    pub aim: Aim,
    /// What was noticed about the listing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// The headers that are sent there, where the operator asked for that. They are secrets: they stand here alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The values of the list's own further columns, by the run's extra columns.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<String>,
}

/// An entry as it is read. What serde flattens it reads twice, and there may be a million.
#[derive(Deserialize)]
struct AsRead {
    list: u32,
    line: u64,
    #[serde(default)]
    name: String,
    url: String,
    transport: Option<Transport>,
    auth: Option<String>,
    endpoint: Option<AimedAt>,
    unprobeable: Option<WhyNot>,
    left_out: Option<LeftOut>,
    #[serde(default)]
    findings: Vec<Finding>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    extra: Vec<String>,
}

#[derive(Deserialize)]
struct AimedAt {
    number: u32,
    address: Url,
}

#[derive(Deserialize)]
struct WhyNot {
    why: Unprobeable,
    said: Option<String>,
}

#[derive(Deserialize)]
struct LeftOut {
    why: Unmeasured,
    address: Url,
}

impl TryFrom<AsRead> for Entry {
    type Error = &'static str;

    fn try_from(read: AsRead) -> Result<Self, &'static str> {
        let aim = match (read.endpoint, read.unprobeable, read.left_out) {
            (Some(AimedAt { number, address }), None, None) => Aim::Endpoint { number, address },
            (None, Some(WhyNot { why, said }), None) => Aim::Unprobeable { why, said },
            (None, None, Some(LeftOut { why, address })) => Aim::LeftOut { why, address },
            _ => return Err("an entry aims at one thing: endpoint, unprobeable or left_out"),
        };
        Ok(Self {
            list: read.list,
            line: read.line,
            name: read.name,
            url: read.url,
            transport: read.transport,
            auth: read.auth,
            aim,
            findings: read.findings,
            headers: read.headers,
            extra: read.extra,
        })
    }
}

/// What an input row aims at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// An endpoint.
    Endpoint {
        /// Its number, in order of first appearance.
        number: u32,
        /// Its address.
        address: Url,
    },
    /// Nothing that can be asked.
    Unprobeable {
        /// Why not.
        why: Unprobeable,
        /// What is wrong with the row, in words, where more can be said.
        #[serde(skip_serializing_if = "Option::is_none")]
        said: Option<String>,
    },
    /// An endpoint that this run leaves alone.
    LeftOut {
        /// Why.
        why: Unmeasured,
        /// Its address.
        address: Url,
    },
}

/// A row as a list gives it, before it is frozen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listed {
    /// Which list.
    pub list: u32,
    /// Its line there.
    pub line: u64,
    /// Its name.
    pub name: String,
    /// Its address, as listed.
    pub url: String,
    /// The address with a template's defaults filled in, where that filled it.
    pub filled: Option<String>,
    /// The declared transport.
    pub transport: Option<Transport>,
    /// The declared credentials.
    pub auth: Option<String>,
    /// Why it is not to be asked, whatever its address.
    pub refused: Option<(Unprobeable, String)>,
    /// The registry has it as deprecated.
    pub deprecated: bool,
    /// The headers to send there.
    pub headers: Vec<(String, String)>,
    /// Further columns.
    pub extra: Vec<String>,
}

/// Freezes rows one after the other, and numbers their endpoints.
#[derive(Debug, Default)]
pub struct Freezer {
    policy: AddressPolicy,
    limit: Option<u32>,
    shard: Option<(Shard, Suffixes)>,
    /// The numbers of the targets, to be found by their addresses, which stand in the targets alone: there may be
    /// a million.
    numbers: HashTable<u32>,
    hasher: RandomState,
    targets: Vec<Target>,
}

impl Freezer {
    /// A freezer under an address policy.
    #[must_use]
    pub fn new(policy: AddressPolicy) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }

    /// Leaves out every endpoint after the first so many.
    #[must_use]
    pub fn with_limit(self, limit: Option<u32>) -> Self {
        Self { limit, ..self }
    }

    /// Leaves out every endpoint of a site that belongs to another part.
    #[must_use]
    pub fn with_shard(self, shard: Option<Shard>, suffixes: &Suffixes) -> Self {
        Self {
            shard: shard.map(|shard| (shard, suffixes.clone())),
            ..self
        }
    }

    /// Freezes the next row.
    pub fn freeze(&mut self, listed: Listed) -> Entry {
        let Listed {
            list,
            line,
            name,
            url,
            filled,
            transport,
            auth,
            refused,
            deprecated,
            headers,
            extra,
        } = listed;
        let mut findings = Vec::new();
        let aim = if let Some((why, said)) = refused {
            let said = Some(said).filter(|it| !it.is_empty());
            Aim::Unprobeable { why, said }
        } else {
            if filled.is_some() {
                findings.push(Check::TemplateDefaultsUsed.into());
            }
            self.aim(filled.as_deref().unwrap_or(&url), transport, &mut findings)
        };
        if deprecated {
            findings.push(Check::DeprecatedListing.into());
        }
        Entry {
            list,
            line,
            name,
            url,
            transport,
            auth,
            headers: if matches!(aim, Aim::Endpoint { .. }) {
                headers
            } else {
                Vec::new()
            },
            aim,
            findings,
            extra,
        }
    }

    /// What a listed address aims at.
    fn aim(&mut self, raw: &str, transport: Option<Transport>, findings: &mut Vec<Finding>) -> Aim {
        let unprobeable = |why| Aim::Unprobeable { why, said: None };
        let address = match target::address(raw) {
            Ok(address) => address,
            Err(why) => {
                if why == Unprobeable::Userinfo {
                    findings.push(Check::CredentialsInListing.into());
                }
                return unprobeable(why);
            }
        };
        findings.extend(address.findings);
        let address = address.url;
        if self.policy.excluded().covers(&address) {
            return unprobeable(Unprobeable::Excluded);
        }
        if self.policy.refuses(&address) {
            return unprobeable(Unprobeable::PrivateAddress);
        }
        match self.left_out(&address) {
            Some(why) => Aim::LeftOut { why, address },
            None => Aim::Endpoint {
                number: self.number(&address, transport),
                address,
            },
        }
    }

    /// Why this run leaves an endpoint alone, if it does.
    fn left_out(&self, url: &Url) -> Option<Unmeasured> {
        if self
            .shard
            .as_ref()
            .is_some_and(|(shard, suffixes)| !shard.holds(&suffixes.site(url)))
        {
            return Some(Unmeasured::OtherShard);
        }
        let is_full = self
            .limit
            .is_some_and(|limit| self.targets.len() >= limit as usize);
        (is_full && self.known(url).is_none()).then_some(Unmeasured::SampledOut)
    }

    /// The endpoints of everything frozen so far, by their numbers.
    #[must_use]
    pub fn into_targets(self) -> Vec<Target> {
        self.targets
    }

    /// The number of an endpoint that was named before.
    fn known(&self, url: &Url) -> Option<u32> {
        let is_it = |number: &u32| self.targets[*number as usize].url == *url;
        let hash = self.hasher.hash_one(url.as_str());
        self.numbers.find(hash, is_it).copied()
    }

    fn number(&mut self, url: &Url, transport: Option<Transport>) -> u32 {
        if let Some(number) = self.known(url) {
            let target = &mut self.targets[number as usize];
            // Listed under both transports: the newer one is asked for first.
            if target.declared != transport && transport.is_some() {
                target.declared = if target.declared.is_none() {
                    transport
                } else {
                    Some(Transport::StreamableHttp)
                };
            }
            return number;
        }
        let number =
            u32::try_from(self.targets.len()).expect("a list has fewer than 2^32 endpoints");
        self.targets.push(Target {
            endpoint: number,
            url: url.clone(),
            declared: transport,
        });
        let (hasher, targets) = (&self.hasher, &self.targets);
        let hash_of = |number: &u32| hasher.hash_one(targets[*number as usize].url.as_str());
        self.numbers
            .insert_unique(hash_of(&number), number, hash_of);
        number
    }
}

/// The targets of a frozen list's endpoints, given in its order: what a resumed run asks.
#[must_use]
pub fn targets(endpoints: impl IntoIterator<Item = (Url, Option<Transport>)>) -> Vec<Target> {
    let mut freezer = Freezer::default();
    for (address, transport) in endpoints {
        freezer.number(&address, transport);
    }
    freezer.into_targets()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exclude::Exclusions;

    fn listed(url: &str, transport: Option<Transport>) -> Listed {
        Listed {
            url: url.into(),
            transport,
            ..Listed::default()
        }
    }

    #[test]
    fn an_endpoint_has_one_number_however_many_rows_name_it() {
        let mut freezer = Freezer::default();
        let entries: Vec<Entry> = [
            ("https://a.example/mcp", Some(Transport::HttpSse)),
            ("https://b.example", None),
            (
                "HTTPS://A.example:443/mcp#x",
                Some(Transport::StreamableHttp),
            ),
            ("https://a.example/mcp/", None),
            ("https://{x}/", None),
        ]
        .map(|(url, transport)| freezer.freeze(listed(url, transport)))
        .into();
        let numbers: Vec<Option<u32>> = entries
            .iter()
            .map(|entry| match entry.aim {
                Aim::Endpoint { number, .. } => Some(number),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(0), Some(2), None]);
        let frozen = freezer.into_targets();
        assert_eq!(frozen[0].declared, Some(Transport::StreamableHttp));
        let again = entries.into_iter().filter_map(|entry| match entry.aim {
            Aim::Endpoint { address, .. } => Some((address, entry.transport)),
            _ => None,
        });
        assert_eq!(
            targets(again),
            frozen,
            "a resumed run asks the same endpoints"
        );
    }

    #[test]
    fn an_exclusion_covers_subdomains_and_nothing_else() {
        let mut freezer = Freezer::new(
            AddressPolicy::default()
                .excluding(Exclusions::read("example.com\n203.0.113.0/24").unwrap()),
        );
        let mut excluded = |url: &str| {
            matches!(
                freezer.freeze(listed(url, None)).aim,
                Aim::Unprobeable {
                    why: Unprobeable::Excluded,
                    ..
                }
            )
        };
        assert!(excluded("https://example.com/") && excluded("https://a.b.example.com/mcp"));
        assert!(excluded("https://203.0.113.7:8443/mcp"));
        assert!(
            !excluded("https://notexample.com/") && !excluded("https://example.com.evil.example/")
        );
    }

    #[test]
    fn a_frozen_row_is_read_back_as_it_was() {
        let mut freezer = Freezer::default().with_limit(Some(1));
        for url in [
            "https://a.example/mcp#frag",
            "",
            "https://10.0.0.1/",
            "https://over.the.limit.example/",
        ] {
            let entry = freezer.freeze(Listed {
                headers: vec![("X-Key".into(), "k".into())],
                extra: vec!["more".into()],
                ..listed(url, None)
            });
            let line = serde_json::to_string(&entry).unwrap();
            assert_eq!(
                serde_json::from_str::<Entry>(&line).unwrap(),
                entry,
                "{line}"
            );
        }
        let aimless = r#"{"list":0,"line":1,"url":"https://a.example/"}"#;
        let error = serde_json::from_str::<Entry>(aimless).unwrap_err();
        assert!(error.to_string().contains("aims at one thing"), "{error}");
    }
}
