//! JSON of any shape a list comes in -> its servers, while it is read: the long arrays one element at a time,
//! everything else in one piece. What an element says is left to `registry` and `client`.

use std::io::{self, BufRead};

use serde_json::{Map, Value};

use super::input::{Input, LONGEST, WHOLE};
use super::rows::Rows;
use super::scan::{Broken, Scan, elements, members, parse, string};
use super::text::too_long;
use super::{Format, ListError, client, registry};

/// The members of an object that are not read while they pass, as text.
type Members = Vec<(String, Vec<u8>)>;

/// One document after another: pages are often saved into one file.
pub(super) fn read(input: Input<'_>, rows: &mut Rows<'_>) -> Result<(), ListError> {
    let mut scan = Scan::new(input.text);
    loop {
        let outcome = match scan.ahead() {
            Ok(None) => return Ok(()),
            Ok(Some(b'{' | b'[')) => document(&mut scan, rows),
            Ok(Some(_)) => Err(Flaw::Broken(Broken::Syntax(
                "something that is no JSON object or array stands here",
            ))),
            Err(broken) => Err(broken.into()),
        };
        outcome.map_err(|flaw| flaw.of(rows, scan.line()))?;
    }
}

/// One document a line. A line that is none is a row that cannot be read.
pub(super) fn lines(input: Input<'_>, rows: &mut Rows<'_>) -> Result<(), ListError> {
    let mut lines = input.lines();
    rows.settle(Format::Ndjson);
    while let Some(line) = lines
        .line()
        .map_err(|error| rows.unread(lines.number(), error))?
    {
        rows.stand_at(line.number);
        let Some(bytes) = &line.bytes else {
            rows.bad(line.number, &too_long());
            continue;
        };
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        // A line is read whole before it is taken apart: half a line gives no rows.
        let is_container = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
        if !is_container || parse(bytes).is_none() {
            let number = rows.entry();
            registry::entry(bytes, number, rows);
            continue;
        }
        match document(&mut Scan::new(bytes.as_slice()), rows) {
            Ok(()) => {}
            Err(Flaw::Shape(found)) => {
                let number = rows.entry();
                rows.empty(number, found);
            }
            Err(flaw) => return Err(flaw.of(rows, line.number)),
        }
    }
    Ok(())
}

/// Why a document cannot be read.
enum Flaw {
    Broken(Broken),
    /// It is JSON, and of no shape that lists servers.
    Shape(String),
}

impl<T: Into<Broken>> From<T> for Flaw {
    fn from(broken: T) -> Self {
        Self::Broken(broken.into())
    }
}

impl Flaw {
    fn of(self, rows: &Rows<'_>, line: u64) -> ListError {
        match self {
            Self::Broken(Broken::Read(error)) => rows.unread(line, error),
            Self::Broken(Broken::Syntax(why)) => rows.broken(line, why.to_owned()),
            Self::Shape(found) => ListError::Shape {
                name: rows.list(),
                line,
                found,
                expected: format!(
                    "{}, or the \"mcpServers\" of a client's configuration",
                    registry::EXPECTED
                ),
            },
        }
    }
}

fn document<R: BufRead>(scan: &mut Scan<R>, rows: &mut Rows<'_>) -> Result<(), Flaw> {
    rows.contents.next_cursor = None;
    if scan.ahead()? == Some(b'[') {
        list(scan, rows)?;
        rows.suppose(Format::Json);
        return Ok(());
    }
    let (rest, was_list) = object(scan, rows, false)?;
    if was_list {
        rows.contents.next_cursor = next_cursor(&rest);
        return Ok(());
    }
    shape(rest, rows)
}

/// Passes through an object. Gives its members but for the lists among them, and whether there were any.
fn object<R: BufRead>(
    scan: &mut Scan<R>,
    rows: &mut Rows<'_>,
    is_data: bool,
) -> Result<(Members, bool), Flaw> {
    let mut rest = Members::new();
    let mut size = 0;
    let mut was_list = false;
    scan.enter();
    while let Some(name) = scan.member()? {
        match (name.as_str(), scan.ahead()?) {
            ("servers" | "endpoints" | "data", Some(b'[')) if !was_list => {
                if is_data {
                    rows.settle(Format::ToolHive);
                }
                list(scan, rows)?;
                rows.suppose(if name == "servers" {
                    Format::Registry
                } else {
                    Format::Json
                });
                was_list = true;
            }
            // `ToolHive` has its servers one level down.
            ("data", Some(b'{')) if !is_data => {
                let (inner, found) = object(scan, rows, true)?;
                was_list |= found;
                if !found {
                    rest.extend(inner);
                }
            }
            _ if was_list && !is_paging(&name) => {
                scan.value(0)?;
            }
            _ => {
                let text = scan
                    .value(WHOLE - size)?
                    .ok_or(io::Error::from(io::ErrorKind::FileTooLarge))?;
                size += text.len();
                rest.push((name, text));
            }
        }
    }
    Ok((rest, was_list))
}

fn list<R: BufRead>(scan: &mut Scan<R>, rows: &mut Rows<'_>) -> Result<(), Broken> {
    scan.enter();
    while scan.element()? {
        let value = scan.value(LONGEST)?;
        let line = rows.entry();
        match value {
            Some(text) => registry::entry(&text, line, rows),
            None => rows.bad(line, &too_long()),
        }
    }
    Ok(())
}

/// Where a page says that another one follows. Its spelling has changed over the years.
pub(super) const CURSOR: [&str; 3] = ["nextCursor", "next_cursor", "next"];

fn is_paging(name: &str) -> bool {
    name == "metadata" || CURSOR.contains(&name)
}

fn next_cursor(rest: &Members) -> Option<String> {
    let paging: Map<String, Value> = rest
        .iter()
        .filter(|(name, _)| is_paging(name))
        .filter_map(|(name, text)| Some((name.clone(), parse(text)?)))
        .collect();
    paging
        .get("metadata")
        .and_then(Value::as_object)
        .and_then(|metadata| string(metadata, &CURSOR))
        .or_else(|| string(&paging, &CURSOR))
        .filter(|cursor| !cursor.is_empty())
        .map(str::to_owned)
}

/// The keys under which clients keep their servers.
const CLIENT: [&str; 4] = ["mcpServers", "mcp_servers", "servers", "context_servers"];

/// An object that is no page of a list: one server, or a map of servers.
fn shape(rest: Members, rows: &mut Rows<'_>) -> Result<(), Flaw> {
    let is_there = |name: &str| rest.iter().any(|(it, _)| it == name);
    if is_there("remote_servers") {
        rows.settle(Format::ToolHive);
        for (name, text) in &rest {
            match name.as_str() {
                "remote_servers" => registry::map(members(text), rows),
                // Containers: `ToolHive` runs them itself.
                "servers" => members(text).iter().for_each(|_| {
                    rows.entry();
                    rows.server(Vec::new());
                }),
                _ => {}
            }
        }
        return Ok(());
    }
    let configurations = configurations(&rest);
    if !configurations.is_empty() {
        rows.settle(Format::ClientConfig);
        for text in configurations {
            client::servers(named(&text), rows);
        }
        return Ok(());
    }
    if ["server", "remotes", "packages"].into_iter().any(is_there)
        || registry::ADDRESS.into_iter().any(|key| {
            rest.iter()
                .any(|(name, text)| name == key && text.starts_with(b"\""))
        })
    {
        let mut server = Map::new();
        for (name, text) in rest {
            let value = parse(&text).ok_or(Broken::Syntax("the JSON of the server is broken"))?;
            server.insert(name, value);
        }
        if server.contains_key("remotes") || server.contains_key("packages") {
            rows.settle(Format::ServerJson);
        }
        let line = rows.entry();
        registry::object(&server, line, rows);
        return Ok(());
    }
    if client::is_map(&rest) {
        rows.settle(Format::ClientConfig);
        client::servers(rest, rows);
        return Ok(());
    }
    if rest.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = rest.iter().map(|(name, _)| name.as_str()).collect();
    Err(Flaw::Shape(registry::with_members(&names)))
}

/// The maps and arrays of servers in a client's configuration.
fn configurations(rest: &Members) -> Vec<Vec<u8>> {
    let is_container = |text: &[u8]| matches!(text.first(), Some(b'{' | b'['));
    let mut found = Vec::new();
    for (name, text) in rest {
        match name.as_str() {
            name if CLIENT.contains(&name) && is_container(text) => found.push(text.clone()),
            // OpenCode has its servers here; VS Code's settings have `servers` in between.
            "mcp" if text.starts_with(b"{") => {
                let inner = members(text);
                let servers = inner
                    .iter()
                    .find(|(name, text)| name == "servers" && text.starts_with(b"{"));
                found.push(servers.map_or_else(|| text.clone(), |(_, servers)| servers.clone()));
            }
            // Claude Code keeps those of each project apart.
            "projects" if text.starts_with(b"{") => {
                for (_, project) in members(text) {
                    found.extend(
                        members(&project)
                            .into_iter()
                            .filter(|(name, text)| name == CLIENT[0] && is_container(text))
                            .map(|(_, text)| text),
                    );
                }
            }
            _ => {}
        }
    }
    found
}

/// A map's members, or an array's elements under the names that they give themselves.
fn named(text: &[u8]) -> Members {
    if text.starts_with(b"{") {
        return members(text);
    }
    elements(text)
        .into_iter()
        .map(|text| {
            let name = match parse(&text) {
                Some(Value::Object(server)) => string(&server, &["name"]).map(str::to_owned),
                _ => None,
            };
            (name.unwrap_or_default(), text)
        })
        .collect()
}
