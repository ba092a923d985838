//! A table as people read it: headings and cells, the same for text and Markdown.

use std::collections::BTreeMap;

use super::{interval, percent};
use crate::tally::{Line, Table, TableName, grouped, plain};

/// A column's heading and which side its cells stand on.
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) right: bool,
}

/// Headings and cells. Where a table explains its keys, the explanations are its last column.
pub(super) struct Grid {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) explains: bool,
}

const SHARE: &str = "share";
const INTERVAL: &str = "95 % interval";

/// Lays a table out.
pub(super) fn grid(table: &Table) -> Grid {
    let (count, keys) = table
        .columns
        .split_last()
        .map_or(("count", &[][..]), |(count, keys)| (*count, keys));
    let mut grid = if table.spread {
        spread(table, keys)
    } else {
        plain_grid(table, keys, count)
    };
    grid.explains = table.lines.iter().any(|it| !it.about.is_empty());
    if grid.explains {
        grid.columns.push(Column {
            heading: explanation(table.name).to_owned(),
            right: false,
        });
    } else {
        for row in &mut grid.rows {
            row.pop();
        }
    }
    grid
}

/// What an explanation is called.
const fn explanation(name: TableName) -> &'static str {
    match name {
        TableName::JsonrpcErrors | TableName::JsonrpcErrorMessages => "name",
        TableName::RowsToActOn => "suggestion",
        TableName::Concentration => "which",
        TableName::Outcomes
        | TableName::Verdicts
        | TableName::Funnel
        | TableName::Details
        | TableName::HttpStatuses
        | TableName::ProtocolVersions
        | TableName::EraTransport
        | TableName::Authentication
        | TableName::Latency
        | TableName::LatencyHistogram
        | TableName::Units
        | TableName::Platforms
        | TableName::Findings
        | TableName::Estimates
        | TableName::Disagreement
        | TableName::Control
        | TableName::Instrument
        | TableName::NotMeasured => "meaning",
    }
}

fn column(heading: &str, right: bool) -> Column {
    Column {
        heading: heading.to_owned(),
        right,
    }
}

fn plain_grid(table: &Table, keys: &[&str], count: &str) -> Grid {
    let has_share = table.lines.iter().any(|it| it.share.is_some());
    let mut columns: Vec<Column> = keys.iter().map(|key| column(key, false)).collect();
    columns.push(column(count, true));
    if has_share {
        columns.push(column(SHARE, true));
        columns.push(column(INTERVAL, true));
    }
    let rows = table
        .lines
        .iter()
        .map(|line| {
            let mut row: Vec<String> = line.key.iter().map(|it| plain(it)).collect();
            row.push(grouped(line.count));
            if has_share {
                row.extend(shares(Some(line)));
            }
            row.push(plain(&line.about));
            row
        })
        .collect();
    Grid {
        columns,
        rows,
        explains: false,
    }
}

fn shares(line: Option<&Line>) -> [String; 2] {
    match line.and_then(|it| it.share.as_ref()) {
        Some(share) => [percent(share.fraction), interval(share)],
        None => [String::new(), String::new()],
    }
}

/// The values of the last key become columns, in the order they first appear in.
fn spread(table: &Table, keys: &[&str]) -> Grid {
    let mut measures: Vec<&str> = Vec::new();
    let mut order: Vec<&[String]> = Vec::new();
    let mut cells: BTreeMap<(&[String], &str), &Line> = BTreeMap::new();
    for line in &table.lines {
        let Some((measure, group)) = line.key.split_last() else {
            continue;
        };
        if !measures.contains(&measure.as_str()) {
            measures.push(measure);
        }
        if order.last() != Some(&group) {
            order.push(group);
        }
        cells.insert((group, measure), line);
    }
    let has_share = |measure: &str| {
        cells
            .iter()
            .any(|((_, it), line)| *it == measure && line.share.is_some())
    };
    let mut columns: Vec<Column> = keys[..keys.len().saturating_sub(1)]
        .iter()
        .map(|key| column(key, false))
        .collect();
    for measure in &measures {
        columns.push(column(measure, true));
        if has_share(measure) {
            columns.push(column(SHARE, true));
            columns.push(column(INTERVAL, true));
        }
    }
    let rows = order
        .iter()
        .map(|&group| {
            let mut row: Vec<String> = group.iter().map(|it| plain(it)).collect();
            let mut about = String::new();
            for measure in &measures {
                let line = cells.get(&(group, *measure)).copied();
                row.push(line.map_or_else(String::new, |it| grouped(it.count)));
                if has_share(measure) {
                    row.extend(shares(line));
                }
                if let Some(line) = line {
                    about = plain(&line.about);
                }
            }
            row.push(about);
            row
        })
        .collect();
    Grid {
        columns,
        rows,
        explains: false,
    }
}
