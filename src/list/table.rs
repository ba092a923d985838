//! Tables, as spreadsheets and scripts write them -> listings. Rows are put together here and not by the
//! `csv` crate, which would read on to the end of the file, in one row, after a quote that is never closed.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use super::input::{Input, LONGEST, Line, Lines};
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
    let Some((line, header)) = records
        .header()
        .map_err(|error| rows.unread(records.lines.number(), error))?
    else {
        return Ok(());
    };
    let columns = match Columns::named(&header) {
        Some(columns) => columns,
        None => match Columns::guessed(&header) {
            Some(columns) => {
                let row = columns.listing(line, &header).expect("it has an address");
                rows.listing(row);
                columns
            }
            None => {
                return Err(ListError::NoUrlColumn {
                    name: rows.list(),
                    line,
                    found: header,
                });
            }
        },
    };
    rows.contents.extra_columns.clone_from(&columns.names);
    while let Some(record) = records
        .record()
        .map_err(|error| rows.unread(records.lines.number(), error))?
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
            Record::Unclosed(line) => rows.bad(
                line,
                "a quote is opened here and never closed; close it, or double it if it is meant as a quote",
            ),
        }
    }
    Ok(())
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

fn split(line: &str, delimiter: Option<u8>) -> Vec<String> {
    let mut row = Row::new(delimiter);
    row.push(line.as_bytes());
    row.cells()
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

/// A row as it is put together from lines: RFC 4180, and what spreadsheets make of it.
struct Row {
    delimiter: Option<u8>,
    cells: Vec<Vec<u8>>,
    state: Cell,
}

/// Where in a cell a row is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Start,
    Bare,
    Quoted,
    /// After a quote in a quoted cell: its end, or half of a doubled one.
    Quote,
}

impl Row {
    fn new(delimiter: Option<u8>) -> Self {
        Self {
            delimiter,
            cells: vec![Vec::new()],
            state: Cell::Start,
        }
    }

    /// Takes a line. The row ends with it, unless a quoted cell does not.
    fn push(&mut self, line: &[u8]) {
        for &byte in line {
            let cell = self.cells.last_mut().expect("a row starts with a cell");
            match (self.state, byte) {
                (Cell::Start, b'"') => self.state = Cell::Quoted,
                (Cell::Quoted, b'"') => self.state = Cell::Quote,
                (Cell::Quote, b'"') => {
                    cell.push(b'"');
                    self.state = Cell::Quoted;
                }
                (Cell::Quoted, _) => cell.push(byte),
                (Cell::Start | Cell::Bare | Cell::Quote, _) if Some(byte) == self.delimiter => {
                    self.cells.push(Vec::new());
                    self.state = Cell::Start;
                }
                (Cell::Start | Cell::Bare | Cell::Quote, _) => {
                    cell.push(byte);
                    self.state = Cell::Bare;
                }
            }
        }
        if self.state == Cell::Quoted {
            self.cells
                .last_mut()
                .expect("a row starts with a cell")
                .push(b'\n');
        }
    }

    fn is_open(&self) -> bool {
        self.state == Cell::Quoted
    }

    fn cells(self) -> Vec<String> {
        self.cells
            .iter()
            .map(|cell| String::from_utf8_lossy(cell).into_owned())
            .collect()
    }
}

/// What stands in a table.
enum Record {
    Cells(u64, Vec<String>),
    /// From this line on, longer than any row.
    TooLong(u64),
    /// A quote is opened in this line and never closed.
    Unclosed(u64),
}

/// The rows of a table.
struct Records<R> {
    lines: Lines<R>,
    /// Lines to be read once more: an unclosed quote had taken them in.
    again: VecDeque<Line>,
    delimiter: Option<u8>,
}

impl<R: BufRead> Records<R> {
    const fn new(lines: Lines<R>) -> Self {
        Self {
            lines,
            again: VecDeque::new(),
            delimiter: None,
        }
    }

    fn line(&mut self) -> io::Result<Option<Line>> {
        match self.again.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.lines.line(),
        }
    }

    /// The first row, after which the delimiter is known.
    fn header(&mut self) -> io::Result<Option<(u64, Vec<String>)>> {
        let mut said = None;
        while let Some(line) = self.line()? {
            if let Some(text) = line.text() {
                if is_preface(&text) || text.trim().is_empty() {
                    said = text
                        .strip_prefix("sep=")
                        .and_then(|it| it.bytes().next())
                        .or(said);
                    continue;
                }
                self.delimiter = said.or_else(|| delimiter(&text));
                self.again.push_front(line);
            }
            return Ok(match self.record()? {
                Some(Record::Cells(line, cells)) => Some((line, cells)),
                Some(Record::TooLong(line) | Record::Unclosed(line)) => Some((line, Vec::new())),
                None => None,
            });
        }
        Ok(None)
    }

    /// The next row that is not blank; `None` at the end.
    fn record(&mut self) -> io::Result<Option<Record>> {
        loop {
            let Some(first) = self.line()? else {
                return Ok(None);
            };
            let number = first.number;
            let mut row = Row::new(self.delimiter);
            match &first.bytes {
                Some(bytes) => row.push(bytes),
                None => return Ok(Some(Record::TooLong(number))),
            }
            if row.is_open() && !self.complete(&mut row)? {
                return Ok(Some(Record::Unclosed(number)));
            }
            let cells = row.cells();
            if cells.iter().any(|cell| !cell.trim().is_empty()) {
                return Ok(Some(Record::Cells(number, cells)));
            }
        }
    }

    /// Takes in the lines over which a quoted cell goes on. Where it does not end, they are put back:
    /// one forgotten quote costs one row.
    fn complete(&mut self, row: &mut Row) -> io::Result<bool> {
        let mut taken = VecDeque::new();
        let mut size = 0;
        while size <= LONGEST
            && let Some(line) = self.line()?
        {
            let bytes = line.bytes.as_deref();
            size = bytes.map_or(usize::MAX, |bytes| size + bytes.len() + 1);
            row.push(bytes.unwrap_or_default());
            taken.push_back(line);
            if !row.is_open() && size <= LONGEST {
                return Ok(true);
            }
        }
        taken.append(&mut self.again);
        self.again = taken;
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn rows_are_those_of_the_csv_crate(
            cells in proptest::collection::vec(
                proptest::collection::vec("[a\", \n;]{0,6}", 1..4), 1..5)
        ) {
            let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
            for row in &cells {
                writer.write_record(row).unwrap();
            }
            let text = writer.into_inner().unwrap();
            let mut records = Records::new(Input::open(text.as_slice()).unwrap().lines());
            records.delimiter = Some(b',');
            let mut got = Vec::new();
            while let Some(Record::Cells(_, row)) = records.record().unwrap() {
                got.push(row);
            }
            let blank = |row: &Vec<String>| row.iter().all(|cell| cell.trim().is_empty());
            let want: Vec<_> = cells.into_iter().filter(|row| !blank(row)).collect();
            proptest::prop_assert_eq!(got, want);
        }

        #[test]
        fn any_text_comes_to_an_end(text in "[a\",\n]{0,80}") {
            let lines = text.lines().filter(|line| !line.replace([',', '"'], "").is_empty()).count();
            let mut records = Records::new(Input::open(text.as_bytes()).unwrap().lines());
            records.delimiter = Some(b',');
            let mut count = 0;
            while records.record().unwrap().is_some() {
                count += 1;
            }
            proptest::prop_assert!(count <= lines.max(text.lines().count()));
        }
    }
}
