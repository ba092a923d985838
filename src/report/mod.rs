//! A summary -> text, Markdown, CSV, JSON, HTML. Strings in, strings out: no clock, no terminal, no file.
//! What is counted, and of what, is the tally's affair.

mod change;
mod change_page;
pub mod checks;
mod csv;
mod grid;
mod html;
mod json;
mod junit;
mod markdown;
mod package;
mod readme;
mod sarif;
#[cfg(test)]
mod tests;
mod text;

pub use change::{change_csv, change_json, change_markdown, change_text};
pub use change_page::change_page;
pub use csv::csv_long;
pub use html::Page;
pub(crate) use html::{Curve, Plot, Point, Tone, escaped as html_escaped, still, visible};
pub use json::{SCHEMA, json};
pub use junit::junit;
pub(crate) use markdown::escaped;
pub use markdown::markdown;
pub use package::{FINDINGS, data_package};
pub use readme::readme;
pub use sarif::sarif;
pub use text::text;

use std::fmt::Write as _;

use crate::names::names;
use crate::tally::{NotMeasured, Share, Summary, TableName, grouped, plain};

names! {
    /// A format that a report can be written in.
    pub enum Format {
        /// Plain text in columns.
        Text = "text",
        /// Comma-separated values.
        Csv = "csv",
        /// Markdown.
        Markdown = "md",
        /// JSON.
        Json = "json",
        /// A page for a browser.
        Html = "html",
    }
}

/// How wide a text is laid out where nothing else is known, in columns.
pub const WIDTH: usize = 80;

/// One table of a summary. `None` where the summary has it not.
///
/// As CSV it has a column for each key, unlike the long form of [`csv_long`], which has all tables in one file.
#[must_use]
pub fn one_table(summary: &Summary, name: TableName, format: Format) -> Option<String> {
    let table = summary.table(name)?;
    Some(match format {
        Format::Text => text::table(table, WIDTH, false),
        Format::Csv => csv::table(table),
        Format::Markdown => markdown::table(table),
        Format::Json => json::table(table),
        Format::Html => html::table(table),
    })
}

/// The number a reader came for, in a sentence.
#[must_use]
pub fn headline(summary: &Summary) -> String {
    let rows = grouped(summary.rows);
    match summary.share {
        Some(share) => format!(
            "{} of {} measured rows speak MCP to anyone: {} (95 % interval {} to {}). {rows} rows were listed.",
            grouped(summary.working),
            grouped(share.of),
            percent(share.fraction),
            percent(share.low),
            percent(share.high),
        ),
        None => format!("None of {rows} rows was measured."),
    }
}

/// What has to be known to read the headline: what was asked, by what, of which list, and what limits it.
#[must_use]
pub fn caveats(summary: &Summary) -> Vec<String> {
    let facts = &summary.facts;
    let mut asked = format!(
        "Asked for protocol version {} by {}, reading rules {}",
        plain(&facts.asked_version),
        plain(&facts.tool),
        facts.rules_version
    );
    if let Some(vantage) = &facts.vantage {
        let _ = write!(asked, ", from {}", plain(vantage));
    }
    if let Some(requests) = facts.requests {
        let _ = write!(asked, ", in {} requests", grouped(requests));
    }
    if !facts.lists.is_empty() {
        let lists: Vec<String> = facts.lists.iter().map(|it| plain(it)).collect();
        let _ = write!(asked, "; list: {}", lists.join(", "));
    }
    if let (Some(started), Some(ended)) = (&facts.started_at, &facts.ended_at) {
        let _ = write!(asked, "; {} to {}", plain(started), plain(ended));
    }
    let mut said = vec![asked + "."];
    if let Some(sample) = &facts.sample {
        said.push(format!(
            "A sample: {}. {}",
            plain(sample),
            estimated(summary)
        ));
    }
    if facts.vantages.len() > 1 {
        said.push(
            "Asked from several places: a row works if it does from any, and is down only if it is from all."
                .to_owned(),
        );
    }
    if facts.partial {
        said.push(
            "The list is not whole: the shares hold for what was listed, not for all servers."
                .to_owned(),
        );
    }
    if !facts.complete {
        said.push("The run is not complete: what was not asked counts as not measured.".to_owned());
    }
    said
}

/// What a sample tells of the whole list, in a sentence.
fn estimated(summary: &Summary) -> String {
    let working = summary
        .table(TableName::Estimates)
        .and_then(|it| it.lines.first())
        .and_then(|it| it.share);
    match working {
        Some(share) => format!(
            "Of the whole list an estimated {} speak MCP to anyone (95 % interval {} to {}, by site).",
            percent(share.fraction),
            percent(share.low),
            percent(share.high)
        ),
        None => "It tells nothing of the whole list.".to_owned(),
    }
}

/// What was not measured, and what that leaves open, in a sentence.
#[must_use]
pub fn bounds(not_measured: &NotMeasured) -> String {
    if not_measured.rows == 0 {
        return "Not measured: none.".to_owned();
    }
    format!(
        "Not measured: {} rows; the share that works is {} if none of them does, {} if all do.",
        grouped(not_measured.rows),
        percent(not_measured.working_if_none),
        percent(not_measured.working_if_all),
    )
}

/// A fraction in percent: one decimal, two below one percent.
#[must_use]
pub fn percent(fraction: f64) -> String {
    format!("{} %", hundredth(fraction))
}

/// A share's interval in percent.
fn interval(share: &Share) -> String {
    format!("[{}, {}]", hundredth(share.low), hundredth(share.high))
}

fn hundredth(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent > 0.0 && percent < 0.995 {
        format!("{percent:.2}")
    } else {
        format!("{percent:.1}")
    }
}
