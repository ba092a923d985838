//! Tables, as spreadsheets and scripts write them -> listings, by the names in the header or, without one,
//! by what stands in the first row. How lines make rows is left to `records`.

use std::io::{self, BufRead};

use super::input::Input;
use super::records::{Record, Records, split};
use super::rows::Rows;
use super::text::{is_address, too_long};
use super::{ListError, Listing, transport};

/// The names of a column of addresses, best first.
pub(super) const URL: [&str; 4] = ["url", "endpoint", "remote_url", "server_url"];
const NAME: [&str; 3] = ["name", "server", "title"];
const TRANSPORT: [&str; 2] = ["transport", "type"];

/// What cells are separated by. Spreadsheets take a semicolon where the comma is the decimal sign.
const DELIMITERS: [u8; 3] = [b',', b';', b'\t'];

pub(super) fn read(input: Input<'_>, rows: &mut Rows<'_>) -> Result<(), ListError> {
    let mut records = Records::new(input.lines());
    let first = first(&mut records).map_err(|error| rows.unread(records.number(), error))?;
    let (line, header) = match first {
        Some(Record::Cells(line, cells)) => (line, cells),
        Some(Record::TooLong(line)) => return Err(rows.broken(line, too_long())),
        Some(Record::Unclosed(line)) => return Err(rows.broken(line, UNCLOSED.to_owned())),
        None => return Ok(()),
    };
    let columns = if let Some(columns) = Columns::named(&header) {
        columns
    } else if let Some(columns) = Columns::guessed(&header) {
        rows.listing(
            columns
                .listing(line, &header)
                .expect("the columns are told by its address"),
        );
        columns
    } else {
        return Err(ListError::NoUrlColumn {
            name: rows.list(),
            line,
            found: header,
        });
    };
    rows.contents.extra_columns.clone_from(&columns.names);
    while let Some(record) = records
        .record()
        .map_err(|error| rows.unread(records.number(), error))?
    {
        match record {
            Record::Cells(line, cells) => match columns.listing(line, &cells) {
                Some(listing) => rows.listing(listing),
                None => rows.bad(
                    line,
                    &format!(
                        "has {} cells, and the address would be in cell {}; add the missing cells",
                        cells.len(),
                        columns.url + 1
                    ),
                ),
            },
            Record::TooLong(line) => rows.bad(line, &too_long()),
            Record::Unclosed(line) => rows.bad(line, UNCLOSED),
        }
    }
    Ok(())
}

const UNCLOSED: &str =
    "a quote is opened here and never closed; close it, or double it if it is meant as a quote";

/// The first row, after which the delimiter is known.
fn first(records: &mut Records<impl BufRead>) -> io::Result<Option<Record>> {
    let mut said = None;
    while let Some(line) = records.line()? {
        let text = line.text().unwrap_or_default();
        if line.bytes.is_some() && (is_preface(&text) || text.trim().is_empty()) {
            said = text
                .strip_prefix("sep=")
                .and_then(|it| it.bytes().next())
                .or(said);
            continue;
        }
        records.delimiter = said.or_else(|| delimiter(&text));
        records.put_back(line);
        return records.record();
    }
    Ok(None)
}

/// Whether lines look like a table: a header that names addresses, or a first row that has one among
/// other cells, or a header of other names above such a row.
pub(super) fn is_table(lines: &[&str]) -> bool {
    let mut lines = lines.iter().filter(|line| !is_preface(line));
    let Some(first) = lines.next() else {
        return false;
    };
    let cells = split(first, delimiter(first));
    if Columns::named(&cells).is_some() {
        return true;
    }
    if let Some(url) = cells.iter().position(|cell| is_address(cell)) {
        // `name <tab> address` is text, and so is an address with a comma in its query.
        return match *cells {
            [_] => false,
            [_, _] if first.contains('\t') && url == 1 => false,
            _ => url > 0 || !cells[0].contains('?'),
        };
    }
    cells.len() > 1
        && lines.next().is_some_and(|second| {
            let row = split(second, delimiter(first));
            row.len() == cells.len() && row.iter().any(|cell| is_address(cell))
        })
}

/// A line before the header: a comment, or what tells a spreadsheet the delimiter.
fn is_preface(line: &str) -> bool {
    // `#` alone heads a column of numbers.
    let is_comment = line.starts_with('#') && !line[1..].starts_with([',', ';', '\t']);
    is_comment || line.starts_with("sep=")
}

/// The delimiter of a table by its first line: the one that yields a column of addresses, or an address.
/// A table of one column has none.
fn delimiter(first: &str) -> Option<u8> {
    let by = |test: &dyn Fn(&[String]) -> bool| {
        DELIMITERS
            .into_iter()
            .find(|&it| first.as_bytes().contains(&it) && test(&split(first, Some(it))))
    };
    by(&|cells| cells.len() > 1 && Columns::named(cells).is_some())
        .or_else(|| by(&|cells| cells.len() > 1 && cells.iter().any(|it| is_address(it))))
        .or_else(|| {
            DELIMITERS
                .into_iter()
                .filter(|it| first.as_bytes().contains(it))
                .max_by_key(|&it| split(first, Some(it)).len())
        })
}

/// Where a table has what.
struct Columns {
    url: usize,
    name: Option<usize>,
    transport: Option<usize>,
    /// The other columns, and what they are called.
    extra: Vec<usize>,
    names: Vec<String>,
    width: usize,
}

impl Columns {
    /// By the names in a header.
    fn named(header: &[String]) -> Option<Self> {
        let plain: Vec<String> = header
            .iter()
            .map(|name| name.trim().to_ascii_lowercase().replace([' ', '-'], "_"))
            .collect();
        let find = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| plain.iter().position(|it| it == name))
        };
        let url = find(&URL)?;
        Some(Self::new(
            url,
            find(&NAME),
            find(&TRANSPORT),
            header.iter().map(|name| name.trim().to_owned()).collect(),
        ))
    }

    /// By the cells of a first row, where there is no header.
    fn guessed(row: &[String]) -> Option<Self> {
        let url = row.iter().position(|cell| is_address(cell))?;
        let transport = row.iter().position(|cell| transport(cell).is_some());
        let name = (0..row.len()).find(|&at| at != url && Some(at) != transport);
        Some(Self::new(
            url,
            name,
            transport,
            vec![String::new(); row.len()],
        ))
    }

    fn new(
        url: usize,
        name: Option<usize>,
        transport: Option<usize>,
        mut header: Vec<String>,
    ) -> Self {
        let width = header.len();
        // Spreadsheets leave columns without a name behind the last one.
        let extra: Vec<usize> = (0..width)
            .filter(|&at| at != url && Some(at) != name && Some(at) != transport)
            .collect();
        let names = extra
            .iter()
            .map(|&at| match std::mem::take(&mut header[at]) {
                name if name.is_empty() => format!("column_{}", at + 1),
                name => name,
            })
            .collect();
        Self {
            url,
            name,
            transport,
            extra,
            names,
            width,
        }
    }

    /// A row's listing; `None` where it ends before its address.
    fn listing(&self, line: u64, cells: &[String]) -> Option<Listing> {
        let cell = |at: usize| cells.get(at).map_or("", String::as_str);
        let mut url = cells.get(self.url)?.clone();
        let surplus = cells.get(self.width..).unwrap_or_default();
        if self.url + 1 == self.width && is_address(&url) {
            // What follows the last column can only be the rest of an address with commas in it.
            let end = surplus
                .iter()
                .rposition(|it| !it.trim().is_empty())
                .map_or(0, |last| last + 1);
            for part in &surplus[..end] {
                url.push(',');
                url.push_str(part);
            }
        }
        Some(Listing {
            line,
            name: self.name.map_or("", cell).trim().to_owned(),
            url,
            transport: self.transport.map(cell).and_then(transport),
            extra: self.extra.iter().map(|&at| cell(at).to_owned()).collect(),
            ..Listing::default()
        })
    }
}
