//! Counts -> tables: which lines there are, in which order, and what each share is of.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{
    Gate, LONGEST_MS, Layer, NotMeasured, RunFacts, Share, Summary, Table, TableName, Tally,
};
use crate::finding::Check;
use crate::jsonrpc::code_name;
use crate::mcp;
use crate::outcome::{Outcome, Transport, Unmeasured, Unprobeable, Verdict};
use crate::stats::percentile;

pub(super) const ROWS: &str = "input rows";
const MEASURED: &str = "measured rows";

/// Families of message that get a line each; there can be as many as servers.
const MESSAGES: usize = 100;
/// Versions that get a line each; a server can answer with anything.
const VERSIONS: usize = 30;
/// What stands for everything that gets no line of its own.
pub(super) const OTHERS: &str = "others";
/// What stands for times above the highest bound.
const LONGER: &str = "longer";
/// What stands for a value that is not there.
const NONE: &str = "none";

impl Tally {
    /// Everything a report says of the rows counted so far.
    #[must_use]
    pub fn summary(&self, facts: &RunFacts) -> Summary {
        let all = self.score();
        let unmeasured = self.of_verdict(Verdict::Unmeasured);
        let mut summary = Summary {
            facts: facts.clone(),
            rows: all.rows,
            measured: all.measured,
            working: all.working,
            share: Share::new(all.working, all.measured),
            not_measured: NotMeasured::new(unmeasured, all.measured, all.working),
            tables: Vec::new(),
        };
        for &name in TableName::ALL {
            if self.has(name, facts) {
                let table = self.table(name, facts, &summary);
                summary.tables.push(table);
            }
        }
        summary
    }

    /// Whether there is anything to tell: not every run is a sample, is asked again, or was made from several places.
    fn has(&self, name: TableName, facts: &RunFacts) -> bool {
        match name {
            TableName::Estimates => facts.drawn.is_some(),
            TableName::Disagreement => facts.vantages.len() > 1,
            TableName::Control => self.has_control(),
            TableName::Instrument => !facts.instrument.is_empty(),
            _ => true,
        }
    }

    fn table(&self, name: TableName, facts: &RunFacts, summary: &Summary) -> Table {
        let measured = summary.measured;
        // What was left out is stated under each.
        let of = |denominator_of, denominator, columns: &[&'static str]| Table {
            denominator_of,
            denominator,
            not_measured: Some(summary.not_measured),
            ..Table::new(name, ROWS, columns)
        };
        let of_measured = |columns: &[&'static str]| of(MEASURED, Some(measured), columns);
        let of_rows = |columns: &[&'static str]| of(ROWS, Some(self.rows), columns);
        match name {
            TableName::Outcomes => self.outcomes(of_measured(&["outcome", "rows"]), measured),
            TableName::Verdicts => self.verdicts(of_measured(&["verdict", "rows"]), measured),
            TableName::Funnel => self.funnel(of_measured(&["layer", "rows"]), measured),
            TableName::Details => {
                self.details(of_measured(&["outcome", "detail", "rows"]), measured)
            }
            TableName::JsonrpcErrors => {
                let mut table = of_measured(&["code", "rows"]);
                let mut codes = largest(&self.codes);
                // Among equals the code nearest to zero comes first.
                codes.sort_by_key(|(code, count)| (Reverse(*count), Reverse(**code)));
                for (code, count) in codes {
                    table.share(&[&code.to_string()], code_name(*code), count, measured);
                }
                table
            }
            TableName::JsonrpcErrorMessages => self.messages(
                of_measured(&["http_status", "code", "message_family", "rows"]),
                measured,
            ),
            TableName::HttpStatuses => {
                self.statuses(of_measured(&["http_status", "rows"]), measured)
            }
            TableName::ProtocolVersions => self.versions(
                of("", None, &["protocol_version", "rows"]),
                &facts.asked_version,
            ),
            TableName::EraTransport => self.transports(
                of_measured(&["declared", "observed", "era", "rows"]),
                measured,
            ),
            TableName::Authentication => {
                self.gates(of_measured(&["gate", "kind", "rows"]), measured)
            }
            TableName::Latency => self.latency(Table {
                unit: "input rows, and then milliseconds",
                ..of("", None, &["verdict", "measure", "value"])
            }),
            TableName::LatencyHistogram => self.histogram(of("", None, &["under_ms", "rows"])),
            TableName::Units => self.units(
                Table {
                    unit: "as each line says",
                    ..of("", None, &["unit", "measure", "count"])
                },
                facts,
            ),
            TableName::Concentration => {
                let remain = "the measured rows that remain";
                self.concentration(of(remain, None, &["left_out", "rows"]), facts)
            }
            TableName::Platforms => {
                self.platforms(of("", None, &["operator", "measure", "count"]), facts)
            }
            TableName::Findings => self.findings(of_rows(&["check", "rows"])),
            TableName::RowsToActOn => self.actions(of_rows(&["mechanism", "place", "rows"]), facts),
            TableName::NotMeasured => {
                self.not_measured(of_rows(&["verdict", "outcome", "detail", "rows"]))
            }
            TableName::Estimates => self.estimates(facts.drawn.unwrap_or_default()),
            TableName::Disagreement => self.disagreement(facts, summary.not_measured),
            TableName::Control => self.control(),
            TableName::Instrument => Self::instrument(facts),
        }
    }

    fn of_verdict(&self, verdict: Verdict) -> u64 {
        self.by_verdict
            .iter()
            .filter(|((_, it), _)| *it == verdict)
            .map(|(_, count)| count)
            .sum()
    }

    /// The rows of an outcome whose verdict is a measurement, or is none.
    fn of_outcome(&self, outcome: Outcome, measured: bool) -> u64 {
        self.by_verdict
            .iter()
            .filter(|((it, verdict), _)| *it == outcome && verdict.is_measured() == measured)
            .map(|(_, count)| count)
            .sum()
    }

    /// How the rows of an outcome that are no measurement are called.
    fn unmeasured_key(&self, outcome: Outcome) -> String {
        if is_never_measured(outcome) && self.of_outcome(outcome, true) == 0 {
            outcome.name().to_owned()
        } else {
            apart(outcome.name())
        }
    }

    fn outcomes(&self, mut table: Table, measured: u64) -> Table {
        for &outcome in Outcome::ALL {
            let count = self.of_outcome(outcome, true);
            if count > 0 || !is_never_measured(outcome) {
                table.share(&[outcome.name()], outcome.about(), count, measured);
            }
        }
        for &outcome in Outcome::ALL {
            let count = self.of_outcome(outcome, false);
            if count == 0 && !is_never_measured(outcome) {
                continue;
            }
            let key = self.unmeasured_key(outcome);
            table.count(&[&key], outcome.about(), count);
        }
        table
    }

    fn verdicts(&self, mut table: Table, measured: u64) -> Table {
        for &verdict in Verdict::ALL {
            let count = self.of_verdict(verdict);
            if verdict.is_measured() {
                table.share(&[verdict.name()], verdict.about(), count, measured);
            } else {
                table.count(&[verdict.name()], verdict.about(), count);
            }
        }
        table
    }

    fn funnel(&self, mut table: Table, measured: u64) -> Table {
        for &layer in Layer::ALL {
            let count = self.reached.range(layer..).map(|(_, count)| count).sum();
            table.share(&[layer.name()], layer.about(), count, measured);
        }
        table
    }

    fn details(&self, mut table: Table, measured: u64) -> Table {
        for is_measured in [true, false] {
            for &outcome in Outcome::ALL {
                let of_outcome: BTreeMap<&String, u64> = self
                    .details
                    .iter()
                    .filter(|((it, kind, _), _)| *it == outcome && *kind == is_measured)
                    .map(|((_, _, detail), count)| (detail, *count))
                    .collect();
                for (detail, count) in largest(&of_outcome) {
                    if is_measured {
                        table.share(&[outcome.name(), detail], "", count, measured);
                    } else {
                        let key = self.unmeasured_key(outcome);
                        table.count(&[&key, detail], "", count);
                    }
                }
            }
        }
        table
    }

    fn messages(&self, mut table: Table, measured: u64) -> Table {
        let (kept, rest) = cut(largest(&self.messages), MESSAGES);
        for ((status, code, family), count) in kept {
            let status = status.map_or(NONE.to_owned(), |it| it.to_string());
            let key = [&status, &code.to_string(), family];
            table.share(&key.map(String::as_str), code_name(*code), count, measured);
        }
        if let Some((families, count)) = rest {
            let about = format!("{families} further families");
            table.share(&[OTHERS, OTHERS, OTHERS], about, count, measured);
        }
        table
    }

    fn statuses(&self, mut table: Table, measured: u64) -> Table {
        for (&(is_measured, status), &count) in self.statuses.iter().rev() {
            match (is_measured, status) {
                (true, Some(status)) => table.share(&[&status.to_string()], "", count, measured),
                (true, None) => table.share(&[NONE], "no HTTP answer", count, measured),
                (false, Some(status)) => table.count(&[&apart(&status.to_string())], "", count),
                (false, None) => {}
            }
        }
        // Ascending, the measured ones first, those without an answer last of them.
        table.lines.sort_by_key(|line| {
            let key = line.key[0].as_str();
            (line.share.is_none(), key == NONE, key.to_owned())
        });
        table
    }

    fn versions(&self, mut table: Table, asked: &str) -> Table {
        let total: u64 = self.versions.values().sum();
        table.denominator_of = "measured rows that answered with a version";
        table.denominator = Some(total);
        if !asked.is_empty() {
            table.title = format!("{} (asked for: {asked})", table.title);
        }
        let (kept, rest) = cut(largest(&self.versions), VERSIONS);
        for (version, count) in kept {
            let about = if version == asked {
                "the version asked for"
            } else if mcp::VERSIONS.contains(&version.as_str()) {
                ""
            } else {
                "no revision of the specification"
            };
            table.share(&[version], about, count, total);
        }
        if let Some((versions, count)) = rest {
            table.share(
                &[OTHERS],
                format!("{versions} further versions"),
                count,
                total,
            );
        }
        table
    }

    fn transports(&self, mut table: Table, measured: u64) -> Table {
        let name = |it: &Option<Transport>| it.map_or(NONE, Transport::name);
        for ((declared, observed, era), count) in largest(&self.transports) {
            let about = match (declared, observed) {
                (Some(declared), Some(observed)) if declared != observed => "not as declared",
                (Some(_) | None, _) => "",
            };
            table.share(
                &[name(declared), name(observed), era.name()],
                about,
                count,
                measured,
            );
        }
        table
    }

    fn gates(&self, mut table: Table, measured: u64) -> Table {
        for ((gate, kind), &count) in &self.gates {
            let gate = match gate {
                Gate::Status(status) => status.to_string(),
                Gate::InsteadOf(status) => format!("should_be_{status}"),
            };
            let about = Check::named(kind).map_or("", Check::about);
            table.share(&[&gate, kind], about, count, measured);
        }
        table
    }

    fn latency(&self, mut table: Table) -> Table {
        table.spread = true;
        let mut all = BTreeMap::new();
        let by_verdict = Verdict::ALL
            .iter()
            .filter_map(|verdict| Some((verdict.name(), self.times.get(verdict)?)));
        for (verdict, times) in by_verdict {
            for (&time, &count) in times {
                *all.entry(time).or_default() += count;
            }
            measures(&mut table, verdict, times);
        }
        measures(&mut table, "all", &all);
        table
    }

    fn histogram(&self, mut table: Table) -> Table {
        const UNDER_MS: [u64; 11] = [
            50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, LONGEST_MS,
        ];
        let answered = self
            .times
            .iter()
            .filter(|(verdict, _)| **verdict != Verdict::Down)
            .flat_map(|(_, times)| times);
        let mut counts = [0; UNDER_MS.len() + 1];
        for (time, count) in answered {
            counts[UNDER_MS.partition_point(|under| under <= time)] += count;
        }
        let total: u64 = counts.iter().sum();
        table.denominator_of = "measured rows with an answer";
        table.denominator = Some(total);
        for (at, count) in counts.into_iter().enumerate() {
            let under = UNDER_MS.get(at).map_or(LONGER.to_owned(), u64::to_string);
            table.share(&[&under], "", count, total);
        }
        table
    }

    fn findings(&self, mut table: Table) -> Table {
        for (check, count) in largest(&self.findings) {
            let about = Check::named(check).map_or("", Check::about);
            table.share(&[check], about, count, self.rows);
        }
        table
    }

    fn not_measured(&self, mut table: Table) -> Table {
        for verdict in [Verdict::Unmeasured, Verdict::Unprobeable] {
            let is_this = |outcome: Outcome| {
                (outcome == Outcome::Unprobeable) == (verdict == Verdict::Unprobeable)
            };
            let reasons: BTreeMap<(Outcome, &str), u64> = self
                .details
                .iter()
                .filter(|((outcome, measured, _), _)| !measured && is_this(*outcome))
                .map(|((outcome, _, detail), count)| ((*outcome, detail.as_str()), *count))
                .collect();
            for (&(outcome, detail), count) in largest(&reasons) {
                let about = Unmeasured::named(detail)
                    .filter(|_| outcome == Outcome::Unmeasured)
                    .map(Unmeasured::about)
                    .or_else(|| {
                        Unprobeable::named(detail)
                            .filter(|_| outcome == Outcome::Unprobeable)
                            .map(Unprobeable::about)
                    })
                    .unwrap_or(outcome.about());
                table.share(
                    &[verdict.name(), outcome.name(), detail],
                    about,
                    count,
                    self.rows,
                );
            }
        }
        table
    }
}

/// Outcomes that never are a measurement.
const fn is_never_measured(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Outcome::RateLimited | Outcome::Unprobeable | Outcome::Unmeasured
    )
}

/// How rows without a measurement are called where others of their name have one.
fn apart(name: &str) -> String {
    format!("{name}/{}", Verdict::Unmeasured)
}

/// Largest first, ties by key.
pub(super) fn largest<K: Ord>(counts: &BTreeMap<K, u64>) -> Vec<(&K, u64)> {
    largest_by(counts, |count| *count)
        .into_iter()
        .map(|(key, count)| (key, *count))
        .collect()
}

pub(super) fn largest_by<K: Ord, V>(
    counts: &BTreeMap<K, V>,
    size: impl Fn(&V) -> u64,
) -> Vec<(&K, &V)> {
    let mut ordered: Vec<(&K, &V)> = counts.iter().collect();
    // The sort is stable and the map is in order of keys.
    ordered.sort_by_key(|(_, value)| Reverse(size(value)));
    ordered
}

/// The first `keep`, and of the rest how many there are and how much they come to.
#[expect(clippy::type_complexity, reason = "a list and what is left of it")]
pub(super) fn cut<K>(
    mut counts: Vec<(K, u64)>,
    keep: usize,
) -> (Vec<(K, u64)>, Option<(usize, u64)>) {
    let rest = counts.split_off(keep.min(counts.len()));
    let left = rest.iter().map(|(_, count)| count).sum();
    let rest = (!rest.is_empty()).then_some((rest.len(), left));
    (counts, rest)
}

/// A verdict's line of the latency table.
fn measures(table: &mut Table, verdict: &str, times: &BTreeMap<u64, u64>) {
    table.count(&[verdict, "rows"], "", times.values().sum());
    for (measure, percent) in [("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)] {
        if let Some(time) = percentile(times, percent) {
            table.count(&[verdict, measure], "", time);
        }
    }
}
