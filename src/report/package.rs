//! `datapackage.json` (Frictionless Data Package 1): what the columns of a run's CSV files are, from the types that
//! write them, so that a program can load them without guessing.

use serde_json::{Value, json};

use super::checks;
use super::csv::COLUMNS;
use crate::outcome::Verdict;
use crate::row::{Kind, Row};
use crate::tally::{Summary, TableName};

/// The columns of `findings.csv` and what they hold.
pub const FINDINGS: [(&str, &str); 6] = [
    ("name", "The name the list gives."),
    ("url", "The address as listed, secrets taken out."),
    ("check", "What was checked."),
    (
        "level",
        "How binding the check is: `note` for what no rule demands.",
    ),
    ("status", "How it came out."),
    ("detail", "The particulars, where the check has any."),
];

/// What the columns of `summary.csv` hold.
const SUMMARY: [&str; COLUMNS.len()] = [
    "The table.",
    "What is counted; its parts are joined by `/`.",
    "How many; in tables of timings, milliseconds.",
    "The count as a fraction of the denominator.",
    "The lower end of its 95 % interval.",
    "The upper end of its 95 % interval.",
    "What the share is of.",
];

/// The package of a run whose results have a column for each of these vantages, and whose list has these further
/// columns, named as they stand in `results.csv`. `compliance` says whether the checks of the specification are told.
#[must_use]
pub fn data_package(
    summary: &Summary,
    vantages: &[String],
    further: &[String],
    compliance: bool,
) -> String {
    let facts = &summary.facts;
    let mut results: Vec<Value> = Row::COLUMNS
        .iter()
        .zip(Row::KINDS)
        .map(|((name, about), kind)| field(name, about.trim(), *kind))
        .collect();
    results.extend(vantages.iter().map(|name| {
        let about = "The verdict from this vantage; empty where it was not asked.";
        let words = || Verdict::ALL.iter().map(|it| it.name()).collect();
        field(name, about, Kind::Word(words))
    }));
    results.extend(further.iter().map(|name| {
        let about = "A column of the list's own.";
        field(name, about, Kind::Text)
    }));
    let findings: Vec<Value> = FINDINGS
        .iter()
        .map(|(name, about)| field(name, about, Kind::Text))
        .collect();
    let counts: Vec<Value> = COLUMNS
        .iter()
        .zip(SUMMARY)
        .map(|(name, about)| {
            let kind = match *name {
                "table" => Kind::Word(|| TableName::ALL.iter().map(|it| it.name()).collect()),
                "key" => Kind::Text,
                "count" | "denominator" => Kind::Integer,
                _ => Kind::Number,
            };
            field(name, about, kind)
        })
        .collect();
    let mut resources = vec![
        resource("results", "One row an input row: the census.", &results),
        resource("findings", "One row a finding.", &findings),
        resource(
            "summary",
            "Every table of the report, a line a count.",
            &counts,
        ),
    ];
    if compliance {
        for (name, about, columns) in [
            (
                "checks",
                "What the checks of the specification come to, a line a check.",
                &checks::BY_CHECK[..],
            ),
            (
                "servers",
                "The same, a line a server.",
                &checks::BY_SERVER[..],
            ),
            (
                "readiness",
                "How many servers are how far on the way to 2026-07-28.",
                &checks::BY_READINESS[..],
            ),
        ] {
            let fields: Vec<Value> = columns
                .iter()
                .map(|(name, about, kind)| field(name, about, *kind))
                .collect();
            resources.push(resource(name, about, &fields));
        }
    }
    let package = json!({
        "profile": "tabular-data-package",
        "name": "mcp-census-run",
        "title": "A census of MCP servers",
        "description": super::caveats(summary).join(" "),
        "created": facts.started_at,
        "sources": facts.lists.iter().map(|it| json!({ "title": it })).collect::<Vec<_>>(),
        "resources": resources,
    });
    // Strings, numbers and lists of them: there is nothing that JSON cannot say.
    serde_json::to_string_pretty(&package).map_or_else(|_| String::new(), |text| text + "\n")
}

fn resource(name: &str, about: &str, fields: &[Value]) -> Value {
    json!({
        "profile": "tabular-data-resource",
        "name": name,
        "path": format!("{name}.csv"),
        "description": about,
        "format": "csv",
        "mediatype": "text/csv",
        "encoding": "utf-8",
        "dialect": { "delimiter": ",", "quoteChar": "\"", "doubleQuote": true, "header": true },
        "schema": { "fields": fields, "missingValues": [""] },
    })
}

fn field(name: &str, about: &str, kind: Kind) -> Value {
    let mut field = json!({ "name": name, "type": "string", "description": about });
    match kind {
        // The only time there is; its fractions of a second vary in length.
        Kind::Text if name == "started_at" => {
            field["type"] = "datetime".into();
            field["format"] = "any".into();
        }
        Kind::Text => {}
        Kind::Integer => field["type"] = "integer".into(),
        Kind::Number => field["type"] = "number".into(),
        Kind::Boolean => field["type"] = "boolean".into(),
        Kind::Word(words) => field["constraints"] = json!({ "enum": words() }),
    }
    field
}
