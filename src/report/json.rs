//! A summary as JSON, for programs that want the words as well as the numbers.

use serde::Serialize;

use crate::tally::{Summary, Table};

/// The JSON Schema (2020-12) that every summary keeps to. It is `data/summary.schema.json` in the repository.
pub const SCHEMA: &str = include_str!("../../data/summary.schema.json");

/// The whole summary, its members in the order of [`Summary`]'s fields.
///
/// `facts` is what the run was; `rows`, `measured`, `working`, `share` and `not_measured` are the headline;
/// `tables` is a list of tables, each with `name`, `title`, `unit`, `denominator_of`, `denominator` (null where
/// each line has its own), `columns` (the names of the keys and, last, of the count), `lines` and
/// `not_measured`. A line has `key` (a list), `about` where there is something to say, `count` and `share`, which
/// is null or has `of`, `fraction`, `low` and `high`: fractions of one, six decimals.
#[must_use]
pub fn json(summary: &Summary) -> String {
    written(summary)
}

pub(super) fn table(table: &Table) -> String {
    written(table)
}

fn written<T: Serialize>(value: &T) -> String {
    // Numbers, strings and lists of them: there is nothing that JSON cannot say.
    serde_json::to_string_pretty(value).map_or_else(|_| String::new(), |text| text + "\n")
}
