//! The few keys we need of Docker's `server.yaml`, and of its catalogue, which has many servers under
//! `registry` -> listings. YAML is read line by line, by indentation: block maps, and flow maps on one line.

use std::collections::BTreeMap;

use super::input::Input;
use super::rows::Rows;
use super::text::uncommented;
use super::{DeclaredAuth, Item, ListError, Listing, transport};

pub(super) fn read(input: Input<'_>, rows: &mut Rows<'_>) -> Result<(), ListError> {
    let mut lines = input.lines();
    let mut servers = Servers::default();
    // The keys that lead to the current line, with their indentation.
    let mut path: Vec<(usize, String)> = Vec::new();
    while let Some(line) = lines
        .line()
        .map_err(|error| rows.unread(lines.number(), error))?
    {
        let Some(text) = line.text() else {
            rows.bad(line.number, &super::text::too_long());
            continue;
        };
        if text.starts_with("---") {
            std::mem::take(&mut servers).give(rows);
            path.clear();
            continue;
        }
        let text = uncommented(&text);
        let content = text.trim_start();
        if content.is_empty() {
            continue;
        }
        let indentation = text.len() - content.len();
        path.retain(|(before, _)| *before < indentation);
        // An element of a list: nothing we need is in one.
        let Some((key, value)) = content
            .strip_prefix("- ")
            .is_none()
            .then(|| pair(content))
            .flatten()
        else {
            path.push((indentation, "-".to_owned()));
            continue;
        };
        path.push((indentation, key.to_owned()));
        let keys: Vec<&str> = path.iter().map(|(_, key)| key.as_str()).collect();
        servers.take(&keys, value, line.number);
    }
    servers.give(rows);
    Ok(())
}

/// `key: value` of a block map.
fn pair(content: &str) -> Option<(&str, &str)> {
    let (key, value) = content
        .split_once(": ")
        .or_else(|| Some((content.strip_suffix(':')?, "")))?;
    Some((bare(key), value.trim()))
}

/// A scalar without its quotes.
fn bare(text: &str) -> &str {
    let text = text.trim();
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(text)
}

/// The members of a flow map, `{a: b, "c": {d: e}}`, split at its own commas.
fn flow(value: &str) -> Option<Vec<(&str, &str)>> {
    let inner = value.strip_prefix('{')?.strip_suffix('}')?;
    let mut members = Vec::new();
    let mut start = 0;
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, it) in inner.char_indices() {
        match (quote, it) {
            (Some(open), _) if open == it => quote = None,
            (None, '"' | '\'') => quote = Some(it),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                members.extend(pair(inner[start..at].trim()));
                start = at + 1;
            }
            (Some(_) | None, _) => {}
        }
    }
    members.extend(pair(inner[start..].trim()));
    Some(members)
}

/// What is known of the servers of a document.
#[derive(Default)]
struct Servers {
    /// By their keys in the catalogue; the one of a `server.yaml` has none.
    servers: BTreeMap<(u64, String), Server>,
    /// The first line of each.
    starts: BTreeMap<String, u64>,
}

/// What is known of a server.
#[derive(Default)]
struct Server {
    name: Option<String>,
    url: Option<(u64, String)>,
    transport: Option<String>,
    wants_credentials: bool,
    headers: Vec<(String, String)>,
}

impl Servers {
    fn take(&mut self, keys: &[&str], value: &str, line: u64) {
        let (id, keys) = match keys {
            ["registry", id, keys @ ..] => (*id, keys),
            ["registry"] => return,
            keys => ("", keys),
        };
        if !matches!(keys, [] | ["name" | "type" | "remote" | "oauth", ..]) {
            return;
        }
        let start = *self.starts.entry(id.to_owned()).or_insert(line);
        self.servers
            .entry((start, id.to_owned()))
            .or_default()
            .take(keys, value, line);
    }

    fn give(self, rows: &mut Rows<'_>) {
        let is_catalogue = self.servers.len() > 1;
        for ((start, id), server) in self.servers {
            // The catalogue has a name of its own.
            if is_catalogue && id.is_empty() {
                continue;
            }
            rows.stand_at(start);
            rows.entry();
            rows.server(server.listing(&id).into_iter().collect());
        }
    }
}

impl Server {
    fn take(&mut self, keys: &[&str], value: &str, line: u64) {
        if let Some(members) = flow(value) {
            for (key, value) in members {
                self.take(&[keys, &[key]].concat(), value, line);
            }
            return;
        }
        let text = bare(value).to_owned();
        match keys {
            ["name"] => self.name = Some(text),
            ["remote", "url"] => self.url = Some((line, text)),
            ["remote", "transport_type" | "transport"] => self.transport = Some(text),
            ["remote", "headers", name] => {
                self.wants_credentials = true;
                self.headers.push(((*name).to_owned(), text));
            }
            ["oauth", ..] => self.wants_credentials = true,
            _ => {}
        }
    }

    fn listing(self, id: &str) -> Option<Item> {
        let (line, url) = self.url?;
        Some(Item::Listing(Listing {
            line,
            name: self.name.unwrap_or_else(|| id.to_owned()),
            url,
            transport: self.transport.as_deref().and_then(transport),
            declared_auth: Some(if self.wants_credentials {
                DeclaredAuth::Required
            } else {
                DeclaredAuth::None
            }),
            headers: self.headers,
            ..Listing::default()
        }))
    }
}
