//! Which figures a page draws of a summary, and what each says.

use std::fmt::Write as _;

use super::chart::{Bar, Tone, bars, columns, curve, parts};
use super::{bounds, escaped, prose};
use crate::outcome::Verdict;
use crate::report::{interval, percent};
use crate::stats::fraction;
use crate::tally::{Layer, Line, Summary, Table, TableName, grouped};

/// Codes and versions that get a bar each.
const BARS: usize = 8;

/// The verdicts: one bar, and its legend with every number.
pub(super) fn verdicts(summary: &Summary) -> String {
    let Some(table) = summary.table(TableName::Verdicts) else {
        return String::new();
    };
    let lines: Vec<(Verdict, &Line)> = table
        .lines
        .iter()
        .filter_map(|line| Some((Verdict::named(line.key.first()?)?, line)))
        .collect();
    let of_parts: Vec<Bar> = lines
        .iter()
        .map(|(verdict, line)| Bar {
            label: verdict.to_string(),
            count: line.count,
            said: said(line),
            tone: Tone::Of(*verdict),
        })
        .collect();
    let mut out = format!(
        "<section id=\"verdicts\" aria-labelledby=\"verdicts-title\">\n<h2 id=\"verdicts-title\">{}</h2>\n\
         <div class=\"parts\">{}</div>\n<ul class=\"legend\">\n",
        escaped(&table.title),
        parts(&table.title, &of_parts),
    );
    for (verdict, line) in &lines {
        let share = line.share.map_or_else(
            || "in no share".to_owned(),
            |it| format!("{} {}", percent(it.fraction), interval(&it)),
        );
        let _ = writeln!(
            out,
            "<li class=\"{verdict}\"><b>{verdict}</b> <span class=\"count\">{}</span> <span class=\"share\">{share}</span> \
             <span class=\"about\">{}</span></li>",
            grouped(line.count),
            escaped(verdict.about()),
        );
    }
    let _ = writeln!(
        out,
        "</ul>\n<p class=\"basis\">{}; in brackets the 95 % interval. The bar is of all rows.</p>\n</section>",
        escaped(&table.basis())
    );
    out
}

/// Every other figure.
pub(super) fn all(summary: &Summary, sites: Vec<u64>) -> String {
    let mut out = String::from(
        "<section aria-labelledby=\"figures-title\">\n<h2 id=\"figures-title\">Figures</h2>\n<div class=\"figures\">\n",
    );
    let of = |name: TableName| summary.table(name).filter(|it| !it.lines.is_empty());
    if let Some(table) = of(TableName::Funnel) {
        out.push_str(&figure(
            table,
            &bars(&table.title, &funnel(table), table.denominator),
        ));
    }
    for name in [TableName::JsonrpcErrors, TableName::ProtocolVersions] {
        if let Some(table) = of(name) {
            out.push_str(&figure(table, &bars(&table.title, &largest(table), None)));
        }
    }
    if let Some(table) = of(TableName::LatencyHistogram).filter(|it| it.denominator != Some(0)) {
        out.push_str(&figure(table, &columns(&table.title, &histogram(table))));
    }
    out.push_str(&concentration(summary, sites));
    out.push_str("</div>\n</section>\n");
    out
}

fn figure(table: &Table, svg: &str) -> String {
    let open = table
        .not_measured
        .as_ref()
        .filter(|it| it.rows > 0)
        .map(|it| format!(" {}", escaped(&bounds(it))))
        .unwrap_or_default();
    format!(
        "<figure><figcaption>{}</figcaption>\n{svg}<p class=\"basis\">{}.{open} \
         <a href=\"#table-{}\">Table</a></p></figure>\n",
        prose(&table.title),
        escaped(&table.basis()),
        table.name
    )
}

/// A count, and its share where it is one.
fn said(line: &Line) -> String {
    match &line.share {
        Some(share) => format!("{} ({})", grouped(line.count), percent(share.fraction)),
        None => grouped(line.count),
    }
}

fn funnel(table: &Table) -> Vec<Bar> {
    let line = |line: &Line| {
        let name = line.key.first().map_or("", String::as_str);
        let label = match Layer::named(name) {
            Some(Layer::Http) => "http: answers over HTTP",
            Some(Layer::Secured) => "tls: a TLS session, where wanted",
            Some(Layer::Resolved) => "resolved: the name has a public address",
            Some(Layer::Connected) => "connected",
            Some(Layer::Json) => "json: the answer is JSON",
            Some(Layer::Envelope) => "envelope: it is a JSON-RPC message",
            Some(Layer::Mcp) => "mcp: it answers as an MCP server",
            Some(Layer::Open) => "open: to anyone",
            Some(Layer::Asked) | None => name,
        };
        Bar {
            label: label.to_owned(),
            count: line.count,
            said: said(line),
            tone: if name == Layer::Open.name() {
                Tone::Of(Verdict::Working)
            } else {
                Tone::Mark
            },
        }
    };
    table.lines.iter().map(line).collect()
}

/// The first lines, and all that remain as one.
fn largest(table: &Table) -> Vec<Bar> {
    let keep = if table.lines.len() > BARS {
        BARS - 1
    } else {
        BARS
    };
    let mut bars: Vec<Bar> = table
        .lines
        .iter()
        .take(keep)
        .map(|line| {
            let key = line.key.join(" ");
            Bar {
                label: if line.about.is_empty() {
                    key
                } else {
                    format!("{key} {}", line.about)
                },
                count: line.count,
                said: said(line),
                tone: Tone::Mark,
            }
        })
        .collect();
    let rest = &table.lines[bars.len()..];
    if !rest.is_empty() {
        let count = rest.iter().map(|it| it.count).sum();
        bars.push(Bar {
            label: format!("{} others", rest.len()),
            count,
            said: grouped(count),
            tone: Tone::Quiet,
        });
    }
    bars
}

fn histogram(table: &Table) -> Vec<Bar> {
    // What nothing took as long as needs no room.
    let last = table.lines.iter().rposition(|it| it.count > 0).unwrap_or(0);
    table.lines[..=last]
        .iter()
        .map(|line| {
            let key = line.key.first().map_or("", String::as_str);
            let label = match key.parse::<u64>() {
                Ok(ms) if ms >= 1000 => format!("<{} s", ms / 1000),
                Ok(ms) => format!("<{ms} ms"),
                Err(_) => "more".to_owned(),
            };
            Bar {
                label,
                count: line.count,
                said: grouped(line.count),
                tone: Tone::Mark,
            }
        })
        .collect()
}

/// How much of the census a few sites are.
fn concentration(summary: &Summary, mut counts: Vec<u64>) -> String {
    /// Enough for a smooth line, whatever the number of sites.
    const POINTS: usize = 200;
    let (Some(table), false) = (summary.table(TableName::Concentration), counts.is_empty()) else {
        return String::new();
    };
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let rows: u64 = counts.iter().sum();
    let mut points = vec![(0.0, 0.0)];
    let mut passed = 0;
    let step = counts.len().div_ceil(POINTS);
    let mut half = counts.len();
    for (at, size) in counts.iter().enumerate() {
        passed += size;
        if passed * 2 >= rows {
            half = half.min(at + 1);
        }
        let is_shown = at < 20 || (at + 1) % step == 0 || at + 1 == counts.len();
        if is_shown {
            let share = |part: u64, whole: u64| 100.0 * fraction(part, whole);
            points.push((
                share(at as u64 + 1, counts.len() as u64),
                share(passed, rows),
            ));
        }
    }
    let said = format!(
        "{} of {} sites have half of the {} measured rows that have a site; the largest alone has {}",
        grouped(half as u64),
        grouped(counts.len() as u64),
        grouped(rows),
        percent(fraction(counts[0], rows)),
    );
    let svg = curve(
        "Concentration",
        &said,
        &points,
        "share of sites, largest first",
    );
    let without: Vec<String> = table
        .lines
        .iter()
        .filter(|line| line.key.first().is_some_and(|it| it.contains("site")))
        .filter_map(|line| {
            let share = line.share.as_ref()?;
            Some(format!(
                "{} without {}",
                percent(share.fraction),
                line.key[0]
            ))
        })
        .collect();
    format!(
        "<figure><figcaption>Share of measured rows, by share of sites</figcaption>\n{svg}<p class=\"basis\">{}. The \
         share that works is {}. <a href=\"#table-{}\">Table</a></p></figure>\n",
        escaped(&said),
        escaped(&without.join(", ")),
        table.name
    )
}
