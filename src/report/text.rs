//! A summary as text in columns, for a terminal. Colour is ours alone: what a server said is stripped before.

use std::fmt::Write as _;

use super::grid::{Column, Grid, grid};
use super::{WIDTH, bounds, caveats, headline, interval, percent};
use crate::outcome::{Outcome, Verdict};
use crate::tally::{Summary, Table, TableName, grouped};
use crate::wrap::{TOGETHER, wrap};

/// Wider than this nobody reads a line.
const WIDEST: usize = 200;
/// Between two columns.
const GAP: &str = "  ";
/// The longest bar, in columns.
const BAR: usize = 20;
/// A bar shorter than this says nothing.
const SHORTEST_BAR: usize = 8;
/// Explanations are cut where they have at least this much room, and left out where they have less.
const EXPLANATION: usize = 40;
/// A key is not cut below this.
const NARROWEST: usize = 12;

/// The summary that a scan ends with: the headline, the outcomes, the JSON-RPC errors, the verdicts, and what was
/// not measured. It is laid out in `width` columns, at least 80.
#[must_use]
pub fn text(summary: &Summary, width: usize, colour: bool) -> String {
    let width = width.clamp(WIDTH, WIDEST);
    let paint = Paint(colour);
    let mut out = paint.bold(&wrap(&headline(summary), width, "")) + "\n";
    for said in caveats(summary) {
        let _ = writeln!(out, "{}", wrap(&said, width, ""));
    }
    if let Some(found) = summary.table(TableName::Outcomes) {
        out.push('\n');
        out.push_str(&table(found, width, colour));
    }
    if let Some(found) = summary.table(TableName::JsonrpcErrors) {
        out.push('\n');
        out.push_str(&counted(found, width, &paint));
    }
    if let Some(found) = summary.table(TableName::Verdicts) {
        let _ = writeln!(out, "\n{}", wrap(&verdicts(found), width, ""));
    }
    // What not every run has, and what is not measured, which the outcomes have in a line.
    for name in [
        TableName::Estimates,
        TableName::NotMeasured,
        TableName::Disagreement,
        TableName::Control,
    ] {
        if let Some(found) = summary.table(name).filter(|it| !it.lines.is_empty()) {
            out.push('\n');
            out.push_str(&counted(found, width, &paint));
        }
    }
    out
}

/// The verdicts in a line.
fn verdicts(table: &Table) -> String {
    let said: Vec<String> = table
        .lines
        .iter()
        .map(|line| {
            let share = line.share.as_ref().map_or_else(String::new, |it| {
                format!(" ({} {})", percent(it.fraction), interval(it))
            });
            let said = format!("{} {}{share}", line.key.join("/"), grouped(line.count));
            said.replace(' ', &TOGETHER.to_string())
        })
        .collect();
    format!("Verdicts: {}.", said.join(", "))
}

/// One table under its heading, in `width` columns, with what it leaves out.
pub(super) fn table(table: &Table, width: usize, colour: bool) -> String {
    let mut out = counted(table, width, &Paint(colour));
    if let Some(left_out) = &table.not_measured {
        let _ = writeln!(out, "{}", wrap(&bounds(left_out), width, ""));
    }
    out
}

/// One table under its heading.
fn counted(table: &Table, width: usize, paint: &Paint) -> String {
    let mut out = paint.bold(&wrap(&table.title, width, "")) + "\n";
    let _ = writeln!(out, "{}", wrap(&format!("({})", table.basis()), width, ""));
    if table.lines.is_empty() {
        out.push_str("none\n");
    } else {
        out.push_str(&cells(table, width, paint));
    }
    out
}

fn cells(table: &Table, width: usize, paint: &Paint) -> String {
    let mut grid = grid(table);
    // Outcomes that did not occur only lengthen a table on a terminal.
    let shown: Vec<usize> = (0..grid.rows.len())
        .filter(|&at| table.name != TableName::Outcomes || table.lines[at].count > 0)
        .collect();
    let (heading, explanations) = take_explanations(&mut grid);
    let mut widths = widths(&grid);
    fit(&grid.columns, &mut widths, width);
    let used: usize = widths.iter().sum::<usize>() + GAP.len() * widths.len();
    let room = width.saturating_sub(used);
    let longest = shown
        .iter()
        .map(|&at| explanations[at].chars().count())
        .max()
        .unwrap_or_default();
    let place = Place::of(table.name, longest, room);
    if place == Place::Beside {
        grid.columns.push(Column {
            heading,
            right: false,
        });
        widths.push(longest.min(room));
    }
    let bar = room.min(BAR);
    let has_bars = place != Place::Beside && !table.spread && bar >= SHORTEST_BAR;
    let mut out = String::new();
    let headings: Vec<&str> = grid.columns.iter().map(|it| it.heading.as_str()).collect();
    push_line(&mut out, &grid.columns, &widths, &headings, |_, it| it);
    for at in shown {
        let mut row: Vec<&str> = grid.rows[at].iter().map(String::as_str).collect();
        let explanation = explanations[at].as_str();
        if place == Place::Beside {
            row.push(explanation);
        }
        let bars = match table.lines.get(at).and_then(|it| it.share) {
            Some(share) if has_bars => "#".repeat(length(share.fraction, bar)),
            Some(_) | None => String::new(),
        };
        if !bars.is_empty() {
            row.push(&bars);
        }
        push_line(&mut out, &grid.columns, &widths, &row, |column, cell| {
            if column == 0 { paint.key(cell) } else { cell }
        });
        if place == Place::Below && !explanation.is_empty() {
            out.push_str(&wrap(explanation, width, "    "));
            out.push('\n');
        }
    }
    out
}

/// Where the explanations of a table stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Beside,
    Below,
    Nowhere,
}

impl Place {
    fn of(table: TableName, longest: usize, room: usize) -> Self {
        let is_the_point = matches!(table, TableName::RowsToActOn | TableName::Concentration);
        match longest {
            0 => Self::Nowhere,
            longest if longest <= room => Self::Beside,
            _ if is_the_point => Self::Below,
            _ if room >= EXPLANATION => Self::Beside,
            _ => Self::Nowhere,
        }
    }
}

/// Takes the column of explanations out of a grid; all of them are empty where there is none.
fn take_explanations(grid: &mut Grid) -> (String, Vec<String>) {
    if !grid.explains {
        return (String::new(), vec![String::new(); grid.rows.len()]);
    }
    let heading = grid.columns.pop().map(|it| it.heading).unwrap_or_default();
    let texts = grid
        .rows
        .iter_mut()
        .map(|row| row.pop().unwrap_or_default())
        .collect();
    (heading, texts)
}

fn widths(grid: &Grid) -> Vec<usize> {
    let mut widths: Vec<usize> = grid
        .columns
        .iter()
        .map(|it| it.heading.chars().count())
        .collect();
    for row in &grid.rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    widths
}

/// Narrows the widest keys until the columns fit. Numbers are never cut.
fn fit(columns: &[Column], widths: &mut [usize], width: usize) {
    let gaps = GAP.len() * widths.len().saturating_sub(1);
    loop {
        let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(width);
        let widest = (0..widths.len())
            .filter(|&at| !columns[at].right && widths[at] > NARROWEST)
            .max_by_key(|&at| widths[at]);
        match widest {
            Some(at) if over > 0 => widths[at] = (widths[at] - over.min(widths[at])).max(NARROWEST),
            Some(_) | None => return,
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a fraction of a few columns"
)]
fn length(fraction: f64, longest: usize) -> usize {
    (fraction * longest as f64).round() as usize
}

/// Writes a line of cells, padded and cut to their columns; what has no column is written as it is.
fn push_line(
    out: &mut String,
    columns: &[Column],
    widths: &[usize],
    row: &[&str],
    paint: impl Fn(usize, String) -> String,
) {
    let mut line = String::new();
    for (at, cell) in row.iter().enumerate() {
        if at > 0 {
            line.push_str(GAP);
        }
        let width = widths.get(at).copied().unwrap_or_default();
        let shown = if width > 0 {
            cut(cell, width)
        } else {
            (*cell).to_owned()
        };
        let pad = " ".repeat(width.saturating_sub(shown.chars().count()));
        let right = columns.get(at).is_some_and(|it| it.right);
        if right {
            line.push_str(&pad);
        }
        line.push_str(&paint(at, shown));
        if !right {
            line.push_str(&pad);
        }
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    let kept: String = cell.chars().take(width.saturating_sub(3)).collect();
    kept + "..."
}

/// Colours, or none.
struct Paint(bool);

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    /// The name of an outcome or a verdict in the colour of what it comes to.
    fn key(&self, cell: String) -> String {
        let name = cell.split('/').next().unwrap_or_default();
        let verdict = Verdict::named(name).or_else(|| Outcome::named(name).map(usual));
        match verdict {
            Some(_) if cell.contains('/') => self.with("2", &cell),
            Some(Verdict::Working) => self.with("32", &cell),
            Some(Verdict::Gated) => self.with("33", &cell),
            Some(Verdict::Faulty | Verdict::NotMcp | Verdict::Down) => self.with("31", &cell),
            Some(Verdict::Unmeasured | Verdict::Unprobeable) => self.with("2", &cell),
            None => cell,
        }
    }
}

/// The verdict that an outcome usually comes to.
const fn usual(outcome: Outcome) -> Verdict {
    match outcome {
        Outcome::Success => Verdict::Working,
        Outcome::JsonrpcError | Outcome::ProtocolViolation => Verdict::Faulty,
        Outcome::AuthRequired | Outcome::PaymentRequired | Outcome::Forbidden => Verdict::Gated,
        Outcome::HtmlPage
        | Outcome::NonEnvelope
        | Outcome::InvalidJson
        | Outcome::EmptyBody
        | Outcome::NotFound
        | Outcome::MethodNotAllowed
        | Outcome::Redirect
        | Outcome::HttpError => Verdict::NotMcp,
        Outcome::Timeout
        | Outcome::DnsFailure
        | Outcome::ConnectFailure
        | Outcome::TlsFailure
        | Outcome::ConnectionDropped => Verdict::Down,
        Outcome::RateLimited | Outcome::Unmeasured => Verdict::Unmeasured,
        Outcome::Unprobeable => Verdict::Unprobeable,
    }
}
