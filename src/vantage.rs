//! What several vantage points say of one row -> what the row says. An endpoint is `down` only where nobody reached
//! it. Reading a vantage's exchanges is `settle`'s affair, bringing runs together is `merge`'s.

use crate::outcome::Verdict;

/// Which vantage speaks for a row: the first of those whose verdict is the best. Working anywhere is working; `down`
/// is said only where every vantage says it, so that one that measured nothing leaves the row unmeasured. 0 of none.
#[must_use]
pub fn speaks(verdicts: &[Verdict]) -> usize {
    let best = verdicts.iter().copied().map(rank).max();
    verdicts
        .iter()
        .position(|it| Some(rank(*it)) == best)
        .unwrap_or(0)
}

/// Whether vantages that measured a row disagree on it. One that measured nothing contradicts nobody.
#[must_use]
pub fn differ(verdicts: &[Verdict]) -> bool {
    let mut measured = verdicts.iter().filter(|it| it.is_measured());
    let first = measured.next();
    measured.any(|it| Some(it) != first)
}

const fn rank(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Working => 6,
        Verdict::Gated => 5,
        Verdict::Faulty => 4,
        Verdict::NotMcp => 3,
        Verdict::Unmeasured => 2,
        Verdict::Unprobeable => 1,
        Verdict::Down => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Down, Faulty, Gated, NotMcp, Unmeasured, Unprobeable, Working};

    #[test]
    fn a_row_works_where_it_works_anywhere_and_is_down_only_everywhere() {
        for (verdicts, want, regional) in [
            (&[Down, Working][..], 1, true),
            (&[Working, Working], 0, false),
            (&[Down, Down], 0, false),
            (&[Down, Unmeasured], 1, false),
            (&[Down, Unprobeable, Down], 1, false),
            (&[Unmeasured, Working], 1, false),
            (&[Down, Unmeasured, Gated], 2, true),
            (&[NotMcp, Faulty], 1, true),
            (&[], 0, false),
        ] {
            assert_eq!(
                (speaks(verdicts), differ(verdicts)),
                (want, regional),
                "{verdicts:?}"
            );
        }
    }
}
