//! The start of a list -> its format, by what stands there. JSON is only told from text and from NDJSON;
//! `document` finds out what kind of JSON it is while it reads.

use super::Format;
use super::input::Input;
use super::scan::Scan;
use super::{markdown, table};
use crate::json;

/// The format, or what was found that is no list.
pub(super) fn detect(input: &Input<'_>) -> Result<Format, &'static str> {
    let head = input.head.as_slice();
    if let Some(found) = foreign(head) {
        return Err(found);
    }
    let text = String::from_utf8_lossy(head);
    let mut lines: Vec<&str> = text.split(['\n', '\r']).collect();
    let is_cut = !input.is_short() && lines.len() > 1;
    if is_cut {
        // The start may end anywhere in a line.
        lines.pop();
    }
    lines.retain(|line| !line.trim().is_empty());
    if is_ndjson(&lines, is_cut) {
        return Ok(Format::Ndjson);
    }
    if is_json(head) {
        return Ok(Format::Json);
    }
    let is_page = markdown::is_table(&lines);
    if is_page && lines.iter().any(|line| line.starts_with("```")) {
        // What stands between such lines is an example.
        return Ok(Format::Markdown);
    }
    if lines.iter().any(|line| {
        let line = line.trim_start();
        line.starts_with("[mcp_servers") || line.starts_with("mcp_servers.")
    }) {
        return Ok(Format::Codex);
    }
    if is_docker(&lines) {
        return Ok(Format::Docker);
    }
    if is_page {
        return Ok(Format::Markdown);
    }
    if text.trim_start().get(..9).is_some_and(|start| {
        let start = start.to_ascii_lowercase();
        start == "<!doctype" || start.starts_with("<html") || start.starts_with("<?xml")
    }) {
        return Err("a web page");
    }
    if table::is_table(&lines) {
        return Ok(Format::Csv);
    }
    Ok(Format::Text)
}

/// What is no text.
fn foreign(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"PK\x03\x04") {
        Some("a ZIP archive, as spreadsheets are")
    } else if head.starts_with(b"%PDF") {
        Some("a PDF document")
    } else if head.contains(&0) {
        Some("bytes that are no text")
    } else {
        None
    }
}

/// JSON starts with a bracket, and something in it that text or TOML would not have there.
fn is_json(head: &[u8]) -> bool {
    let mut scan = Scan::new(head);
    let Ok(Some(first @ (b'{' | b'['))) = scan.ahead() else {
        return false;
    };
    scan.enter();
    let Ok(Some(second)) = scan.ahead() else {
        // Nothing but an open bracket is in reach.
        return true;
    };
    match (first, second) {
        // `["a b".c]` is a table of TOML.
        (b'[', b'"') => {
            scan.value(usize::MAX).is_err()
                || matches!(scan.ahead(), Ok(Some(b',' | b']')) | Err(_))
        }
        (b'{', b'"' | b'}') | (b'[', b'{' | b']' | b'[' | b'-' | b'0'..=b'9') => true,
        _ => false,
    }
}

/// Several objects, each whole on a line of its own, and not much else but other JSON. `more`: other lines follow.
fn is_ndjson(lines: &[&str], more: bool) -> bool {
    let is_whole = |line: &str| json::read(line.trim()).is_ok();
    let is_object = |line: &str| line.trim_start().starts_with('{') && is_whole(line);
    let objects = lines.iter().filter(|line| is_object(line)).count();
    let whole = lines.iter().filter(|line| is_whole(line)).count();
    let starts_so = lines.first().is_some_and(|line| is_object(line));
    (lines.len() > 1 || more) && (starts_so || objects > 1) && whole * 2 >= lines.len()
}

fn is_docker(lines: &[&str]) -> bool {
    let at_top = |key: &str| lines.iter().any(|line| line.starts_with(key));
    let anywhere = |what: &str| lines.iter().any(|line| line.trim().starts_with(what));
    (at_top("name:") || at_top("registry:"))
        && (anywhere("remote:") || anywhere("type: remote") || anywhere("type: server"))
}
