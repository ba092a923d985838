//! Lines -> the rows of a table: RFC 4180, and what spreadsheets make of it. It is done here and not by the
//! `csv` crate, which would read on to the end of the file, in one row, after a quote that is never closed.
//! What the cells mean is left to `table`.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use super::input::{LONGEST, Line, Lines};

/// The cells of one line.
pub(super) fn split(line: &str, delimiter: Option<u8>) -> Vec<String> {
    let mut row = Row::new(delimiter);
    row.push(line.as_bytes());
    row.cells()
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
pub(super) enum Record {
    Cells(u64, Vec<String>),
    /// From this line on, longer than any row.
    TooLong(u64),
    /// A quote is opened in this line and never closed.
    Unclosed(u64),
}

/// The rows of a table.
pub(super) struct Records<R> {
    lines: Lines<R>,
    /// Lines to be read once more: an unclosed quote had taken them in.
    again: VecDeque<Line>,
    /// What cells are separated by, once it is known; a table of one column has nothing.
    pub(super) delimiter: Option<u8>,
}

impl<R: BufRead> Records<R> {
    pub(super) const fn new(lines: Lines<R>) -> Self {
        Self {
            lines,
            again: VecDeque::new(),
            delimiter: None,
        }
    }

    /// The number of the last line that was read.
    pub(super) const fn number(&self) -> u64 {
        self.lines.number()
    }

    /// Puts a line back.
    pub(super) fn put_back(&mut self, line: Line) {
        self.again.push_front(line);
    }

    /// The next line, by itself.
    pub(super) fn line(&mut self) -> io::Result<Option<Line>> {
        match self.again.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.lines.line(),
        }
    }

    /// The next row that is not blank; `None` at the end.
    pub(super) fn record(&mut self) -> io::Result<Option<Record>> {
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
    use super::super::input::Input;
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
