//! What the instrument was, what of it was tried twice, and what its vantage points disagree on, as tables.

use std::collections::BTreeMap;

use super::tables::{OTHERS, ROWS, cut, largest};
use super::{NotMeasured, RunFacts, Table, TableName, Tally, more};
use crate::outcome::Verdict;
use crate::row::Row;

/// Patterns of verdicts that get a line each.
const PATTERNS: usize = 50;
/// Values of a setting that get a line each; sixteen shards have sixteen seeds.
const VALUES: usize = 3;

/// Rows that were asked again at the end of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Again {
    rows: u64,
    /// By what was compared: those that were measured again, and those that agree.
    aspects: BTreeMap<&'static str, (u64, u64)>,
    /// Verdicts that are no longer the same.
    moved: BTreeMap<(Verdict, Verdict), u64>,
}

/// What is compared of a row that was asked again.
const ASPECTS: [&str; 4] = ["verdict", "outcome", "protocol_version", "server_name"];

impl Tally {
    /// Counts what the vantage points say of a row.
    pub fn add_said(&mut self, verdicts: &[Verdict]) {
        if !verdicts.is_empty() {
            more(&mut self.said, verdicts.to_vec());
        }
    }

    /// Counts a row that was asked again at the end.
    pub fn add_again(&mut self, first: &Row, again: &Row) {
        self.again.rows += 1;
        if !again.verdict.is_measured() {
            return;
        }
        let agrees = [
            first.verdict == again.verdict,
            first.outcome == again.outcome,
            first.protocol_version == again.protocol_version,
            first.server_name == again.server_name,
        ];
        for (aspect, agrees) in ASPECTS.into_iter().zip(agrees) {
            let (of, same) = self.again.aspects.entry(aspect).or_default();
            *of += 1;
            *same += u64::from(agrees);
        }
        if first.verdict != again.verdict {
            more(&mut self.again.moved, (first.verdict, again.verdict));
        }
    }

    pub(super) fn instrument(facts: &RunFacts) -> Table {
        let columns = ["setting", "value", "runs"];
        let mut table = Table::new(TableName::Instrument, "runs", &columns);
        let mut at = 0;
        while let Some((setting, _, _)) = facts.instrument.get(at) {
            let lines: Vec<_> = facts.instrument[at..]
                .iter()
                .take_while(|(it, _, _)| it == setting)
                .collect();
            at += lines.len();
            if lines.len() > VALUES {
                let runs = lines.iter().map(|(_, _, runs)| runs).sum();
                let value = format!("{} values", lines.len());
                table.count(&[setting.name(), &value], setting.about(), runs);
                continue;
            }
            for (_, value, runs) in lines {
                let value = if value.is_empty() { "none" } else { value };
                table.count(&[setting.name(), value], setting.about(), *runs);
            }
        }
        table
    }

    /// Whether any row was asked again.
    pub(super) const fn has_control(&self) -> bool {
        self.again.rows > 0
    }

    pub(super) fn control(&self) -> Table {
        let measured = self.again.aspects.get(ASPECTS[0]).map_or(0, |(of, _)| *of);
        let mut table = Table {
            denominator_of: "rows that worked and were measured again",
            denominator: Some(measured),
            ..Table::new(TableName::Control, ROWS, &["aspect", "again", "rows"])
        };
        for aspect in ASPECTS {
            let (of, same) = self.again.aspects.get(aspect).copied().unwrap_or_default();
            table.share(&[aspect, "the same"], "", same, of);
        }
        for ((first, again), count) in largest(&self.again.moved) {
            let change = format!("{first}, then {again}");
            table.share(&[ASPECTS[0], &change], "", count, measured);
        }
        table.count(
            &[ASPECTS[0], "not measured again"],
            "in no share",
            self.again.rows - measured,
        );
        table
    }

    /// What the vantage points say of the rows that at least two of them measured.
    pub(super) fn disagreement(&self, facts: &RunFacts, not_measured: NotMeasured) -> Table {
        let by_several = |it: &&Vec<Verdict>| it.iter().filter(|it| it.is_measured()).count() > 1;
        let told: BTreeMap<&Vec<Verdict>, u64> = self
            .said
            .iter()
            .filter(|(said, _)| by_several(said))
            .map(|(said, count)| (said, *count))
            .collect();
        let of = told.values().sum();
        let mut table = Table {
            denominator_of: "rows that several vantages measured",
            denominator: Some(of),
            not_measured: Some(not_measured),
            ..Table::new(TableName::Disagreement, ROWS, &["vantages", "rows"])
        };
        let agree = told
            .iter()
            .filter(|(said, _)| !crate::vantage::differ(said))
            .map(|(_, count)| count)
            .sum();
        table.share(&["all that measured it agree"], "", agree, of);
        table.share(&["they disagree"], "", of - agree, of);
        let mut differ = largest(&told);
        differ.retain(|(said, _)| crate::vantage::differ(said));
        let (kept, rest) = cut(differ, PATTERNS);
        for (said, count) in kept {
            let pattern: Vec<String> = facts
                .vantages
                .iter()
                .zip(said.iter())
                .map(|(vantage, verdict)| format!("{vantage}: {verdict}"))
                .collect();
            table.share(&[&pattern.join(", ")], "", count, of);
        }
        if let Some((patterns, count)) = rest {
            let about = format!("{patterns} further patterns");
            table.share(&[OTHERS], about, count, of);
        }
        for (at, vantage) in facts.vantages.iter().enumerate() {
            let said = |is: &dyn Fn(Verdict) -> bool| -> u64 {
                let of_vantage = self.said.iter().filter(|(said, _)| is(said[at]));
                of_vantage.map(|(_, count)| count).sum()
            };
            let measured = said(&Verdict::is_measured);
            let working = said(&|it| it == Verdict::Working);
            table.share(
                &[&format!("{vantage} alone: working")],
                "of what it measured",
                working,
                measured,
            );
        }
        table
    }
}
