//! `history.csv`: a line a run, those that did not take place among them. Lines in, lines out; the file is `sweep`'s.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::due::Missed;
use crate::diff;
use crate::manifest::{Manifest, Start};
use crate::names::names;
use crate::outcome::Verdict;
use crate::row::inert;
use crate::tally::{Share, Summary, TableName};

names! {
    /// What became of a run.
    pub enum Status {
        /// Every endpoint was asked to the end.
        Complete = "complete",
        /// It ended before that; what was not asked is unmeasured.
        Incomplete = "incomplete",
        /// Nothing was asked.
        Failed = "failed",
        /// It did not start.
        Missed = "missed",
    }
}

names! {
    /// Why a run is incomplete, or failed.
    pub enum Reason {
        /// The program was asked to stop, and the run was not taken up again.
        Interrupted = "interrupted",
        /// The program was killed, and the run was not taken up again.
        Killed = "killed",
        /// The window closed.
        WindowClosed = "window_closed",
        /// The instrument's own network failed for too long.
        Instrument = "instrument",
        /// The run could not be written: the disk, most often.
        NotWritten = "not_written",
        /// The instrument failed its self-check.
        SelfCheck = "self_check",
        /// A list, or a file of the scan's parameters, could not be read.
        List = "list",
    }
}

/// Keys of a table of the summary that a line keeps, most frequent first.
const KEYS: usize = 12;

/// A line.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    /// The run directory's name; empty where there is none.
    pub run: String,
    /// Whose run it is.
    pub sweep: String,
    /// The start it is for; empty where somebody asked for it.
    pub scheduled_at: Option<Timestamp>,
    /// The last start it stands for, where it stands for several.
    pub scheduled_until: Option<Timestamp>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What became of it.
    pub status: Option<Status>,
    /// Why; a [`Reason`], or a [`super::due::Absence`].
    pub reason: String,
    /// How it came to start when it did.
    pub start: Option<Start>,
    /// Seconds after its time.
    pub late_s: u64,
    /// How often it was taken up again.
    pub resumed: u32,
    /// Starts it stands for.
    pub starts: u64,
    /// The program and its version.
    pub tool: String,
    /// The reading rules.
    pub rules_version: Option<u32>,
    /// The fingerprint of what was asked: runs of different ones are not compared.
    pub population: String,
    /// The fingerprint of the instrument's settings.
    pub instrument: String,
    /// What differs from the run before: `population`, and settings of the instrument; joined by `;`.
    pub breaks: String,
    /// Input rows.
    pub rows: u64,
    /// Endpoints among them.
    pub endpoints: u64,
    /// Rows by verdict.
    pub working: u64,
    /// Likewise.
    pub gated: u64,
    /// Likewise.
    pub faulty: u64,
    /// Likewise.
    pub not_mcp: u64,
    /// Likewise.
    pub down: u64,
    /// Likewise.
    pub unmeasured: u64,
    /// Likewise.
    pub unprobeable: u64,
    /// The share of the measured rows that work.
    pub share: Option<f64>,
    /// The lower end of its 95 % interval.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// HTTP requests sent.
    pub requests: u64,
    /// Seconds from start to end.
    pub duration_s: u64,
    /// Seconds for which the instrument was in doubt.
    pub doubt_s: u64,
    /// Protocol versions, as `2025-11-25=12 2025-06-18=3`.
    pub versions: String,
    /// Gates, likewise.
    pub auth: String,
    /// JSON-RPC error codes, likewise.
    pub errors: String,
    /// What was alerted, joined by `;`.
    pub alerts: String,
}

impl Line {
    /// The names of the columns, in order.
    #[must_use]
    pub fn header() -> String {
        let text = write(&[Self::default()]);
        text.lines().next().unwrap_or_default().to_owned()
    }

    /// A start that was missed.
    #[must_use]
    pub fn missed(sweep: &str, missed: &Missed) -> Self {
        Self {
            sweep: sweep.to_owned(),
            scheduled_at: Some(missed.first),
            scheduled_until: (missed.last != missed.first).then_some(missed.last),
            status: Some(Status::Missed),
            reason: missed.absence.name().to_owned(),
            starts: missed.starts,
            ..Self::default()
        }
    }

    /// A run that took place, as far as its manifest and its summary tell.
    #[must_use]
    pub fn of_run(run: &str, manifest: &Manifest, summary: &Summary) -> Self {
        let occasion = manifest.occasion.clone().unwrap_or_default();
        let verdicts = verdicts(summary);
        let count = |verdict: Verdict| verdicts.get(verdict.name()).copied().unwrap_or_default();
        let took = manifest
            .ended_at
            .map_or(0, |it| it.duration_since(manifest.started_at).as_secs());
        Self {
            run: run.to_owned(),
            sweep: occasion.sweep,
            scheduled_at: occasion.scheduled_at,
            scheduled_until: None,
            started_at: Some(manifest.started_at),
            ended_at: manifest.ended_at,
            status: Some(if manifest.complete {
                Status::Complete
            } else {
                Status::Incomplete
            }),
            reason: String::new(),
            start: occasion.start,
            late_s: occasion.late_s,
            resumed: occasion.resumed,
            starts: 1,
            tool: manifest.tool.clone(),
            rules_version: Some(manifest.rules_version),
            population: manifest.population.clone(),
            instrument: diff::fingerprint(manifest),
            breaks: String::new(),
            rows: summary.rows,
            endpoints: manifest.endpoints,
            working: count(Verdict::Working),
            gated: count(Verdict::Gated),
            faulty: count(Verdict::Faulty),
            not_mcp: count(Verdict::NotMcp),
            down: count(Verdict::Down),
            unmeasured: count(Verdict::Unmeasured),
            unprobeable: count(Verdict::Unprobeable),
            share: summary.share.map(|it| rounded(it.fraction)),
            low: summary.share.map(|it| rounded(it.low)),
            high: summary.share.map(|it| rounded(it.high)),
            requests: manifest.requests,
            duration_s: u64::try_from(took).unwrap_or_default(),
            doubt_s: manifest.doubt_s,
            versions: counts(summary, TableName::ProtocolVersions),
            auth: counts(summary, TableName::Authentication),
            errors: counts(summary, TableName::JsonrpcErrors),
            alerts: String::new(),
        }
    }

    /// Rows of a verdict.
    #[must_use]
    pub const fn count(&self, verdict: Verdict) -> u64 {
        match verdict {
            Verdict::Working => self.working,
            Verdict::Gated => self.gated,
            Verdict::Faulty => self.faulty,
            Verdict::NotMcp => self.not_mcp,
            Verdict::Down => self.down,
            Verdict::Unmeasured => self.unmeasured,
            Verdict::Unprobeable => self.unprobeable,
        }
    }

    /// Rows that were measured.
    #[must_use]
    pub fn measured(&self) -> u64 {
        Verdict::ALL
            .iter()
            .filter(|it| it.is_measured())
            .map(|it| self.count(*it))
            .sum()
    }

    /// The share of a verdict.
    #[must_use]
    pub fn share_of(&self, verdict: Verdict) -> Option<Share> {
        Share::new(self.count(verdict), self.measured())
    }

    /// Whether something was measured: a point of the series.
    #[must_use]
    pub fn is_measured(&self) -> bool {
        matches!(self.status, Some(Status::Complete | Status::Incomplete)) && self.measured() > 0
    }

    /// The last start it deals with.
    #[must_use]
    pub fn deals_with(&self) -> Option<Timestamp> {
        self.scheduled_until.or(self.scheduled_at)
    }

    /// What differs from the run before in what is counted and in what counts.
    #[must_use]
    pub fn broken_from(&self, before: &Self, settings: &[&str]) -> String {
        let population = (self.population != before.population).then_some("population");
        population
            .into_iter()
            .chain(settings.iter().copied())
            .collect::<Vec<_>>()
            .join(";")
    }
}

fn verdicts(summary: &Summary) -> BTreeMap<&str, u64> {
    let lines = summary
        .table(TableName::Verdicts)
        .map(|it| it.lines.as_slice())
        .unwrap_or_default();
    lines
        .iter()
        .filter_map(|it| Some((it.key.first()?.as_str(), it.count)))
        .collect()
}

/// A table in few words. What a server said takes no part in how they are joined.
fn counts(summary: &Summary, table: TableName) -> String {
    let Some(table) = summary.table(table) else {
        return String::new();
    };
    let mut by_key: BTreeMap<String, u64> = BTreeMap::new();
    for line in &table.lines {
        let key: String = line
            .key
            .first()
            .map(String::as_str)
            .unwrap_or_default()
            .chars()
            .filter(|it| it.is_ascii_alphanumeric() || "-_.".contains(*it))
            .take(40)
            .collect();
        if !key.is_empty() {
            *by_key.entry(key).or_default() += line.count;
        }
    }
    let mut sorted: Vec<(String, u64)> = by_key.into_iter().collect();
    sorted.sort_by(|(a, a_count), (b, b_count)| b_count.cmp(a_count).then(a.cmp(b)));
    let said: Vec<String> = sorted
        .iter()
        .take(KEYS)
        .map(|(key, count)| format!("{key}={count}"))
        .collect();
    said.join(" ")
}

/// The counts of a line's `versions`, `auth` or `errors`.
pub fn read_counts(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.split(' ').filter_map(|pair| {
        let (key, count) = pair.rsplit_once('=')?;
        Some((key, count.parse().ok()?))
    })
}

fn rounded(fraction: f64) -> f64 {
    (fraction * 1e6).round() / 1e6
}

/// Lines as they stand in the file, under a header.
#[must_use]
pub fn write(lines: &[Line]) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    for line in lines {
        let mut line = line.clone();
        // Codes start with a minus, which a spreadsheet takes for a formula's.
        for text in [&mut line.versions, &mut line.auth, &mut line.errors] {
            *text = inert(text);
        }
        // Memory takes every byte.
        let _ = out.serialize(line);
    }
    out.into_inner()
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// Reads the file. Columns are found by their names: those of an older version are fewer, and what a newer one has
/// beside is left alone.
///
/// # Errors
/// When a line is none.
pub fn read(text: &str) -> Result<Vec<Line>, csv::Error> {
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .map(|line: Result<Line, csv::Error>| {
            line.map(|mut line| {
                for text in [&mut line.versions, &mut line.auth, &mut line.errors] {
                    if let Some(bare) = text.strip_prefix('\'') {
                        *text = bare.to_owned();
                    }
                }
                line
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let line = Line {
            run: "20261130T030000Z-all".into(),
            sweep: "all".into(),
            scheduled_at: Some("2026-11-30T03:00:00Z".parse().unwrap()),
            status: Some(Status::Complete),
            start: Some(Start::Late),
            late_s: 70,
            starts: 1,
            working: 6,
            down: 2,
            unmeasured: 1,
            share: Some(0.75),
            errors: "-32601=3 -32000=1".into(),
            versions: "2025-11-25=6".into(),
            ..Line::default()
        };
        let text = write(std::slice::from_ref(&line));
        assert_eq!(read(&text).unwrap(), std::slice::from_ref(&line));
        assert_eq!(line.measured(), 8);
        assert_eq!(
            read_counts(&line.errors).collect::<Vec<_>>(),
            [("-32601", 3), ("-32000", 1)]
        );
        assert!(text.contains("'-32601"), "inert in a spreadsheet: {text}");
    }

    #[test]
    fn a_file_of_another_version_is_read_by_the_names_of_its_columns() {
        let read = read("sweep,starts,of_tomorrow,status\nall,3,x,missed\n").unwrap();
        assert_eq!(
            (read[0].sweep.as_str(), read[0].starts, read[0].status),
            ("all", 3, Some(Status::Missed))
        );
        assert!(super::read("sweep,starts\nall,many\n").is_err());
    }
}
