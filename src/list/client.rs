//! The servers an MCP client is configured with -> listings. A local command is a server without an address,
//! unless it is a bridge to a remote one.

use serde_json::{Map, Value};

use super::rows::Rows;
use super::scan::parse;
use super::text::is_address;
use super::{Item, Listing, registry};
use crate::outcome::Transport;

/// The command of the bridge that stands for a remote server in clients that only start local ones.
const BRIDGE: &str = "mcp-remote";

/// Servers under the names that the configuration gives them.
pub(super) fn servers(members: Vec<(String, Vec<u8>)>, rows: &mut Rows<'_>) {
    for (name, text) in members {
        if name.starts_with('$') {
            continue;
        }
        let line = rows.entry();
        match parse(&text) {
            Some(Value::Object(configured)) => server(&name, &configured, line, rows),
            value => rows.empty(line, registry::kind(value.as_ref()).to_owned()),
        }
    }
}

/// Whether an object is a map of servers that nothing wraps: most of it has an address or a command.
pub(super) fn is_map(members: &[(String, Vec<u8>)]) -> bool {
    let servers = members
        .iter()
        .filter(|(_, text)| match parse(text) {
            Some(Value::Object(it)) => {
                it.contains_key("command")
                    || registry::ADDRESS.iter().any(|key| it.contains_key(*key))
            }
            _ => false,
        })
        .count();
    servers > 0 && servers * 2 >= members.len()
}

/// One server.
pub(super) fn server(name: &str, configured: &Map<String, Value>, line: u64, rows: &mut Rows<'_>) {
    match registry::listing(configured, name, line) {
        Some(Ok(listing)) => rows.server(vec![Item::Listing(listing)]),
        Some(Err(why)) => rows.bad(line, why),
        None if configured.contains_key("command") => {
            let bridged = bridged(&words(configured)).map(|mut listing| {
                name.clone_into(&mut listing.name);
                listing.line = line;
                Item::Listing(listing)
            });
            rows.server(bridged.into_iter().collect());
        }
        None => {
            let names: Vec<&str> = configured.keys().map(String::as_str).collect();
            rows.empty(line, registry::with_members(&names));
        }
    }
}

/// The command line: one text, a list of words, or a path with its arguments, as clients differ.
fn words(configured: &Map<String, Value>) -> Vec<&str> {
    let mut words = Vec::new();
    let command = configured.get("command");
    let inner = command.and_then(Value::as_object);
    for value in [
        command,
        inner.and_then(|command| command.get("path")),
        inner.and_then(|command| command.get("args")),
        configured.get("args"),
    ] {
        match value {
            Some(Value::String(line)) => words.extend(line.split_whitespace()),
            Some(Value::Array(list)) => words.extend(list.iter().filter_map(Value::as_str)),
            _ => {}
        }
    }
    words
}

/// The remote server behind a bridge.
fn bridged(words: &[&str]) -> Option<Listing> {
    let bridge = words.iter().position(|word| {
        let program = word.rsplit(['/', '\\']).next().unwrap_or(word);
        program == BRIDGE
            || program
                .strip_prefix(BRIDGE)
                .is_some_and(|version| version.starts_with('@'))
    })?;
    let words = &words[bridge + 1..];
    let after = |option: &'static str| {
        words
            .windows(2)
            .filter(move |pair| pair[0] == option)
            .map(|pair| pair[1])
    };
    Some(Listing {
        url: (*words.iter().find(|word| is_address(word))?).to_owned(),
        transport: after("--transport").find_map(|word| match word {
            "sse-only" => Some(Transport::HttpSse),
            "http-only" => Some(Transport::StreamableHttp),
            _ => None,
        }),
        headers: after("--header")
            .filter_map(|header| header.split_once(':'))
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect(),
        ..Listing::default()
    })
}
