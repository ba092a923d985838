//! What a demo world consists of: groups of servers that behave alike, and the names they are given.
//! It is data (data/demo-world.json); this expands it to rows.

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use super::case::{Expect, Script};

/// Groups of servers, and the words that their names are made of.
#[derive(Debug, Clone, Deserialize)]
pub struct Mix {
    /// The words.
    pub names: Names,
    /// The groups; a row's name does not tell its group.
    pub groups: Vec<Group>,
}

/// Words for names like `publisher/first-second`.
#[derive(Debug, Clone, Deserialize)]
pub struct Names {
    /// Who publishes, in reverse-DNS form.
    pub publishers: Vec<String>,
    /// The first halves of labels.
    pub first: Vec<String>,
    /// The second halves.
    pub second: Vec<String>,
}

/// Servers that behave alike.
#[derive(Debug, Clone, Deserialize)]
pub struct Group {
    /// What the group is called, in the documentation and nowhere else.
    pub name: String,
    /// How many servers there are.
    pub count: usize,
    /// What they do, for people.
    #[serde(default)]
    pub note: String,
    /// The transport that the list declares.
    #[serde(default = "streamable")]
    pub transport: String,
    /// The path of the listed URL.
    #[serde(default = "mcp")]
    pub path: String,
    /// Listed as `http://` and not `https://`.
    #[serde(default)]
    pub plain: bool,
    /// What they do, for the machine: a response of the case format.
    pub response: Script,
    /// How their answers should be read.
    pub expect: Expect,
}

/// A row of the list, and the group its server belongs to.
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// The name as a registry has them.
    pub name: String,
    /// The host's first label.
    pub label: String,
    /// What its server does.
    pub group: &'a Group,
}

fn streamable() -> String {
    "streamable-http".to_owned()
}

fn mcp() -> String {
    "/mcp".to_owned()
}

impl Mix {
    /// The mix that is built in.
    ///
    /// # Panics
    /// Never: a test reads it.
    #[must_use]
    pub fn embedded() -> Self {
        Self::read(include_str!("../../data/demo-world.json"))
            .expect("the embedded mix is read by a test")
    }

    /// Reads a mix.
    ///
    /// # Errors
    /// When it is none; the error names the place.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        serde_json::from_str(text).context("no mix of servers")
    }

    /// Every server of the mix, in the order of their names.
    ///
    /// # Errors
    /// When there are more servers than pairs of words, or no words at all.
    pub fn rows(&self) -> anyhow::Result<Vec<Row<'_>>> {
        let Names {
            publishers,
            first,
            second,
        } = &self.names;
        let pairs = first.len() * second.len();
        let servers = self.groups.iter().map(|it| it.count).sum::<usize>();
        ensure!(
            !publishers.is_empty() && servers <= pairs,
            "a mix of {servers} servers needs publishers and as many labels, and has {pairs}: add words"
        );
        let stride = stride(pairs);
        let groups = self
            .groups
            .iter()
            .flat_map(|group| std::iter::repeat_n(group, group.count));
        let mut rows: Vec<Row<'_>> = groups
            .enumerate()
            .map(|(number, group)| {
                let pair = number * stride % pairs;
                let (one, two) = (pair % first.len(), pair / first.len());
                let label = format!("{}-{}", first[one], second[two]);
                let publisher = &publishers[(one * 3 + two) % publishers.len()];
                Row {
                    name: format!("{publisher}/{label}"),
                    label,
                    group,
                }
            })
            .collect();
        rows.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(rows)
    }
}

/// A step that visits every pair once, and neighbours far apart: near the golden section, without a common factor.
fn stride(pairs: usize) -> usize {
    let mut stride = (pairs * 618 / 1000).max(1);
    while gcd(stride, pairs) > 1 {
        stride += 1;
    }
    stride
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn the_demo_has_1_100_rows_and_no_two_names_alike() {
        let mix = Mix::embedded();
        let rows = mix.rows().unwrap();
        let names: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        let labels: BTreeSet<&str> = rows.iter().map(|row| row.label.as_str()).collect();
        assert_eq!([rows.len(), names.len(), labels.len()], [1100; 3]);
    }

    #[test]
    fn names_are_the_same_every_time_and_do_not_tell_the_group() {
        let mix = Mix::embedded();
        let (rows, again) = (mix.rows().unwrap(), mix.rows().unwrap());
        assert!(rows.iter().zip(&again).all(|(a, b)| a.name == b.name));
        // No publisher's rows are all of a kind.
        let mut kinds: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for row in &rows {
            let (publisher, _) = row.name.split_once('/').unwrap();
            let kinds = kinds.entry(publisher).or_default();
            kinds.insert(&row.group.expect.category);
        }
        assert!(kinds.values().all(|kinds| kinds.len() > 4), "{kinds:?}");
    }

    /// The rows of a Markdown table under a heading: its first two columns.
    fn table(heading: &str) -> BTreeMap<String, String> {
        let readme = include_str!("../../data/README.md");
        let (_, after) = readme.split_once(heading).unwrap();
        after
            .lines()
            .skip_while(|line| !line.starts_with("| `"))
            .take_while(|line| line.starts_with('|'))
            .map(|line| {
                let mut cells = line.split('|').map(|cell| cell.trim().trim_matches('`'));
                let key = cells.nth(1).unwrap().to_owned();
                let rest: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
                (key, rest.join(" "))
            })
            .collect()
    }

    #[track_caller]
    fn documented(heading: &str, counts: &BTreeMap<String, usize>) {
        let total: usize = counts.values().sum();
        let expected: BTreeMap<String, String> = counts
            .iter()
            .map(|(key, &count)| {
                let tenths = (count * 2000 + total) / (total * 2);
                let share = format!("{count} {}.{} %", tenths / 10, tenths % 10);
                (key.clone(), share)
            })
            .collect();
        assert_eq!(table(heading), expected, "data/README.md, {heading}");
    }

    #[test]
    fn the_outcomes_are_as_documented() {
        let mix = Mix::embedded();
        let mut counts = BTreeMap::new();
        for group in &mix.groups {
            *counts.entry(group.expect.category.clone()).or_default() += group.count;
        }
        documented("### Outcomes", &counts);
    }

    #[test]
    fn the_versions_of_open_servers_are_as_documented() {
        let mix: serde_json::Value =
            serde_json::from_str(include_str!("../../data/demo-world.json")).unwrap();
        let mut counts = BTreeMap::new();
        for group in mix["groups"].as_array().unwrap() {
            if group["expect"]["category"] == "success" {
                let response = group["response"].to_string();
                let (_, after) = response.split_once(r#"protocolVersion\":\""#).unwrap();
                let version = after[.."2025-06-18".len()].to_owned();
                let count = usize::try_from(group["count"].as_u64().unwrap()).unwrap();
                *counts.entry(version).or_default() += count;
            }
        }
        documented("### Protocol versions", &counts);
    }

    #[test]
    fn six_servers_refuse_in_json_rpc() {
        let mix = Mix::embedded();
        let codes: Vec<&str> = mix
            .rows()
            .unwrap()
            .iter()
            .filter(|row| row.group.expect.category == "jsonrpc_error")
            .map(|row| row.group.expect.detail.as_deref().unwrap())
            .collect();
        let mut codes = codes;
        codes.sort_unstable();
        assert_eq!(
            codes,
            ["-32001", "-32001", "-32001", "-32601", "-32602", "-32603"]
        );
    }

    #[test]
    fn more_servers_than_labels_is_an_error() {
        let mix = Mix::read(
            r#"{"names": {"publishers": ["com.example"], "first": ["a"], "second": ["b"]},
                "groups": [{"name": "x", "count": 2, "response": {"status": 200}, "expect": {}}]}"#,
        );
        let error = mix.unwrap().rows().unwrap_err().to_string();
        assert!(
            error.contains("2 servers") && error.contains("has 1"),
            "{error}"
        );
    }
}
