//! What the checks come to: for a server its demands held to, for a check the servers that hold to it. A score is never
//! told without its parts.

use std::collections::BTreeMap;

use super::evaluate::{Checked, Discovery};
use super::id::CheckId;
use super::rule::Revision;
use super::status::{Missing, Outside, Status};
use crate::names::names;

names! {
    /// How far a server is on the way to 2026-07-28.
    pub enum Readiness {
        /// Speaks it, and breaks no demand.
        Ready = "ready",
        /// Speaks it, and breaks demands.
        Partly = "partly",
        /// Does not speak it.
        No = "no",
        /// That was not seen.
        Unknown = "unknown",
    }
}

/// An endpoint of a list, held against the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Server {
    /// The name the list gives.
    pub name: String,
    /// The address as listed, secrets taken out.
    pub url: String,
    /// The revision it answered with.
    pub revision: Option<String>,
    /// What became of each check; empty where nothing was measured.
    pub checked: Vec<Checked>,
    /// How far the way in was found, where there was a 401 and it was looked for.
    pub way_in: Option<Discovery>,
    /// Why nothing was measured, where that was our doing or the list's.
    pub unmeasured: Option<String>,
}

/// Demands held to, out of those that apply and were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Score {
    /// Held to.
    pub passed: u64,
    /// Seen.
    pub applicable: u64,
}

impl Server {
    /// What became of one check.
    #[must_use]
    pub fn status(&self, check: CheckId) -> Option<Status> {
        let found = self.checked.iter().find(|it| it.check == check);
        found.map(|it| it.status)
    }

    /// Checks of a status.
    pub fn with(&self, status: Status) -> impl Iterator<Item = &Checked> {
        self.checked.iter().filter(move |it| it.status == status)
    }

    /// MUSTs held to, out of those that were decided. A warning in place of a failure, where the specification
    /// contradicts itself, counts as neither.
    #[must_use]
    pub fn score(&self) -> Score {
        let mut score = Score::default();
        for checked in &self.checked {
            if !checked.check.rule().level.is_demanded() {
                continue;
            }
            match checked.status {
                Status::Pass => {
                    score.passed += 1;
                    score.applicable += 1;
                }
                Status::Fail => score.applicable += 1,
                Status::Warn | Status::NotApplicable(_) | Status::NotObserved(_) => {}
            }
        }
        score
    }

    /// The demands of 2026-07-28 that it breaks.
    pub fn in_the_way(&self) -> impl Iterator<Item = &Checked> {
        let negotiated = self.revision.as_deref() == Some(Revision::V2026_07.name());
        self.with(Status::Fail).filter(move |it| {
            let rule = it.check.rule();
            rule.last == Revision::V2026_07 && (rule.first == Revision::V2026_07 || negotiated)
        })
    }

    /// How far it is on the way to 2026-07-28.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        match self.status(CheckId::DiscImplemented) {
            Some(Status::Pass) => {
                if self.in_the_way().next().is_some() {
                    Readiness::Partly
                } else {
                    Readiness::Ready
                }
            }
            Some(Status::Fail | Status::Warn) => Readiness::Partly,
            Some(Status::NotApplicable(Outside::Era)) => Readiness::No,
            Some(Status::NotApplicable(_) | Status::NotObserved(_)) | None => Readiness::Unknown,
        }
    }
}

/// What became of one check at all servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Servers that hold to it.
    pub passed: u64,
    /// Servers that break a demand.
    pub failed: u64,
    /// Servers that leave a recommendation.
    pub warned: u64,
    /// Servers that it is no matter of, by why.
    pub outside: BTreeMap<Outside, u64>,
    /// Servers of which it is not known, by why.
    pub missing: BTreeMap<Missing, u64>,
}

impl Line {
    /// Servers of which it was decided.
    #[must_use]
    pub const fn decided(&self) -> u64 {
        self.passed + self.failed + self.warned
    }

    fn add(&mut self, status: Status) {
        match status {
            Status::Pass => self.passed += 1,
            Status::Fail => self.failed += 1,
            Status::Warn => self.warned += 1,
            Status::NotApplicable(why) => *self.outside.entry(why).or_default() += 1,
            Status::NotObserved(why) => *self.missing.entry(why).or_default() += 1,
        }
    }
}

/// What the checks of many servers come to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tally {
    /// By check, in the order of the catalogue.
    pub checks: BTreeMap<CheckId, Line>,
    /// Servers by how far they are.
    pub readiness: BTreeMap<Readiness, u64>,
    /// What stands between servers that speak 2026-07-28 in part and its demands, and how many break each.
    pub in_the_way: BTreeMap<CheckId, u64>,
    /// Servers with a 401 by how far the way in was found.
    pub ways_in: BTreeMap<Discovery, u64>,
    /// Demands held to by all servers together.
    pub score: Score,
    /// Servers with something measured.
    pub servers: u64,
}

impl Tally {
    /// Adds a server. One of which nothing was measured adds nothing.
    pub fn add(&mut self, server: &Server) {
        if server.checked.is_empty() {
            return;
        }
        self.servers += 1;
        let score = server.score();
        self.score.passed += score.passed;
        self.score.applicable += score.applicable;
        let readiness = server.readiness();
        *self.readiness.entry(readiness).or_default() += 1;
        if readiness == Readiness::Partly {
            for broken in server.in_the_way() {
                *self.in_the_way.entry(broken.check).or_default() += 1;
            }
        }
        if let Some(way_in) = server.way_in {
            *self.ways_in.entry(way_in).or_default() += 1;
        }
        for checked in &server.checked {
            self.checks
                .entry(checked.check)
                .or_default()
                .add(checked.status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(statuses: &[(CheckId, Status)]) -> Server {
        let checked = statuses.iter().map(|&(check, status)| Checked {
            check,
            status,
            detail: String::new(),
        });
        Server {
            checked: checked.collect(),
            ..Server::default()
        }
    }

    #[test]
    fn a_score_counts_demands_that_were_decided() {
        let it = server(&[
            (CheckId::EnvJsonrpc, Status::Pass),
            (CheckId::EnvIdEcho, Status::Fail),
            (CheckId::AuthRefusalIs401, Status::Pass),
            (CheckId::InitVersionNoError, Status::Warn),
            (CheckId::SsePriming, Status::Warn),
            (CheckId::PrmFetch, Status::NotObserved(Missing::Gated)),
            (CheckId::SessAscii, Status::NotApplicable(Outside::Session)),
        ]);
        assert_eq!(
            it.score(),
            Score {
                passed: 2,
                applicable: 3
            }
        );
    }

    #[test]
    fn readiness_is_what_discover_shows() {
        let of = |statuses: &[(CheckId, Status)]| server(statuses).readiness();
        let implemented = (CheckId::DiscImplemented, Status::Pass);
        assert_eq!(of(&[implemented]), Readiness::Ready);
        assert_eq!(
            of(&[implemented, (CheckId::EnvJsonrpc, Status::Fail)]),
            Readiness::Ready
        );
        assert_eq!(
            of(&[implemented, (CheckId::DiscTtlMs, Status::Fail)]),
            Readiness::Partly
        );
        let era = Status::NotApplicable(Outside::Era);
        assert_eq!(of(&[(CheckId::DiscImplemented, era)]), Readiness::No);
        let unasked = Status::NotObserved(Missing::NotAsked);
        assert_eq!(
            of(&[(CheckId::DiscImplemented, unasked)]),
            Readiness::Unknown
        );
    }
}
