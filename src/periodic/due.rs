//! What is to be done now: which starts were missed and why, whether a run is due, and until when there is nothing to
//! do. A state and an instant in, a decision out; who acts on it is `sweep`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::schedule::Schedule;
use crate::manifest::Start;
use crate::names::names;

/// A start this much after its time is late, in seconds; less where the rhythm is faster than ten of these.
const TOLERANCE: i64 = 60;

/// Missed starts of one gap that are told apart; those beyond are told as one.
const TOLD_APART: usize = 366;

/// Starts of one gap that are counted. Beyond that the count is a least one.
const COUNTED: u64 = 10_000;

names! {
    /// Why a start was missed.
    pub enum Absence {
        /// Nobody was there: the program did not run, the machine slept, or its clock was set past it.
        Down = "down",
        /// A run was still going.
        Overlap = "overlap",
        /// The window was closed.
        Window = "window",
    }
}

/// What is known when the decision is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Every start up to this one has been dealt with.
    pub dealt_with: Timestamp,
    /// Somebody has been looking at the clock since.
    pub awake_since: Timestamp,
    /// The instant.
    pub now: Timestamp,
    /// Whether a start that nobody was there for is caught up.
    pub catch_up: bool,
    /// How late a start may be without being late, beside the tolerance: what another clock adds of its own.
    pub allowed: SignedDuration,
}

/// Starts that were missed for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed {
    /// The first of them.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
    /// How many there are.
    pub starts: u64,
    /// Why.
    pub absence: Absence,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// A run starts now.
    Run {
        /// The start it is for.
        scheduled_at: Timestamp,
        /// How it came to start now.
        start: Start,
        /// How long after its time.
        late: Duration,
    },
    /// There is nothing to do before this.
    Wait(Timestamp),
    /// There is nothing to do ever.
    Never,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Starts that were missed, to be recorded, first to last.
    pub missed: Vec<Missed>,
    /// What comes next.
    pub next: Next,
    /// The clock was set back over more than a whole period: from where starts are counted anew.
    pub rewound: Option<Timestamp>,
}

/// Decides.
#[must_use]
pub fn decide(schedule: &Schedule, seen: &Seen) -> Decision {
    let Seen { now, .. } = *seen;
    let rewound = rewound(schedule, seen);
    let dealt_with = rewound.unwrap_or(seen.dealt_with);
    let (passed, latest) = passed(schedule, dealt_with, now);
    let mut missed = Vec::new();
    let Some(latest) = latest else {
        let next = schedule
            .after(dealt_with.max(now))
            .map_or(Next::Never, |it| Next::Wait(schedule.with_jitter(it)));
        return Decision {
            missed,
            next,
            rewound,
        };
    };
    for gap in passed {
        tell(&mut missed, gap, absence(schedule, seen, gap.first));
    }
    let due = schedule.with_jitter(latest);
    let late = now.duration_since(due);
    let following = schedule.after(latest);
    let next = if late < SignedDuration::ZERO {
        Next::Wait(due)
    } else if !schedule.is_open(now) {
        // It waits for the window, unless a later start has come by then.
        schedule.opens(now).map_or(Next::Never, Next::Wait)
    } else {
        let start = promptness(seen, due, late, latest, following);
        if start == Start::CaughtUp && !seen.catch_up {
            tell(
                &mut missed,
                Gap::of(latest),
                absence(schedule, seen, latest),
            );
            following.map_or(Next::Never, |it| Next::Wait(schedule.with_jitter(it)))
        } else {
            Next::Run {
                scheduled_at: latest,
                start,
                late: Duration::try_from(late).unwrap_or_default(),
            }
        }
    };
    Decision {
        missed,
        next,
        rewound,
    }
}

fn promptness(
    seen: &Seen,
    due: Timestamp,
    late: SignedDuration,
    latest: Timestamp,
    following: Option<Timestamp>,
) -> Start {
    let period = following.map_or(i64::MAX, |it| it.as_second() - latest.as_second());
    // A rhythm of seconds still has a machine's own delays.
    let tolerance = SignedDuration::from_secs(TOLERANCE.min(period / 10).max(1));
    let tolerance = tolerance.saturating_add(seen.allowed);
    if late <= tolerance {
        Start::OnTime
    } else if due < seen.awake_since {
        Start::CaughtUp
    } else {
        Start::Late
    }
}

fn absence(schedule: &Schedule, seen: &Seen, start: Timestamp) -> Absence {
    let due = schedule.with_jitter(start);
    if due < seen.awake_since {
        Absence::Down
    } else if schedule.is_open(due) {
        Absence::Overlap
    } else {
        Absence::Window
    }
}

/// Where starts are counted from anew, if the clock was set back over more than one of them: who waited for it to come
/// there again might wait for years. Over less than that nothing is done twice.
fn rewound(schedule: &Schedule, seen: &Seen) -> Option<Timestamp> {
    let first = schedule.after(seen.now)?;
    (first < seen.dealt_with).then_some(seen.now)
}

/// Starts one after the other.
#[derive(Debug, Clone, Copy)]
struct Gap {
    first: Timestamp,
    last: Timestamp,
    starts: u64,
}

impl Gap {
    const fn of(start: Timestamp) -> Self {
        Self {
            first: start,
            last: start,
            starts: 1,
        }
    }
}

/// The starts since one that has been dealt with, but for the last, and the last.
fn passed(
    schedule: &Schedule,
    dealt_with: Timestamp,
    now: Timestamp,
) -> (Vec<Gap>, Option<Timestamp>) {
    let Some(latest) = schedule.until(now).filter(|it| *it > dealt_with) else {
        return (Vec::new(), None);
    };
    let (mut gaps, mut at, mut counted): (Vec<Gap>, _, _) = (Vec::new(), dealt_with, 0);
    while let Some(start) = schedule.after(at).filter(|it| *it < latest) {
        counted += 1;
        at = start;
        match gaps.last_mut() {
            Some(rest) if gaps_are_full(counted) => {
                rest.last = start;
                rest.starts += 1;
            }
            _ => gaps.push(Gap::of(start)),
        }
        if counted >= COUNTED {
            break;
        }
    }
    (gaps, Some(latest))
}

const fn gaps_are_full(counted: u64) -> bool {
    counted > TOLD_APART as u64
}

fn tell(missed: &mut Vec<Missed>, gap: Gap, absence: Absence) {
    missed.push(Missed {
        first: gap.first,
        last: gap.last,
        starts: gap.starts,
        absence,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::periodic::schedule::{Rhythm, window};
    use jiff::tz::TimeZone;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    /// Every day at three.
    fn daily() -> Schedule {
        Schedule {
            rhythm: Rhythm::Every {
                period: 86_400,
                offset: 3 * 3600,
            },
            zone: TimeZone::UTC,
            jitter: SignedDuration::ZERO,
            seed: 1,
            window: None,
        }
    }

    fn seen(dealt_with: &str, awake_since: &str, now: &str) -> Seen {
        Seen {
            dealt_with: at(dealt_with),
            awake_since: at(awake_since),
            now: at(now),
            catch_up: true,
            allowed: SignedDuration::ZERO,
        }
    }

    fn run(scheduled_at: &str, start: Start, late: u64) -> Next {
        Next::Run {
            scheduled_at: at(scheduled_at),
            start,
            late: Duration::from_secs(late),
        }
    }

    #[track_caller]
    fn check(schedule: &Schedule, seen: &Seen, missed: &[(&str, Absence)], next: Next) {
        let got = decide(schedule, seen);
        let got_missed: Vec<(Timestamp, Absence)> =
            got.missed.iter().map(|it| (it.first, it.absence)).collect();
        let want: Vec<(Timestamp, Absence)> = missed
            .iter()
            .map(|(start, why)| (at(start), *why))
            .collect();
        assert_eq!((got_missed, got.next), (want, next));
    }

    #[test]
    fn a_run_is_due_at_its_start_and_not_before() {
        let daily = daily();
        let early = seen(
            "2026-11-30T03:00:00Z",
            "2026-11-01T00:00:00Z",
            "2026-12-01T02:59:59Z",
        );
        check(&daily, &early, &[], Next::Wait(at("2026-12-01T03:00:00Z")));
        let due = Seen {
            now: at("2026-12-01T03:00:30Z"),
            ..early
        };
        check(
            &daily,
            &due,
            &[],
            run("2026-12-01T03:00:00Z", Start::OnTime, 30),
        );
    }

    #[test]
    fn what_downtime_missed_is_recorded_and_the_last_of_it_is_caught_up() {
        let back = seen(
            "2026-11-30T03:00:00Z",
            "2026-12-03T12:00:00Z",
            "2026-12-03T12:00:00Z",
        );
        let missed = [
            ("2026-12-01T03:00:00Z", Absence::Down),
            ("2026-12-02T03:00:00Z", Absence::Down),
        ];
        check(
            &daily(),
            &back,
            &missed,
            run("2026-12-03T03:00:00Z", Start::CaughtUp, 9 * 3600),
        );
        let all = [
            missed[0],
            missed[1],
            ("2026-12-03T03:00:00Z", Absence::Down),
        ];
        check(
            &daily(),
            &Seen {
                catch_up: false,
                ..back
            },
            &all,
            Next::Wait(at("2026-12-04T03:00:00Z")),
        );
    }

    #[test]
    fn a_run_that_takes_too_long_makes_the_next_one_late_and_those_between_missed() {
        let hourly = Schedule {
            rhythm: Rhythm::Every {
                period: 3600,
                offset: 0,
            },
            ..daily()
        };
        let busy = seen(
            "2026-12-01T00:00:00Z",
            "2026-11-01T00:00:00Z",
            "2026-12-01T02:20:00Z",
        );
        check(
            &hourly,
            &busy,
            &[("2026-12-01T01:00:00Z", Absence::Overlap)],
            run("2026-12-01T02:00:00Z", Start::Late, 20 * 60),
        );
    }

    #[test]
    fn outside_its_window_nothing_starts() {
        let night = Schedule {
            window: Some(window("02:00-05:00").unwrap()),
            ..daily()
        };
        let noon = seen(
            "2026-11-30T03:00:00Z",
            "2026-12-01T12:00:00Z",
            "2026-12-01T12:00:00Z",
        );
        check(&night, &noon, &[], Next::Wait(at("2026-12-02T02:00:00Z")));
        let opened = Seen {
            now: at("2026-12-02T02:00:00Z"),
            ..noon
        };
        check(
            &night,
            &opened,
            &[],
            run("2026-12-01T03:00:00Z", Start::CaughtUp, 23 * 3600),
        );
        // A start outside the window is never kept.
        let never = Schedule {
            window: Some(window("10:00-11:00").unwrap()),
            ..daily()
        };
        let later = seen(
            "2026-12-01T03:00:00Z",
            "2026-11-01T00:00:00Z",
            "2026-12-03T04:00:00Z",
        );
        check(
            &never,
            &later,
            &[("2026-12-02T03:00:00Z", Absence::Window)],
            Next::Wait(at("2026-12-03T10:00:00Z")),
        );
    }

    #[test]
    fn a_clock_set_back_repeats_nothing_and_one_set_back_far_starts_anew() {
        let back = seen(
            "2026-12-01T03:00:00Z",
            "2026-11-01T00:00:00Z",
            "2026-12-01T02:10:00Z",
        );
        check(&daily(), &back, &[], Next::Wait(at("2026-12-02T03:00:00Z")));
        let far = seen(
            "2030-01-01T03:00:00Z",
            "2026-12-01T12:00:00Z",
            "2026-12-01T12:00:00Z",
        );
        let got = decide(&daily(), &far);
        assert_eq!(
            (got.next, got.rewound),
            (Next::Wait(at("2026-12-02T03:00:00Z")), Some(far.now))
        );
    }

    #[test]
    fn a_long_gap_is_told_in_few_words_and_counted_whole() {
        let minutely = Schedule {
            rhythm: Rhythm::Every {
                period: 60,
                offset: 0,
            },
            ..daily()
        };
        let back = seen(
            "2026-11-01T00:00:00Z",
            "2026-11-03T00:00:00Z",
            "2026-11-03T00:00:00Z",
        );
        let got = decide(&minutely, &back);
        assert_eq!(got.missed.len(), TOLD_APART);
        let starts: u64 = got.missed.iter().map(|it| it.starts).sum();
        assert_eq!(starts, 2 * 24 * 60 - 1);
        assert_eq!(got.missed.last().unwrap().last, at("2026-11-02T23:59:00Z"));
    }

    #[test]
    fn jitter_moves_the_start_and_is_not_lateness() {
        let jittery = Schedule {
            jitter: SignedDuration::from_hours(1),
            ..daily()
        };
        let start = at("2026-12-01T03:00:00Z");
        let due = jittery.with_jitter(start);
        let early = Seen {
            now: start,
            ..seen(
                "2026-11-30T03:00:00Z",
                "2026-11-01T00:00:00Z",
                "2026-12-01T03:00:00Z",
            )
        };
        check(&jittery, &early, &[], Next::Wait(due));
        check(
            &jittery,
            &Seen { now: due, ..early },
            &[],
            run("2026-12-01T03:00:00Z", Start::OnTime, 0),
        );
    }

    proptest::proptest! {
        /// Whoever looks at whatever times: each start is dealt with once, run or missed, and nothing else is.
        #[test]
        fn each_start_is_dealt_with_once(naps in proptest::collection::vec(1_i64..400_000, 1..60)) {
            let schedule = daily();
            let began = at("2026-01-01T00:00:00Z");
            let (mut now, mut dealt_with, mut runs) = (began, began, Vec::new());
            for (number, nap) in naps.into_iter().enumerate() {
                now = now.checked_add(SignedDuration::from_secs(nap)).unwrap();
                let awake_since = if number % 3 == 0 { now } else { began };
                let decision = decide(&schedule, &Seen { dealt_with, awake_since, now, catch_up: true, allowed: SignedDuration::ZERO });
                for missed in decision.missed {
                    runs.push(missed.first);
                    dealt_with = missed.last;
                }
                if let Next::Run { scheduled_at, .. } = decision.next {
                    runs.push(scheduled_at);
                    dealt_with = scheduled_at;
                }
            }
            let mut want = Vec::new();
            let mut at = began;
            while let Some(start) = schedule.after(at).filter(|it| *it <= now) {
                want.push(start);
                at = start;
            }
            proptest::prop_assert_eq!(runs, want);
        }
    }
}
