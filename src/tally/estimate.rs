//! A sample -> what it tells of the whole list: weighted shares, with intervals that take the rows of one site for
//! one draw and not for many. Which rows are asked is `sampling`'s affair.
//!
//! The estimator is the ratio of two weighted totals, its variance that of a sample in two stages by linearization
//! (Cochran, Sampling Techniques, 3rd ed., 6.8 and 11.8): sites are drawn, and rows within them. The interval is
//! Wilson's with the effective size of the sample (Korn and Graubard, Survey Methodology 24 (1998) 193), at most the
//! rows that were measured, and with Student's quantile for as many sites as there are.

use super::{Score, Share, Site, Table, TableName, Tally};
use crate::outcome::{Outcome, Verdict};
use crate::sampling::Unit;
use crate::stats;

/// How the rows of a run were drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drawn {
    /// What was drawn; none where every site was, and only the rows within them drawn.
    pub by: Option<Unit>,
}

/// A site in the arithmetic: what it stands for, and how it fared.
struct Term {
    /// How many rows of the list each of its rows stands for.
    weight: f64,
    /// The rows of the site that were left unasked, as a fraction of it.
    left: f64,
    /// Its rows that were asked.
    asked: f64,
    /// Of these, the measured ones.
    measured: f64,
    /// Of these, the counted ones.
    counted: f64,
}

/// An estimate: how many rows of the whole list, of how many.
struct Estimate {
    count: f64,
    of: f64,
    low: f64,
    high: f64,
}

impl Tally {
    /// The verdicts and outcomes of the whole list, estimated from the sample.
    pub(super) fn estimates(&self, drawn: Drawn) -> Table {
        let unit = "rows of the whole list, estimated";
        let mut table = Table {
            denominator_of: "the rows that a scan of all would measure, estimated; intervals by site",
            ..Table::new(TableName::Estimates, unit, &["of", "is", "rows"])
        };
        for &verdict in Verdict::ALL.iter().filter(|it| it.is_measured()) {
            let key = ["verdict", verdict.name()];
            self.estimate_line(&mut table, key, drawn, |it, _| it == verdict);
        }
        for &outcome in Outcome::ALL {
            let seen = |it: &Site| it.measured.iter().any(|((_, it), _)| *it == outcome);
            if self.sites.values().any(seen) {
                let key = ["outcome", outcome.name()];
                self.estimate_line(&mut table, key, drawn, |_, it| it == outcome);
            }
        }
        table
    }

    fn estimate_line(
        &self,
        table: &mut Table,
        key: [&str; 2],
        drawn: Drawn,
        counts: impl Fn(Verdict, Outcome) -> bool,
    ) {
        let Some(it) = self.estimate(drawn, counts) else {
            return;
        };
        table.count(&key, "", whole(it.count));
        if let Some(line) = table.lines.last_mut() {
            line.share = Some(Share {
                of: whole(it.of),
                fraction: it.count / it.of,
                low: it.low,
                high: it.high,
            });
        }
    }

    /// The ratio of what is counted to what is measured, and its interval. `None` where nothing was measured.
    fn estimate(
        &self,
        drawn: Drawn,
        counts: impl Fn(Verdict, Outcome) -> bool,
    ) -> Option<Estimate> {
        let (drawn_units, units) = match drawn.by {
            Some(Unit::Endpoint) => ratio_of(self.endpoints.values()),
            Some(Unit::Site) | None => ratio_of(self.sites.values().map(|it| &it.score)),
        };
        let first_stage = stats::fraction(units, drawn_units);
        let mut sites: Vec<(&str, &Site)> =
            self.sites.iter().map(|(name, it)| (&**name, it)).collect();
        // The same rows give the same sums, to the last digit.
        sites.sort_unstable_by_key(|(name, _)| *name);
        let terms: Vec<Term> = sites
            .into_iter()
            .map(|(_, it)| (it, u64::from(it.score.asked())))
            .filter(|(_, asked)| *asked > 0)
            .map(|(it, asked)| {
                let of = |is: &dyn Fn(Verdict, Outcome) -> bool| -> u64 {
                    let counted = it.measured.iter().filter(|((v, o), _)| is(*v, *o));
                    counted.map(|(_, count)| u64::from(*count)).sum()
                };
                // Where endpoints were drawn each for itself, a site's rows are not a sample of the site.
                let within = match drawn.by {
                    Some(Unit::Endpoint) => 1.0,
                    Some(Unit::Site) | None => stats::fraction(it.score.rows.into(), asked),
                };
                Term {
                    weight: first_stage * within,
                    left: 1.0 - 1.0 / within,
                    asked: stats::float(asked),
                    measured: stats::float(of(&|_, _| true)),
                    counted: stats::float(of(&counts)),
                }
            })
            .collect();
        let rows: f64 = terms.iter().map(|it| it.measured).sum();
        let of: f64 = terms.iter().map(|it| it.weight * it.measured).sum();
        if of == 0.0 {
            return None;
        }
        let count: f64 = terms.iter().map(|it| it.weight * it.counted).sum();
        let share = count / of;
        let sites = terms.iter().filter(|it| it.measured > 0.0).count();
        let part = stats::fraction(drawn_units, units);
        let measured = effective_size(&terms, share, of, part);
        // Where every site was drawn, the sites are no sample, and only the rows within them vary.
        let size = if drawn_units == units {
            measured.unwrap_or(rows).min(rows)
        } else {
            let size = measured.unwrap_or(stats::float(sites as u64)).min(rows);
            // One site says nothing of the others.
            let penalty = stats::normal_to_student(sites.saturating_sub(1));
            size * penalty * penalty
        };
        let interval = stats::wilson_sized(share, size);
        Some(Estimate {
            count,
            of,
            low: interval.low,
            high: interval.high,
        })
    }
}

/// How many of the units were drawn, and how many there are.
fn ratio_of<'a>(scores: impl Iterator<Item = &'a Score<u32>>) -> (u64, u64) {
    scores.fold((0, 0), |(drawn, all), it| {
        (drawn + u64::from(it.asked() > 0), all + 1)
    })
}

/// The size of a simple sample that would be as sure. `None` where no two sites differ: then how sure the share is
/// cannot be told from how they vary.
fn effective_size(terms: &[Term], share: f64, of: f64, drawn: f64) -> Option<f64> {
    let n = stats::float(terms.len() as u64);
    if n < 2.0 && drawn < 1.0 {
        return None;
    }
    let between: f64 = terms
        .iter()
        .map(|it| (it.weight * (it.counted - share * it.measured)).powi(2))
        .sum::<f64>()
        * n
        / (n - 1.0).max(1.0);
    let within: f64 = terms
        .iter()
        .filter(|it| it.asked > 1.0)
        .map(|it| {
            let sum = it.counted - share * it.measured;
            let squares =
                it.counted * (1.0 - share).powi(2) + (it.measured - it.counted) * share.powi(2);
            let variance = (squares - sum * sum / it.asked) / (it.asked - 1.0);
            // Of a two-stage sample, N/n * M^2 (1 - m/M) s^2 / m; the weight is N/n * M/m.
            drawn * it.weight * it.weight * it.left * variance * it.asked
        })
        .sum();
    let variance = ((1.0 - drawn) * between + within) / (of * of);
    (variance > 0.0 && share > 0.0 && share < 1.0).then(|| share * (1.0 - share) / variance)
}

/// The nearest whole number; no list is so long that it would not fit.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rows of a list: not negative, and fewer than 2^53"
)]
fn whole(count: f64) -> u64 {
    count.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    use crate::outcome::Unmeasured;
    use crate::row::Row;
    use crate::sampling::{Lots, Sampling};
    use crate::tally::sample::{at, row};
    use crate::target::{Suffixes, Target};

    /// A list of 300 sites of one to ten endpoints. Sites work whole or not at all, more or less.
    fn list() -> Vec<Row> {
        let mut rows = Vec::new();
        for site in 0..300_u64 {
            for path in 0..=(site * 7 % 10) {
                let works = (site * 31 % 100 < 60) != (path == 7);
                let (outcome, verdict) = if works {
                    (Outcome::Success, Verdict::Working)
                } else {
                    (Outcome::NotFound, Verdict::NotMcp)
                };
                rows.push(at(
                    &format!("s{site}.test"),
                    &format!("/{path}"),
                    row(outcome, "x", verdict),
                ));
            }
        }
        for row in &mut rows {
            row.site.clone_from(&row.host);
        }
        rows
    }

    /// What a scan of a sample tells of the list.
    fn estimate(rows: &[Row], sampling: Sampling, per_site: Option<usize>, seed: u64) -> Estimate {
        let targets = rows.iter().enumerate().map(|(number, row)| Target {
            endpoint: u32::try_from(number).unwrap(),
            url: row.endpoint.as_deref().unwrap().parse().unwrap(),
            declared: None,
        });
        let suffixes = Suffixes::default();
        let (kept, _) = sampling.draw(targets.collect(), &suffixes, seed);
        let mut of_site: BTreeMap<String, Lots<u32>> = BTreeMap::new();
        for it in &kept {
            of_site
                .entry(suffixes.site(&it.url))
                .or_insert_with(|| Lots::new(per_site.unwrap_or(usize::MAX), seed))
                .add(it.url.as_str(), it.endpoint);
        }
        let asked: BTreeSet<u32> = of_site.into_values().flat_map(Lots::drawn).collect();
        let mut tally = Tally::default();
        for (number, it) in rows.iter().enumerate() {
            if asked.contains(&u32::try_from(number).unwrap()) {
                tally.add(it);
            } else {
                let why = Unmeasured::SampledOut.name();
                tally.add(&Row {
                    outcome: Outcome::Unmeasured,
                    detail: why.to_owned(),
                    verdict: Verdict::Unmeasured,
                    ..it.clone()
                });
            }
        }
        let drawn = Drawn {
            by: Some(sampling.by),
        };
        tally
            .estimate(drawn, |it, _| it == Verdict::Working)
            .unwrap()
    }

    /// Nineteen of twenty intervals hold the share of the whole list, and the estimates lie around it.
    #[track_caller]
    fn holds(by: Unit, size: usize, per_site: Option<usize>) {
        const DRAWS: u64 = 144;
        let rows = list();
        let working = rows.iter().filter(|it| it.verdict == Verdict::Working);
        let truth = stats::fraction(working.count() as u64, rows.len() as u64);
        let (mut held, mut sum, mut widths) = (0, 0.0, 0.0);
        for seed in 0..DRAWS {
            let it = estimate(&rows, Sampling { size, by }, per_site, seed);
            held += u32::from(it.low <= truth && truth <= it.high);
            sum += it.count / it.of;
            widths += it.high - it.low;
        }
        let draws = stats::float(DRAWS);
        let bias = sum / draws - truth;
        // An interval is four standard errors wide, and the mean of 144 draws twelve times surer than one: four of its
        // standard errors.
        assert!(bias.abs() < widths / draws / 12.0, "{bias}");
        // 137 of 144, give or take 2.6.
        assert!(held >= 129, "{held} of {DRAWS}");
    }

    #[test]
    fn an_interval_holds_the_share_of_the_whole_list_where_sites_are_drawn() {
        holds(Unit::Site, 40, None);
    }

    #[test]
    fn an_interval_holds_the_share_where_rows_are_drawn_of_sites_that_are() {
        holds(Unit::Site, 40, Some(2));
    }

    #[test]
    fn an_interval_holds_the_share_where_endpoints_are_drawn() {
        holds(Unit::Endpoint, 150, None);
    }

    #[test]
    fn rows_of_one_site_are_not_taken_for_many_draws() {
        let by_site = Sampling {
            size: 30,
            by: Unit::Site,
        };
        let it = estimate(&list(), by_site, None, 1);
        let rows = 30.0 * 5.5;
        let naive = stats::wilson_sized(it.count / it.of, rows);
        assert!(it.high - it.low > 1.5 * (naive.high - naive.low));
    }

    #[test]
    fn a_site_of_which_few_were_asked_weighs_as_much_as_it_is_large() {
        // One of one works; one of nine was asked, and does not: a tenth works, not half.
        let mut tally = Tally::default();
        let of = |host: &str, path: &str, outcome, verdict| Row {
            site: Some(host.to_owned()),
            ..at(host, path, row(outcome, "sampled_out", verdict))
        };
        tally.add(&of("a.test", "/", Outcome::Success, Verdict::Working));
        tally.add(&of("b.test", "/", Outcome::NotFound, Verdict::NotMcp));
        for path in 1..9 {
            let path = format!("/{path}");
            tally.add(&of(
                "b.test",
                &path,
                Outcome::Unmeasured,
                Verdict::Unmeasured,
            ));
        }
        let every_site = Drawn { by: None };
        let it = tally
            .estimate(every_site, |it, _| it == Verdict::Working)
            .unwrap();
        assert!((it.count - 1.0).abs() < 1e-9 && (it.of - 10.0).abs() < 1e-9);
    }
}
