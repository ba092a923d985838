//! Which runs may lose their evidence. What goes and what stays of a run is `sweep`'s affair.

use jiff::{SignedDuration, Timestamp};

/// How long evidence is kept. Where both are given, what either wants kept is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// That of so many runs.
    pub runs: Option<usize>,
    /// That of runs no older than this.
    pub age: Option<SignedDuration>,
}

/// The runs whose evidence may go. The last run's never may.
#[must_use]
pub fn expired<'a>(
    retention: Retention,
    runs: &[(&'a str, Timestamp)],
    now: Timestamp,
) -> Vec<&'a str> {
    if retention == Retention::default() {
        return Vec::new();
    }
    let mut sorted = runs.to_vec();
    sorted.sort_by(|(a, a_start), (b, b_start)| b_start.cmp(a_start).then(b.cmp(a)));
    sorted
        .into_iter()
        .enumerate()
        .skip(1)
        .filter(|(place, (_, start))| {
            let many = retention.runs.is_some_and(|it| *place < it);
            let young = retention
                .age
                .is_some_and(|it| now.duration_since(*start) <= it);
            !(many || young)
        })
        .map(|(_, (run, _))| run)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_stays_by_count_or_by_age_and_the_last_runs_always() {
        let day = |n: i64| Timestamp::from_second(n * 86_400).unwrap();
        let runs = [("a", day(1)), ("c", day(3)), ("b", day(2)), ("d", day(4))];
        let gone = |runs_kept, days: Option<i64>| {
            let retention = Retention {
                runs: runs_kept,
                age: days.map(|it| SignedDuration::from_hours(24 * it)),
            };
            expired(retention, &runs, day(5))
        };
        assert_eq!(gone(None, None), Vec::<&str>::new());
        assert_eq!(gone(Some(2), None), ["b", "a"]);
        assert_eq!(gone(None, Some(2)), ["b", "a"]);
        assert_eq!(gone(Some(1), Some(3)), ["a"]);
        assert_eq!(gone(Some(0), None), ["c", "b", "a"]);
    }
}
