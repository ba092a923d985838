//! Which endpoints of a list are asked where not all are: drawn by a seed, the same on every machine. What the sample
//! tells of the whole list is `tally`'s affair.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::names;
use crate::target::{Suffixes, Target, scatter};

names! {
    /// What is drawn.
    pub enum Unit {
        /// Sites, each with all of its endpoints.
        Site = "site",
        /// Endpoints, each for itself.
        Endpoint = "endpoint",
    }
}

/// A sample of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// How many are drawn.
    pub size: usize,
    /// Of what.
    pub by: Unit,
}

impl fmt::Display for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.size == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", self.size, self.by)
    }
}

impl Sampling {
    /// The targets that are drawn, in their order, and the numbers of the others. Every site, or endpoint, is as
    /// likely as any other to be among them.
    #[must_use]
    pub fn draw(
        self,
        targets: Vec<Target>,
        suffixes: &Suffixes,
        seed: u64,
    ) -> (Vec<Target>, Vec<u32>) {
        let unit = |target: &Target| match self.by {
            Unit::Site => suffixes.site(&target.url),
            Unit::Endpoint => target.url.to_string(),
        };
        let mut lots = Lots::new(self.size, seed);
        for unit in targets.iter().map(unit).collect::<BTreeSet<_>>() {
            lots.add(&unit, unit.clone());
        }
        let drawn: BTreeSet<String> = lots.drawn().into_iter().collect();
        let (kept, left_out): (Vec<Target>, Vec<Target>) = targets
            .into_iter()
            .partition(|it| drawn.contains(&unit(it)));
        (kept, left_out.iter().map(|it| it.endpoint).collect())
    }
}

/// Lots that are drawn by a seed, at most so many. No more than those are kept.
#[derive(Debug)]
pub struct Lots<T> {
    most: usize,
    seed: u64,
    kept: BTreeMap<(u64, String), T>,
}

impl<T> Lots<T> {
    /// Nothing drawn yet.
    #[must_use]
    pub const fn new(most: usize, seed: u64) -> Self {
        Self {
            most,
            seed,
            kept: BTreeMap::new(),
        }
    }

    /// Puts one in. Names are told apart; the same name is the same lot.
    pub fn add(&mut self, name: &str, item: T) {
        let lot = mixed(scatter(name, mixed(self.seed)));
        self.kept.entry((lot, name.to_owned())).or_insert(item);
        if self.kept.len() > self.most {
            self.kept.pop_last();
        }
    }

    /// What was drawn, in the order of the lots.
    #[must_use]
    pub fn drawn(self) -> Vec<T> {
        self.kept.into_values().collect()
    }
}

/// The finalizer of `SplitMix64` (Steele, Lea, Flood 2014): names that differ in their last letter only are no
/// neighbours any more.
const fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twenty sites, the first of which has ten endpoints and each other one.
    fn targets() -> Vec<Target> {
        let of_first = (0..10).map(|it| format!("https://one.example/{it}"));
        of_first
            .chain((1..20).map(|it| format!("https://s{it}.test/mcp")))
            .enumerate()
            .map(|(number, url)| Target {
                endpoint: u32::try_from(number).unwrap(),
                url: url.parse().unwrap(),
                declared: None,
            })
            .collect()
    }

    fn draw(size: usize, by: Unit, seed: u64) -> (Vec<Target>, Vec<u32>) {
        Sampling { size, by }.draw(targets(), &Suffixes::default(), seed)
    }

    #[test]
    fn a_site_is_drawn_whole() {
        for seed in 0..50 {
            let (kept, left_out) = draw(5, Unit::Site, seed);
            let of_first = kept.iter().filter(|it| it.endpoint < 10).count();
            assert!(of_first == 0 && kept.len() == 5 || of_first == 10 && kept.len() == 14);
            assert_eq!(kept.len() + left_out.len(), 29);
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_does_not() {
        assert_eq!(draw(7, Unit::Endpoint, 1), draw(7, Unit::Endpoint, 1));
        assert_eq!(draw(7, Unit::Endpoint, 1).0.len(), 7);
        assert!((2..10).any(|seed| draw(7, Unit::Endpoint, seed) != draw(7, Unit::Endpoint, 1)));
        assert_eq!(draw(100, Unit::Endpoint, 1).1, Vec::<u32>::new());
    }

    #[test]
    fn every_endpoint_is_as_likely_as_any_other() {
        let mut times = [0_u32; 29];
        for seed in 0..2900 {
            for target in draw(10, Unit::Endpoint, seed).0 {
                times[target.endpoint as usize] += 1;
            }
        }
        // 1,000 each, give or take 25.6: five of those are never passed by chance.
        assert!(times.iter().all(|it| it.abs_diff(1000) < 128), "{times:?}");
    }
}
