//! What stands beside the committed reports: every file and column explained, from the names themselves.

use std::fmt::Write as _;

use super::checks;
use super::csv::{COLUMNS, NOT_MEASURED};
use crate::outcome::{Outcome, Verdict};
use crate::row::{INPUT_PREFIX, Kind, Row, VANTAGE_PREFIX};
use crate::tally::{Layer, Mechanism, TableName};

/// The text of `reports/README.md`.
#[must_use]
pub fn readme() -> String {
    let mut out = String::from(
        "# Reports\n\n\
         One directory a run, named by its start in UTC. A run is described by its `manifest.json`; its\n\
         `evidence.ndjson` is what came over the wire, and every other file can be made from it again with\n\
         `mcp-census report`.\n\n\
         A share is always of the rows its table names, and carries its 95 % Wilson interval. Rows that were\n\
         not measured are in no denominator; each table states how many they are and what they leave open.\n",
    );
    section(
        &mut out,
        "Columns of results.csv",
        "column",
        Row::COLUMNS
            .iter()
            .map(|(name, about)| (*name, about.trim())),
    );
    let _ = writeln!(
        out,
        "\nIn a run that was merged from several vantages a column for each follows, `{VANTAGE_PREFIX}` and its name, with\n\
         the verdict from there; then the list's own further columns, each with `{INPUT_PREFIX}` before its name."
    );
    section(
        &mut out,
        "Columns of findings.csv",
        "column",
        super::FINDINGS.into_iter(),
    );
    let plain = |it: &(&'static str, &'static str, Kind)| (it.0, it.1);
    section(
        &mut out,
        "Columns of checks.csv",
        "column",
        checks::BY_CHECK.iter().map(plain),
    );
    section(
        &mut out,
        "Columns of servers.csv",
        "column",
        checks::BY_SERVER.iter().map(plain),
    );
    section(
        &mut out,
        "Columns of readiness.csv",
        "column",
        checks::BY_READINESS.iter().map(plain),
    );
    section(
        &mut out,
        "Outcomes",
        "outcome",
        Outcome::ALL.iter().map(|it| (it.name(), it.about())),
    );
    section(
        &mut out,
        "Verdicts",
        "verdict",
        Verdict::ALL.iter().map(|it| (it.name(), it.about())),
    );
    let _ = writeln!(
        out,
        "\n## summary.csv\n\n\
         The long form, `{}`: a line a count. The parts of a key are joined by `/`;\n\
         `share`, `low` and `high` are fractions of `denominator`, empty where a count is no share. The key\n\
         `{NOT_MEASURED}` closes a table: its `count` is how many rows were not measured, its `low` and `high` the\n\
         share that works if none of them does and if all do. In `estimates` the counts are of the whole list,\n\
         estimated, and the intervals by site; in `instrument` they are of the runs that had a setting.\n\
         `summary.json` has the same with words; `mcp-census report --schema` prints its JSON Schema.",
        COLUMNS.join(",")
    );
    section(
        &mut out,
        "Tables of a summary",
        "table",
        TableName::ALL.iter().map(|it| (it.name(), it.about())),
    );
    section(
        &mut out,
        "Layers of the funnel",
        "layer",
        Layer::ALL.iter().map(|it| (it.name(), it.about())),
    );
    section(
        &mut out,
        "Mechanisms of rows to act on",
        "mechanism",
        Mechanism::ALL.iter().map(|it| (it.name(), it.about())),
    );
    out
}

fn section<'a>(
    out: &mut String,
    title: &str,
    heading: &str,
    lines: impl Iterator<Item = (&'a str, &'a str)>,
) {
    let _ = writeln!(out, "\n## {title}\n\n| {heading} | meaning |\n|---|---|");
    for (name, about) in lines {
        let _ = writeln!(out, "| `{name}` | {} |", about.replace('|', "\\|"));
    }
}
