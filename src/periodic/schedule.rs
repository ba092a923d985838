//! When runs start: a rhythm, how far each start is moved by its jitter, and the hours in which runs may take place.
//! What a start that was not kept means, is told by `due`.

use std::fmt;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::cron::Cron;
use crate::target::scatter;

/// The instants at which runs are to start.
#[derive(Debug, Clone, PartialEq)]
pub enum Rhythm {
    /// When a cron expression says so, in the schedule's time zone.
    Cron(Cron),
    /// On a grid fixed in UTC, whole periods from the Unix epoch and an offset: who is late shifts nothing.
    Every {
        /// Seconds between two starts; at least one.
        period: i64,
        /// Seconds by which the grid is moved.
        offset: i64,
    },
}

/// The hours of the day in which runs may take place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// It opens.
    pub opens: Time,
    /// It closes; on the next day, where that is earlier.
    pub closes: Time,
}

/// When runs start.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// The instants.
    pub rhythm: Rhythm,
    /// Whose hours are meant by the expression and the window.
    pub zone: TimeZone,
    /// How far a start is moved at most.
    pub jitter: SignedDuration,
    /// Whom the jitter belongs to: two sweeps of one rhythm are moved apart.
    pub seed: u64,
    /// Runs take place in these hours only.
    pub window: Option<Window>,
}

impl Schedule {
    /// The first start after an instant, before jitter.
    #[must_use]
    pub fn after(&self, at: Timestamp) -> Option<Timestamp> {
        match &self.rhythm {
            Rhythm::Cron(cron) => cron.after(at, &self.zone),
            Rhythm::Every { period, offset } => {
                let periods = (at.as_second() - offset).div_euclid(*period);
                Timestamp::from_second(
                    periods
                        .checked_add(1)?
                        .checked_mul(*period)?
                        .checked_add(*offset)?,
                )
                .ok()
            }
        }
    }

    /// The last start up to an instant, before jitter.
    #[must_use]
    pub fn until(&self, at: Timestamp) -> Option<Timestamp> {
        match &self.rhythm {
            Rhythm::Cron(cron) => cron.until(at, &self.zone),
            Rhythm::Every { period, offset } => {
                let periods = (at.as_second() - offset).div_euclid(*period);
                Timestamp::from_second(periods * period + offset).ok()
            }
        }
    }

    /// A start with its jitter: the same whenever it is asked for.
    #[must_use]
    pub fn with_jitter(&self, start: Timestamp) -> Timestamp {
        let most = u64::try_from(self.jitter.as_millis()).unwrap_or_default();
        if most == 0 {
            return start;
        }
        let drawn = scatter(&start.to_string(), self.seed) % most;
        start
            .checked_add(SignedDuration::from_millis(
                i64::try_from(drawn).unwrap_or_default(),
            ))
            .unwrap_or(start)
    }

    /// The schedule without its jitter, for whoever is started by another clock.
    #[must_use]
    pub fn without_jitter(&self) -> Self {
        Self {
            jitter: SignedDuration::ZERO,
            ..self.clone()
        }
    }

    /// Whether runs may take place at an instant.
    #[must_use]
    pub fn is_open(&self, at: Timestamp) -> bool {
        let Some(window) = self.window else {
            return true;
        };
        let time = self.zone.to_datetime(at).time();
        if window.opens <= window.closes {
            window.opens <= time && time < window.closes
        } else {
            window.opens <= time || time < window.closes
        }
    }

    /// When the window opens next, at an instant at which it is closed.
    #[must_use]
    pub fn opens(&self, at: Timestamp) -> Option<Timestamp> {
        self.next_wall(self.window?.opens, at)
    }

    /// When the window closes next.
    #[must_use]
    pub fn closes(&self, at: Timestamp) -> Option<Timestamp> {
        self.next_wall(self.window?.closes, at)
    }

    /// The next instant after one at which the clock on the wall shows a time.
    fn next_wall(&self, time: Time, at: Timestamp) -> Option<Timestamp> {
        let mut date = self.zone.to_datetime(at).date();
        for _ in 0..3 {
            let wall = date.to_datetime(time);
            let instant = self.zone.to_ambiguous_timestamp(wall).compatible().ok()?;
            if instant > at {
                return Some(instant);
            }
            date = date.tomorrow().ok()?;
        }
        None
    }
}

/// As it was written, near enough to tell two schedules apart.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rhythm {
            Rhythm::Cron(cron) => {
                for field in cron.fields() {
                    let values: Vec<String> = field.values().map(|it| it.to_string()).collect();
                    write!(f, "{} ", values.join(","))?;
                }
                f.write_str(self.zone.iana_name().unwrap_or("UTC"))
            }
            Rhythm::Every { period, offset } => write!(f, "every {period}s from {offset}s"),
        }
    }
}

/// Reads `02:00-06:00`.
///
/// # Errors
/// When it is no pair of times; in words that say what to write.
pub fn window(text: &str) -> Result<Window, String> {
    let remedy = || format!("{text:?} is no window; write it as \"02:00-06:00\"");
    let (opens, closes) = text.split_once('-').ok_or_else(remedy)?;
    let read = |it: &str| it.trim().parse::<Time>().map_err(|_| remedy());
    let (opens, closes) = (read(opens)?, read(closes)?);
    if opens == closes {
        return Err(format!(
            "{text:?} is never open; leave it out for no window"
        ));
    }
    Ok(Window { opens, closes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn every(period: i64, offset: i64) -> Schedule {
        Schedule {
            rhythm: Rhythm::Every { period, offset },
            zone: TimeZone::UTC,
            jitter: SignedDuration::ZERO,
            seed: 1,
            window: None,
        }
    }

    #[test]
    fn a_grid_stands_still_whoever_is_late() {
        let daily = every(86_400, 3 * 3600);
        for (from, next, last) in [
            (
                "2026-11-30T02:59:59Z",
                "2026-11-30T03:00:00Z",
                "2026-11-29T03:00:00Z",
            ),
            (
                "2026-11-30T03:00:00Z",
                "2026-12-01T03:00:00Z",
                "2026-11-30T03:00:00Z",
            ),
            (
                "2026-11-30T17:12:00Z",
                "2026-12-01T03:00:00Z",
                "2026-11-30T03:00:00Z",
            ),
            (
                "1969-12-31T12:00:00Z",
                "1970-01-01T03:00:00Z",
                "1969-12-31T03:00:00Z",
            ),
        ] {
            assert_eq!(daily.after(at(from)), Some(at(next)), "{from}");
            assert_eq!(daily.until(at(from)), Some(at(last)), "{from}");
        }
    }

    #[test]
    fn jitter_is_drawn_once_for_a_start_and_stays_within_its_bound() {
        let jittery = Schedule {
            jitter: SignedDuration::from_mins(10),
            ..every(3600, 0)
        };
        let mut moved = std::collections::BTreeSet::new();
        for hour in 0..50 {
            let start = Timestamp::from_second(hour * 3600).unwrap();
            let with = jittery.with_jitter(start);
            assert_eq!(with, jittery.with_jitter(start));
            let by = with.duration_since(start);
            assert!(by >= SignedDuration::ZERO && by < SignedDuration::from_mins(10));
            moved.insert(by);
        }
        assert!(moved.len() > 40);
        let other = Schedule {
            seed: 2,
            ..jittery.clone()
        };
        assert_ne!(
            other.with_jitter(at("2026-11-30T03:00:00Z")),
            jittery.with_jitter(at("2026-11-30T03:00:00Z"))
        );
    }

    #[test]
    fn a_window_can_lie_across_midnight_and_follows_the_clock_on_the_wall() {
        let night = Schedule {
            window: Some(window("22:00-06:00").unwrap()),
            zone: jiff::tz::TimeZoneDatabase::bundled()
                .get("Europe/Berlin")
                .unwrap(),
            ..every(3600, 0)
        };
        for (time, open) in [
            ("2026-11-30T20:59:59Z", false),
            ("2026-11-30T21:00:00Z", true),
            ("2026-12-01T04:59:59Z", true),
            ("2026-12-01T05:00:00Z", false),
        ] {
            assert_eq!(night.is_open(at(time)), open, "{time}");
        }
        assert_eq!(
            night.opens(at("2026-11-30T12:00:00Z")),
            Some(at("2026-11-30T21:00:00Z"))
        );
        assert_eq!(
            night.closes(at("2026-11-30T22:00:00Z")),
            Some(at("2026-12-01T05:00:00Z"))
        );
        assert!(window("22-6").is_err() && window("03:00-03:00").is_err());
    }
}
