//! A registry's entry, of any age, or an object with an address -> listings, one a remote.
//! It is read leniently and never validated: what is missing is unknown, and what is odd is kept.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::rows::Rows;
use super::scan::{parse, string};
use super::version::Release;
use super::{DeclaredAuth, Format, Item, Listing, Status, transport};
use crate::outcome::Transport;
use crate::target;

/// What errors say a list is expected to hold.
pub(super) const EXPECTED: &str =
    "servers with \"name\" and \"remotes\", or objects with a \"url\"";

/// The keys of an address. Gemini's `httpUrl` comes before its `url`, which is the older transport's.
pub(super) const ADDRESS: [&str; 9] = [
    "httpUrl",
    "url",
    "serverUrl",
    "endpoint",
    "remote_url",
    "server_url",
    "remoteUrl",
    "deploymentUrl",
    "url_direct",
];
const NAME: [&str; 5] = ["name", "server", "title", "qualifiedName", "displayName"];
const TRANSPORT: [&str; 4] = ["type", "transport", "transport_type", "transportType"];
const AUTH: [&str; 5] = [
    "auth",
    "authentication",
    "authentication_method",
    "oauth",
    "oauth_config",
];

/// Where the official registry keeps what it knows of a version, now and in August 2025.
pub(super) const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";
const OFFICIAL_2025: &str = "x-io.modelcontextprotocol.registry";

/// One element of a list.
pub(super) fn entry(text: &[u8], line: u64, rows: &mut Rows<'_>) {
    match parse(text) {
        Some(Value::Object(entry)) => object(&entry, line, rows),
        Some(Value::String(url)) => {
            rows.settle(Format::Json);
            rows.listing(Listing {
                line,
                url,
                ..Listing::default()
            });
        }
        value => rows.empty(line, kind(value.as_ref()).to_owned()),
    }
}

/// One element that is an object: a server, an address, or a page of them.
pub(super) fn object(entry: &Map<String, Value>, line: u64, rows: &mut Rows<'_>) {
    let is_there = |key: &str| entry.contains_key(key);
    if let Some(Value::Object(inner)) = entry.get("server") {
        rows.settle(Format::Registry);
        return server(entry, inner, line, rows);
    }
    if is_there("remotes") || is_there("packages") {
        rows.settle(Format::Registry);
        return server(entry, entry, line, rows);
    }
    // A directory's `url` is its own page about the server.
    let is_directory = is_there("source_code_url") || is_there("external_url");
    if !is_directory
        && let Some(outcome) = listing(entry, string(entry, &NAME).unwrap_or_default(), line)
    {
        rows.settle(Format::Json);
        return match outcome {
            Ok(listing) => rows.listing(listing),
            Err(why) => rows.bad(line, why),
        };
    }
    if let Some(Value::Array(page)) = entry.get("servers") {
        for entry in page {
            match entry {
                Value::Object(entry) => object(entry, line, rows),
                value => rows.empty(line, kind(Some(value)).to_owned()),
            }
        }
        return;
    }
    if is_there("version") || is_there("version_detail") {
        rows.settle(Format::Registry);
        return server(entry, entry, line, rows);
    }
    let names: Vec<&str> = entry.keys().map(String::as_str).collect();
    rows.empty(line, with_members(&names));
}

/// A map of remotes under the names of their servers.
pub(super) fn map(members: Vec<(String, Vec<u8>)>, rows: &mut Rows<'_>) {
    for (name, text) in members {
        let line = rows.entry();
        match parse(&text) {
            Some(Value::Object(remote)) => {
                let status = status(&[&remote]);
                let item = self::remote(&Value::Object(remote), 1, &name, status, line, rows);
                rows.server(vec![item]);
            }
            value => rows.empty(line, kind(value.as_ref()).to_owned()),
        }
    }
}

fn server(entry: &Map<String, Value>, server: &Map<String, Value>, line: u64, rows: &mut Rows<'_>) {
    let name = string(server, &NAME).unwrap_or_default();
    let remotes = match server.get("remotes") {
        Some(Value::Array(remotes)) => remotes.as_slice(),
        Some(remote @ Value::Object(_)) => std::slice::from_ref(remote),
        _ => &[],
    };
    if name.is_empty() && remotes.is_empty() {
        let names: Vec<&str> = server.keys().map(String::as_str).collect();
        return rows.empty(line, with_members(&names));
    }
    let places = places(entry, server);
    let status = status(&places);
    let items = (1..)
        .zip(remotes)
        .map(|(number, remote)| self::remote(remote, number, name, status, line, rows))
        .collect();
    let text = |keys: &[&str]| places.iter().find_map(|place| string(place, keys));
    let release = Release {
        is_latest: places.iter().find_map(|place| {
            let mark = place.get("isLatest").or_else(|| place.get("is_latest"));
            mark.and_then(Value::as_bool)
        }),
        version: text(&["version"]).unwrap_or_default().to_owned(),
        published: text(&["publishedAt", "published_at", "release_date"])
            .unwrap_or_default()
            .to_owned(),
    };
    rows.version(name, release, items);
}

/// Wherever something about a server's version may stand, the surest place first.
fn places<'a>(
    entry: &'a Map<String, Value>,
    server: &'a Map<String, Value>,
) -> Vec<&'a Map<String, Value>> {
    let mut places = Vec::new();
    for holder in [entry, server] {
        let meta = holder.get("_meta").and_then(Value::as_object);
        let official = meta.and_then(|meta| meta.get(OFFICIAL));
        places.extend(official.and_then(Value::as_object));
        places.extend(meta);
        for key in [OFFICIAL_2025, "version_detail"] {
            places.extend(holder.get(key).and_then(Value::as_object));
        }
        places.push(holder);
    }
    places
}

fn status(places: &[&Map<String, Value>]) -> Option<Status> {
    places
        .iter()
        .find_map(|place| Status::named(&string(place, &["status"])?.to_ascii_lowercase()))
}

fn remote(
    remote: &Value,
    number: usize,
    name: &str,
    status: Option<Status>,
    line: u64,
    rows: &Rows<'_>,
) -> Item {
    let outcome = match remote {
        Value::Object(remote) => listing(remote, name, line)
            .unwrap_or(Err("a remote has no \"url\"; give it one or take it out")),
        Value::String(url) => Ok(Listing {
            line,
            name: name.to_owned(),
            url: url.clone(),
            ..Listing::default()
        }),
        _ => Err("a remote is no object; give it a \"url\" or take it out"),
    };
    match outcome {
        Ok(mut listing) => {
            listing.declared_auth.get_or_insert(DeclaredAuth::None);
            listing.status = status;
            Item::Listing(listing)
        }
        Err(why) => rows.bad_row(line, &format!("{why} (remote {number} of {name:?})")),
    }
}

/// The listing that an object gives; `None` where it has no address at all.
pub(super) fn listing(
    object: &Map<String, Value>,
    name: &str,
    line: u64,
) -> Option<Result<Listing, &'static str>> {
    let mut addresses = ADDRESS
        .iter()
        .filter_map(|key| object.get(*key).map(|value| (*key, value)))
        .peekable();
    let first = *addresses.peek()?;
    let (key, value) = addresses
        .find(|(_, value)| !value.is_null())
        .unwrap_or(first);
    let url = match value {
        Value::String(url) => url.as_str(),
        Value::Null => "",
        _ => return Some(Err("its address is no string; put it in quotes")),
    };
    let declared = TRANSPORT
        .iter()
        .find_map(|key| transport(object.get(*key)?.as_str()?))
        .or((key == "httpUrl").then_some(Transport::StreamableHttp));
    Some(Ok(Listing {
        line,
        name: name.to_owned(),
        url: url.to_owned(),
        filled: filled(url, object.get("variables")),
        transport: declared,
        declared_auth: declared_auth(object),
        headers: configured(object),
        ..Listing::default()
    }))
}

/// The address with what its variables are by default, where that leaves no placeholder.
fn filled(url: &str, variables: Option<&Value>) -> Option<String> {
    let defaults: BTreeMap<&str, String> = variables?
        .as_object()?
        .iter()
        .filter_map(|(name, variable)| {
            let value = [variable.get("value"), variable.get("default")]
                .into_iter()
                .flatten()
                .find_map(|value| match value {
                    Value::String(value) => Some(value.clone()),
                    Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
                    Value::Null | Value::Array(_) | Value::Object(_) => None,
                })?;
            Some((name.as_str(), value))
        })
        .collect();
    let filled = target::fill(url, |name| defaults.get(name).map(String::as_str));
    (filled != url && target::placeholder(&filled).is_none()).then_some(filled)
}

/// What credentials the object says are wanted; `None` where it says nothing of headers or authentication.
fn declared_auth(object: &Map<String, Value>) -> Option<DeclaredAuth> {
    let is_true = |header: &Value, keys: &[&str]| {
        keys.iter()
            .any(|key| header.get(*key).and_then(Value::as_bool) == Some(true))
    };
    let mut declared = None;
    if let Some(Value::Array(headers)) = object.get("headers") {
        declared = Some(DeclaredAuth::None);
        for header in headers {
            if is_true(header, &["isRequired", "is_required", "required"]) && !is_constant(header) {
                declared = Some(DeclaredAuth::Required);
            } else if !is_constant(header) {
                declared = declared.max(Some(DeclaredAuth::Optional));
            }
        }
    }
    let schemes = AUTH.iter().filter_map(|key| match object.get(*key)? {
        Value::String(scheme) => Some(scheme.as_str()),
        Value::Object(auth) => Some(string(auth, &["type"]).unwrap_or("oauth")),
        _ => None,
    });
    for scheme in schemes {
        let is_open = matches!(
            scheme.to_ascii_lowercase().as_str(),
            "" | "none" | "open" | "no"
        );
        declared = declared.max(Some(if is_open {
            DeclaredAuth::None
        } else {
            DeclaredAuth::Required
        }));
    }
    declared
}

/// A header whose value is given, and the same for everyone, asks for no credentials.
fn is_constant(header: &Value) -> bool {
    let is_secret = ["isSecret", "is_secret", "secret"]
        .iter()
        .any(|key| header.get(*key).and_then(Value::as_bool) == Some(true));
    let value = header.get("value").and_then(Value::as_str);
    !is_secret && value.is_some_and(|value| target::placeholder(value).is_none())
}

/// The headers that a client is configured to send: a map, where a registry has an array.
fn configured(object: &Map<String, Value>) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for key in ["headers", "http_headers"] {
        if let Some(Value::Object(map)) = object.get(key) {
            headers.extend(map.iter().map(|(name, value)| {
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                (name.clone(), value)
            }));
        }
    }
    if let Some(token) = string(object, &["authorization_token"]) {
        headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
    }
    headers
}

/// What to call a value in an error.
pub(super) fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "text that is no JSON",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "an array",
        Some(Value::Object(_)) => "an object",
    }
}

/// What to call an object of these members in an error.
pub(super) fn with_members(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    match names {
        [] => "an empty object".to_owned(),
        _ => format!(
            "an object with {}{}",
            names[..names.len().min(SHOWN)].join(", "),
            if names.len() > SHOWN { ", ..." } else { "" }
        ),
    }
}
