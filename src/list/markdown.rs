//! The tables of a Markdown page -> listings, as lists of remote servers are kept: a row a server, its endpoint
//! in backticks or else the first link. Whatever stands outside tables is prose.

use super::input::Input;
use super::rows::Rows;
use super::text::too_long;
use super::{ListError, Listing, table, transport};

pub(super) fn read(input: Input<'_>, rows: &mut Rows<'_>) -> Result<(), ListError> {
    let mut lines = input.lines();
    let mut previous = String::new();
    let mut columns: Option<Columns> = None;
    while let Some(line) = lines
        .line()
        .map_err(|error| rows.unread(lines.number(), error))?
    {
        let Some(text) = line.text() else {
            rows.bad(line.number, &too_long());
            continue;
        };
        match &columns {
            None if is_rule(&text) && previous.contains('|') => {
                columns = Some(Columns::new(&cells(&previous)));
            }
            None => {}
            Some(_) if !text.contains('|') => columns = None,
            Some(columns) => {
                if let Some(listing) = columns.listing(line.number, &cells(&text)) {
                    rows.listing(listing);
                } else if columns.url.is_some() {
                    rows.bad(
                        line.number,
                        "this row of the table has no address; put one in backticks, or take the row out",
                    );
                } else {
                    rows.contents.rows_without_address += 1;
                }
            }
        }
        previous = text.into_owned();
    }
    Ok(())
}

/// Whether lines hold a table.
pub(super) fn is_table(lines: &[&str]) -> bool {
    lines
        .windows(2)
        .any(|pair| pair[0].contains('|') && is_rule(pair[1]))
}

/// The line below a header: `|---|:-:|`.
fn is_rule(line: &str) -> bool {
    line.contains('|')
        && line.contains('-')
        && line
            .chars()
            .all(|it| matches!(it, '|' | '-' | ':' | ' ' | '\t'))
}

/// A row's cells. A pipe that is no border has a backslash in front.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let line = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for it in line.chars() {
        let cell = cells.last_mut().expect("a row starts with a cell");
        match it {
            '|' if escaped => {
                cell.pop();
                cell.push('|');
            }
            '|' => cells.push(String::new()),
            _ => cell.push(it),
        }
        escaped = it == '\\' && !escaped;
    }
    if cells.len() > 1 && cells.last().is_some_and(|last| last.trim().is_empty()) {
        cells.pop();
    }
    cells
}

/// Where a table has what.
struct Columns {
    url: Option<usize>,
    name: usize,
    transport: Option<usize>,
}

impl Columns {
    fn new(header: &[String]) -> Self {
        let plain: Vec<String> = header
            .iter()
            .map(|cell| shown(cell).to_lowercase())
            .collect();
        let find = |is: &dyn Fn(&str) -> bool| plain.iter().position(|cell| is(cell));
        let url = find(&|cell| table::URL.contains(&cell))
            .or_else(|| find(&|cell| cell.contains("url") || cell.contains("endpoint")));
        Self {
            url,
            name: find(&|cell| {
                cell.contains("name") || cell.contains("server") && !cell.contains("url")
            })
            .unwrap_or(0),
            transport: find(&|cell| cell == "transport" || cell == "type"),
        }
    }

    fn listing(&self, line: u64, cells: &[String]) -> Option<Listing> {
        let cell = |at: usize| cells.get(at).map(String::as_str);
        let own = self.url.and_then(cell);
        let url = own
            .and_then(in_backticks)
            .or_else(|| cells.iter().find_map(|cell| in_backticks(cell)))
            .or_else(|| own.and_then(link))
            .or_else(|| cells.iter().find_map(|cell| link(cell)))?;
        Some(Listing {
            line,
            name: cell(self.name).map(shown).unwrap_or_default(),
            url: url.to_owned(),
            transport: self
                .transport
                .and_then(cell)
                .and_then(|cell| transport(&shown(cell))),
            ..Listing::default()
        })
    }
}

/// The address in code: alone, or in the command line that stands there.
fn in_backticks(cell: &str) -> Option<&str> {
    cell.split('`').skip(1).step_by(2).find_map(|code| {
        let address = &code[code.find("http://").or_else(|| code.find("https://"))?..];
        address.split_whitespace().next()
    })
}

/// The target of a link: `[text](target)`, `<target>`, or bare.
fn link(cell: &str) -> Option<&str> {
    let target = cell
        .find("](")
        .map(|at| &cell[at + 2..])
        .filter(|target| target.starts_with("http"))
        .or_else(|| Some(&cell[cell.find("http://").or_else(|| cell.find("https://"))?..]))?;
    target
        .split(|it: char| it.is_whitespace() || matches!(it, ')' | '>' | '"' | '`' | '|'))
        .next()
}

/// What a cell shows: the text of its links, without emphasis and code marks.
fn shown(cell: &str) -> String {
    let mut text = String::new();
    let mut rest = cell;
    while let Some((before, after)) = rest.split_once('[') {
        text.push_str(before.trim_end_matches('!'));
        let Some((link, tail)) = after.split_once("](") else {
            text.push('[');
            rest = after;
            continue;
        };
        text.push_str(link);
        rest = tail.split_once(')').map_or("", |(_, tail)| tail);
    }
    text.push_str(rest);
    text.replace(['*', '`'], "").trim().to_owned()
}
