//! A series of runs -> what it shows: points that may be joined, where they may not be and why, and how each endpoint
//! fared over the last runs. How it is drawn is `report`'s affair.

use std::collections::BTreeMap;

use super::history::Line;
use crate::outcome::Verdict;

/// Runs over which availability is told.
pub const SPANS: [usize; 3] = [7, 30, 90];

/// Runs that are kept of each endpoint: the longest span, and one more to see what has changed.
pub const KEPT: usize = SPANS[2] + 1;

/// Runs in which flapping is looked for.
const FLAPPING_RUNS: usize = 30;

/// Changes between answering and not in those that are flapping.
const FLAPPING_CHANGES: usize = 4;

/// The measured runs of a sweep, in stretches that may be drawn as one line: the same was asked by the same instrument.
#[must_use]
pub fn stretches(lines: &[Line]) -> Vec<Vec<&Line>> {
    let mut stretches: Vec<Vec<&Line>> = Vec::new();
    for line in lines.iter().filter(|it| it.is_measured()) {
        match stretches.last_mut() {
            Some(stretch)
                if stretch
                    .last()
                    .is_some_and(|before| is_comparable(before, line)) =>
            {
                stretch.push(line);
            }
            _ => stretches.push(vec![line]),
        }
    }
    stretches
}

/// Whether two runs asked the same with the same instrument.
#[must_use]
fn is_comparable(one: &Line, other: &Line) -> bool {
    one.population == other.population && one.instrument == other.instrument
}

/// Whether an endpoint answers as an MCP server does: to anyone, or to those it knows.
#[must_use]
pub const fn is_available(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Working | Verdict::Gated)
}

/// How an endpoint fared in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fared {
    /// The verdict.
    pub verdict: Verdict,
    /// Its attempts agree, and an accusation was asked again.
    pub confirmed: bool,
}

/// An endpoint over the last runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Track {
    /// Its name in the last list that has it.
    pub name: String,
    /// How it fared, first run to last; nothing where it was not measured.
    pub fared: Vec<Option<Fared>>,
}

impl Track {
    /// In how many of the last runs it was available, of those in which it was measured.
    #[must_use]
    pub fn availability(&self, runs: usize) -> (u64, u64) {
        let measured = || self.last(runs).iter().flatten();
        let available = measured().filter(|it| is_available(it.verdict)).count() as u64;
        (available, measured().count() as u64)
    }

    /// How often it went from available to not, or back, in the last runs.
    #[must_use]
    pub fn changes(&self, runs: usize) -> usize {
        let states: Vec<bool> = self
            .last(runs)
            .iter()
            .flatten()
            .map(|it| is_available(it.verdict))
            .collect();
        states.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    /// Whether it comes and goes.
    #[must_use]
    pub fn is_flapping(&self) -> bool {
        self.changes(FLAPPING_RUNS) >= FLAPPING_CHANGES
    }

    /// Whether it worked once and then failed in at least `failed` of the last `of` runs that were measured, up to the
    /// last but `before`. What is not confirmed is not counted.
    #[must_use]
    pub fn has_left(&self, failed: usize, of: usize, before: usize) -> bool {
        let until = self.fared.len().saturating_sub(before);
        let confirmed: Vec<bool> = self.fared[..until]
            .iter()
            .flatten()
            .filter(|it| it.confirmed)
            .map(|it| it.verdict == Verdict::Working)
            .collect();
        let recent = &confirmed[confirmed.len().saturating_sub(of)..];
        let fails = recent.iter().filter(|works| !**works).count();
        let first_failure =
            confirmed.len() - recent.len() + recent.iter().position(|works| !works).unwrap_or(0);
        fails >= failed.max(1) && confirmed[..first_failure].contains(&true)
    }

    fn last(&self, runs: usize) -> &[Option<Fared>] {
        &self.fared[self.fared.len().saturating_sub(runs)..]
    }
}

/// Every endpoint of the last [`KEPT`] runs. Memory grows with their number, and not with that of runs.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    runs: usize,
    /// By address.
    pub tracks: BTreeMap<String, Track>,
}

/// A row of a run: an endpoint's address, its name, and how it fared.
pub type Fare = (String, String, Fared);

impl Endpoints {
    /// Adds a run after those that were added; of several rows with one address the first stands for it.
    pub fn add(&mut self, rows: &[Fare]) {
        if self.runs == KEPT {
            self.runs -= 1;
            for track in self.tracks.values_mut() {
                track.fared.remove(0);
            }
        }
        for (address, name, fared) in rows {
            let track = self.tracks.entry(address.clone()).or_default();
            if track.fared.len() > self.runs {
                continue;
            }
            track.fared.resize(self.runs, None);
            track
                .fared
                .push(fared.verdict.is_measured().then_some(*fared));
            track.name.clone_from(name);
        }
        self.runs += 1;
        for track in self.tracks.values_mut() {
            track.fared.resize(self.runs, None);
        }
        // Who has not been heard of in all these runs is forgotten.
        self.tracks
            .retain(|_, track| track.fared.iter().any(Option::is_some));
    }

    /// Runs that are kept.
    #[must_use]
    pub const fn runs(&self) -> usize {
        self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::periodic::history::Status;

    fn line(population: &str, instrument: &str, status: Status) -> Line {
        Line {
            population: population.into(),
            instrument: instrument.into(),
            status: Some(status),
            working: 1,
            ..Line::default()
        }
    }

    fn track(states: &str) -> Track {
        let fared = |state| match state {
            'w' => Some(Fared {
                verdict: Verdict::Working,
                confirmed: true,
            }),
            'd' => Some(Fared {
                verdict: Verdict::Down,
                confirmed: true,
            }),
            '?' => Some(Fared {
                verdict: Verdict::Down,
                confirmed: false,
            }),
            _ => None,
        };
        Track {
            name: String::new(),
            fared: states.chars().map(fared).collect(),
        }
    }

    #[test]
    fn runs_of_different_populations_or_instruments_are_never_one_line() {
        let lines = [
            line("a", "x", Status::Complete),
            line("a", "x", Status::Missed),
            line("a", "x", Status::Complete),
            line("b", "x", Status::Complete),
            line("b", "y", Status::Complete),
            line("a", "x", Status::Complete),
        ];
        let lengths: Vec<usize> = stretches(&lines).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1, 1, 1]);
    }

    #[test]
    fn availability_is_of_the_runs_that_measured_it() {
        let track = track("wwd.wwdw");
        assert_eq!(track.availability(7), (4, 6));
        assert_eq!(track.availability(90), (5, 7));
        assert_eq!(track.changes(30), 4);
        assert!(track.is_flapping());
    }

    #[test]
    fn an_endpoint_has_left_when_it_fails_in_k_of_n_runs() {
        for (states, left, before) in [
            ("wwwd", false, false),
            ("wwdd", true, false),
            ("wddd", true, true),
            ("wdwd", true, false),
            ("dddd", false, false),
            ("wd.d", true, false),
            ("wwd?", false, false),
            ("wwddw", true, true),
        ] {
            let track = track(states);
            assert_eq!(track.has_left(2, 3, 0), left, "{states}");
            assert_eq!(
                track.has_left(2, 3, 1),
                before,
                "{states} before its last run"
            );
        }
    }

    #[test]
    fn an_endpoint_that_comes_late_or_goes_was_not_measured_meanwhile() {
        let works = Fared {
            verdict: Verdict::Working,
            confirmed: true,
        };
        let mut endpoints = Endpoints::default();
        let row = |address: &str| (address.to_owned(), address.to_owned(), works);
        endpoints.add(&[row("a"), row("a")]);
        endpoints.add(&[row("b")]);
        assert_eq!(endpoints.tracks["a"].fared, [Some(works), None]);
        assert_eq!(endpoints.tracks["b"].fared, [None, Some(works)]);
        for _ in 0..KEPT - 1 {
            endpoints.add(&[row("b")]);
        }
        assert_eq!(endpoints.runs(), KEPT);
        assert!(
            !endpoints.tracks.contains_key("a"),
            "memory does not grow with runs"
        );
    }
}
