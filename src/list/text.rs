//! Lines of text -> listings: an address, or a name, a tab and an address. A line that is neither is still
//! a row; `target` says what is wrong with it.

use super::input::{Input, LONGEST};
use super::rows::Rows;
use super::{ListError, Listing, transport};

pub(super) fn read(input: Input<'_>, rows: &mut Rows<'_>) -> Result<(), ListError> {
    let mut lines = input.lines();
    while let Some(line) = lines
        .line()
        .map_err(|error| rows.unread(lines.number(), error))?
    {
        let Some(text) = line.text() else {
            rows.bad(line.number, &too_long());
            continue;
        };
        let text = uncommented(&text);
        if text.trim().is_empty() {
            continue;
        }
        let mut cells = text.split('\t');
        let first = cells.next().unwrap_or_default();
        let (name, url) = match cells.next() {
            Some(second) if is_address(second) || !is_address(first) => (first.trim(), second),
            Some(second) => (second.trim(), first),
            None => ("", first),
        };
        rows.listing(Listing {
            line: line.number,
            name: name.to_owned(),
            url: url.to_owned(),
            transport: cells.find_map(transport),
            ..Listing::default()
        });
    }
    Ok(())
}

/// A line without the comment that ends it: a `#` at its start, or after white space.
pub(super) fn uncommented(line: &str) -> &str {
    let mut before = ' ';
    for (at, it) in line.char_indices() {
        if it == '#' && before.is_whitespace() {
            return line[..at].trim_end();
        }
        before = it;
    }
    line
}

/// What to say of a line that is not read.
pub(super) fn too_long() -> String {
    format!(
        "longer than {} KiB, which is no row; look for a missing line end or quote",
        LONGEST >> 10
    )
}

/// Whether a cell is an address, whatever may be wrong with it.
pub(super) fn is_address(cell: &str) -> bool {
    let cell = cell.trim_start().as_bytes();
    let starts_with = |scheme: &[u8]| {
        cell.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    starts_with(b"https://") || starts_with(b"http://")
}
