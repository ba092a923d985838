//! A summary as CSV: all tables in one long file for programs, or one table with a column a key.

use csv::Writer;

use crate::row::inert;
use crate::tally::{NotMeasured, Share, Summary, Table, plain};

/// The columns of the long form.
pub(super) const COLUMNS: [&str; 7] = [
    "table",
    "key",
    "count",
    "share",
    "low",
    "high",
    "denominator",
];

/// The key of the line that says what a table leaves out; its `low` and `high` bound the share that works.
pub(super) const NOT_MEASURED: &str = "not_measured";

/// Every table, a line a count: `table,key,count,share,low,high,denominator`. The parts of a key are joined by `/`.
#[must_use]
pub fn csv_long(summary: &Summary) -> String {
    written(|out| {
        out.write_record(COLUMNS)?;
        for table in &summary.tables {
            let name = table.name.name();
            for line in &table.lines {
                let key = cell(&line.key.join("/"));
                let figures = figures(line.count, line.share.as_ref());
                out.write_record([name, &key].into_iter().chain(as_strs(&figures)))?;
            }
            if let Some(left_out) = &table.not_measured {
                let figures = open(left_out);
                out.write_record([name, NOT_MEASURED].into_iter().chain(as_strs(&figures)))?;
            }
        }
        Ok(())
    })
}

/// One table, a column a key, and what the key means last.
pub(super) fn table(table: &Table) -> String {
    written(|out| {
        let further = COLUMNS[3..].iter().chain(&["about"]);
        out.write_record(table.columns.iter().chain(further))?;
        for line in &table.lines {
            let keys: Vec<String> = line.key.iter().map(|it| cell(it)).collect();
            let figures = figures(line.count, line.share.as_ref());
            out.write_record(keys.iter().chain(&figures).chain([&cell(&line.about)]))?;
        }
        Ok(())
    })
}

fn as_strs(figures: &[String; 5]) -> impl Iterator<Item = &str> {
    figures.iter().map(String::as_str)
}

fn figures(count: u64, share: Option<&Share>) -> [String; 5] {
    match share {
        Some(share) => [
            count.to_string(),
            fraction(share.fraction),
            fraction(share.low),
            fraction(share.high),
            share.of.to_string(),
        ],
        None => [
            count.to_string(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ],
    }
}

fn open(left_out: &NotMeasured) -> [String; 5] {
    [
        left_out.rows.to_string(),
        String::new(),
        fraction(left_out.working_if_none),
        fraction(left_out.working_if_all),
        left_out.of.to_string(),
    ]
}

fn fraction(fraction: f64) -> String {
    format!("{fraction:.6}")
}

fn cell(text: &str) -> String {
    inert(&plain(text))
}

fn written(write: impl FnOnce(&mut Writer<Vec<u8>>) -> csv::Result<()>) -> String {
    let mut out = Writer::from_writer(Vec::new());
    // Neither can fail: the writer is memory, every record of a table has as many fields, and all of them are text.
    let _ = write(&mut out);
    out.into_inner()
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}
