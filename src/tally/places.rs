//! Counts -> the tables that speak of places: units, the largest sites and operators, rows to act on.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::tables::{OTHERS, largest, largest_by};
use super::{LIST, Mechanism, RunFacts, Score, Table, Tally, operator};

/// Operators that get a line each.
const PLATFORMS: usize = 20;
/// Places to act on that get a line each.
const ACTIONS: usize = 50;

impl Tally {
    pub(super) fn units(&self, mut table: Table, facts: &RunFacts) -> Table {
        table.spread = true;
        table.denominator_of = "what was measured in the unit; one that works makes its unit work";
        let rows = self.score();
        let endpoints = units(self.endpoints.values());
        let listed = facts.endpoints.unwrap_or(endpoints.rows);
        for (unit, about, score) in [
            ("rows", "lines of the list", rows),
            (
                "endpoints",
                "addresses, each counted once",
                Score {
                    rows: listed,
                    ..endpoints
                },
            ),
            (
                "hosts",
                "host names",
                units(self.hosts.values().map(|it| &it.score)),
            ),
            (
                "sites",
                "registrable domains",
                units(self.sites.values().map(|it| &it.score)),
            ),
        ] {
            table.count(&[unit, "listed"], about, score.rows);
            table.count(&[unit, "measured"], about, score.measured);
            table.share(&[unit, "working"], about, score.working, score.measured);
        }
        table
    }

    pub(super) fn concentration(&self, mut table: Table, facts: &RunFacts) -> Table {
        let all = self.score();
        table.share(&["nothing"], "", all.working, all.measured);
        let operators = self.operators(facts);
        let operators = operators.iter().map(|(name, (score, _))| (*name, *score));
        let sites = self
            .sites
            .iter()
            .map(|(name, site)| (&**name, Score::from(site.score)));
        for (kind, mut scores) in [
            ("site", sites.collect::<Vec<_>>()),
            ("operator", operators.collect()),
        ] {
            scores.sort_by_key(|(name, score)| (Reverse(score.measured), *name));
            for without in [1, 2, 5] {
                let left_out = &scores[..without.min(scores.len())];
                let mut gone = Score::default();
                for (_, score) in left_out {
                    gone.merge(*score);
                }
                let names: Vec<&str> = left_out.iter().map(|(name, _)| *name).collect();
                table.share(
                    &[&format!(
                        "{without} {kind}{}",
                        if without == 1 { "" } else { "s" }
                    )],
                    names.join(", "),
                    all.working - gone.working,
                    all.measured - gone.measured,
                );
            }
        }
        table
    }

    /// The operators behind the sites, with how many sites each has.
    fn operators(&self, facts: &RunFacts) -> BTreeMap<&str, (Score, u64)> {
        let mut operators: BTreeMap<&str, (Score, u64)> = BTreeMap::new();
        for (name, site) in &self.sites {
            let (sum, sites) = operators
                .entry(operator(name, &facts.suffixes))
                .or_default();
            sum.merge(site.score);
            *sites += 1;
        }
        operators
    }

    pub(super) fn platforms(&self, mut table: Table, facts: &RunFacts) -> Table {
        table.spread = true;
        table.denominator_of = "the operator's measured rows";
        let mut operators: Vec<(&str, (Score, u64))> = self.operators(facts).into_iter().collect();
        operators.sort_by_key(|(name, (score, _))| (Reverse(score.rows), *name));
        let rest = operators.split_off(PLATFORMS.min(operators.len()));
        if !rest.is_empty() {
            let mut sum = Score::default();
            let mut sites = 0;
            for (_, (score, of_score)) in rest {
                sum.merge(score);
                sites += of_score;
            }
            operators.push((OTHERS, (sum, sites)));
        }
        for (name, (score, sites)) in operators {
            table.count(&[name, "rows"], "", score.rows);
            table.count(&[name, "sites"], "", sites);
            table.count(&[name, "measured"], "", score.measured);
            table.share(&[name, "working"], "", score.working, score.measured);
        }
        table
    }

    pub(super) fn actions(&self, mut table: Table, facts: &RunFacts) -> Table {
        let mut actions: BTreeMap<(Mechanism, &str), u64> = BTreeMap::new();
        for ((mechanism, place), count) in &self.actions {
            // Deployments on one platform are one question to its operator.
            let place = match mechanism {
                Mechanism::DeploymentGone if place != LIST => operator(place, &facts.suffixes),
                _ => place,
            };
            *actions.entry((*mechanism, place)).or_default() += count;
        }
        for (name, host) in self.hosts.iter().filter(|(_, host)| host.not_found > 0) {
            let mechanism = if host.not_found + host.deployment_gone == host.score.measured {
                Mechanism::HostNotFound
            } else {
                Mechanism::PathNotFound
            };
            *actions.entry((mechanism, name)).or_default() += u64::from(host.not_found);
        }
        let mut alone: BTreeMap<Mechanism, (u64, u64)> = BTreeMap::new();
        for (at, ((mechanism, place), count)) in largest(&actions).into_iter().enumerate() {
            // A place with a single row is no group.
            if at < ACTIONS && (count > 1 || *place == LIST) {
                let key = [mechanism.name(), *place];
                table.share(&key, mechanism.remedy(), count, self.rows);
            } else {
                let (places, rows) = alone.entry(*mechanism).or_default();
                *places += 1;
                *rows += count;
            }
        }
        for (mechanism, (places, rows)) in largest_by(&alone, |(_, rows)| *rows) {
            let places = if *places == 1 {
                "in one place".to_owned()
            } else {
                format!("in {places} places")
            };
            let about = format!("{places}; {}", mechanism.remedy());
            table.share(&[mechanism.name(), OTHERS], about, *rows, self.rows);
        }
        table
    }
}

/// In units larger than a row, one that is measured or works makes its unit so.
fn units<'a>(scores: impl Iterator<Item = &'a Score<u32>>) -> Score {
    let mut sum = Score::default();
    for score in scores {
        sum.merge(Score {
            rows: 1,
            measured: score.measured.min(1),
            working: score.working.min(1),
            left_out: 0,
        });
    }
    sum
}
