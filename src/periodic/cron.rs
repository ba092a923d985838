//! Cron expressions: five fields -> the instants they name in a time zone, across changes of summer time. What is
//! done then is told elsewhere.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::{AmbiguousOffset, TimeZone};

/// Days that are looked at for the next start: 29 February can be eight years off (1896 to 1904).
const DAYS: u32 = 366 * 9;

/// The fields, each with its least and greatest value and the names of its values from the least on.
const FIELDS: [(&str, u32, u32, &[&str]); 5] = [
    ("minute", 0, 59, &[]),
    ("hour", 0, 23, &[]),
    ("day of the month", 1, 31, &[]),
    (
        "month",
        1,
        12,
        &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    ),
    (
        "day of the week",
        0,
        7,
        &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    ),
];

/// What stands for a whole expression.
const SHORT: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// One field: which of its values it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    bits: u64,
    /// It was written with a star in front, so it restricts nothing by itself.
    starred: bool,
}

impl Field {
    pub(super) const fn has(self, value: u32) -> bool {
        self.bits >> value & 1 == 1
    }

    pub(super) fn values(self) -> impl Iterator<Item = u32> {
        (0..64).filter(move |it| self.has(*it))
    }

    /// Whether it leaves every value open.
    pub(super) const fn is_starred(self) -> bool {
        self.starred
    }
}

/// A cron expression: minute, hour, day of the month, month, day of the week.
///
/// As cron has it, a day is meant when both fields of days agree, or either where both are restricted. A time that
/// a change of summer time skips comes at the first instant after it, one that it repeats comes once; where the hour
/// is starred, the clock on the wall is not meant, and every hour that passes counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    fields: [Field; 5],
}

impl Cron {
    /// Reads an expression.
    ///
    /// # Errors
    /// When it is none, or names no day that ever comes; in words that say what to write.
    pub fn read(text: &str) -> Result<Self, String> {
        let short = SHORT.iter().find(|(name, _)| *name == text.trim());
        let text = short.map_or(text, |(_, long)| long);
        let parts: Vec<&str> = text.split_whitespace().collect();
        if parts.len() != FIELDS.len() {
            return Err(format!(
                "a cron expression has five fields (minute, hour, day of the month, month, day of the week), not {}; \
                 for example \"0 3 * * *\" for every day at 03:00",
                parts.len()
            ));
        }
        let mut fields = [Field {
            bits: 0,
            starred: false,
        }; 5];
        for ((field, part), (name, least, most, names)) in fields.iter_mut().zip(parts).zip(FIELDS)
        {
            *field = read_field(part, least, most, names)
                .map_err(|why| format!("{name} {part:?}: {why}"))?;
        }
        // Sunday is 0 and 7.
        if fields[4].has(7) {
            fields[4].bits = fields[4].bits & !(1 << 7) | 1;
        }
        let cron = Self { fields };
        if cron.after(Timestamp::UNIX_EPOCH, &TimeZone::UTC).is_none() {
            return Err("it names no day that ever comes".to_owned());
        }
        Ok(cron)
    }

    /// The first start after an instant.
    #[must_use]
    pub fn after(&self, at: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut date = zone.to_datetime(at).date();
        for _ in 0..DAYS {
            if let Some(start) = self.starts(date, zone).into_iter().find(|it| *it > at) {
                return Some(start);
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// The last start up to an instant, and at it.
    #[must_use]
    pub fn until(&self, at: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut date = zone.to_datetime(at).date();
        for _ in 0..DAYS {
            if let Some(start) = self
                .starts(date, zone)
                .into_iter()
                .rev()
                .find(|it| *it <= at)
            {
                return Some(start);
            }
            date = date.yesterday().ok()?;
        }
        None
    }

    pub(super) const fn fields(&self) -> [Field; 5] {
        self.fields
    }

    fn is_day(&self, date: Date) -> bool {
        let [_, _, days, months, weekdays] = self.fields;
        let by_month = days.has(number(date.day()));
        let by_week = weekdays.has(number(date.weekday().to_sunday_zero_offset()));
        let day = if days.starred || weekdays.starred {
            by_month && by_week
        } else {
            by_month || by_week
        };
        months.has(number(date.month())) && day
    }

    /// The starts of a day on the calendar, first to last.
    fn starts(&self, date: Date, zone: &TimeZone) -> Vec<Timestamp> {
        let mut starts = Vec::new();
        if !self.is_day(date) {
            return starts;
        }
        let [minutes, hours, ..] = self.fields;
        for (hour, minute) in hours
            .values()
            .flat_map(|hour| minutes.values().map(move |minute| (hour, minute)))
        {
            let (Ok(hour), Ok(minute)) = (i8::try_from(hour), i8::try_from(minute)) else {
                continue;
            };
            let wall = date.at(hour, minute, 0, 0);
            let candidates = match zone.to_ambiguous_timestamp(wall).offset() {
                AmbiguousOffset::Unambiguous { offset } => vec![offset.to_timestamp(wall)],
                AmbiguousOffset::Gap { .. } if hours.starred => Vec::new(),
                // As the clock went before the gap, it would be after it.
                AmbiguousOffset::Gap { before, .. } => {
                    vec![before.to_timestamp(wall).map(|it| change_before(it, zone))]
                }
                AmbiguousOffset::Fold { before, after } if hours.starred => {
                    vec![before.to_timestamp(wall), after.to_timestamp(wall)]
                }
                AmbiguousOffset::Fold { before, .. } => vec![before.to_timestamp(wall)],
            };
            starts.extend(candidates.into_iter().flatten());
        }
        starts.sort_unstable();
        starts.dedup();
        starts
    }
}

/// The zone's last change of its offset up to an instant, and at it.
fn change_before(at: Timestamp, zone: &TimeZone) -> Timestamp {
    let just_after = at
        .checked_add(jiff::SignedDuration::from_secs(1))
        .unwrap_or(at);
    zone.preceding(just_after)
        .next()
        .map_or(at, |it| it.timestamp())
}

fn number(of: i8) -> u32 {
    u32::from(of.unsigned_abs())
}

fn read_field(text: &str, least: u32, most: u32, names: &[&str]) -> Result<Field, String> {
    let mut bits = 0u64;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                let step: u32 = step
                    .parse()
                    .ok()
                    .filter(|it| *it > 0)
                    .ok_or_else(|| format!("the step {step:?} is no number above 0"))?;
                (range, Some(step))
            }
            None => (part, None),
        };
        let value = |text: &str| -> Result<u32, String> {
            let lower = text.to_ascii_lowercase();
            if let Some(at) = names.iter().position(|it| *it == lower) {
                return Ok(least + u32::try_from(at).unwrap_or_default());
            }
            lower
                .parse()
                .ok()
                .filter(|it| (least..=most).contains(it))
                .ok_or_else(|| format!("{text:?} is not between {least} and {most}"))
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (least, most.min(if names.len() == 7 { 6 } else { most })),
            Some((from, to)) => (value(from)?, value(to)?),
            // As cron has it, a step from a single value goes to the end.
            None if step.is_some() => (
                value(range)?,
                most.min(if names.len() == 7 { 6 } else { most }),
            ),
            None => (value(range)?, value(range)?),
        };
        if from > to {
            return Err(format!(
                "the range {range} runs backwards; write it as two, joined by a comma"
            ));
        }
        let step = usize::try_from(step.unwrap_or(1)).unwrap_or(1);
        for value in (from..=to).step_by(step) {
            bits |= 1 << value;
        }
    }
    Ok(Field {
        bits,
        starred: text.starts_with('*'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(name: &str) -> TimeZone {
        jiff::tz::TimeZoneDatabase::bundled().get(name).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check(expression: &str, zone_name: &str, from: &str, want: &[&str]) {
        let (cron, zone) = (Cron::read(expression).unwrap(), zone(zone_name));
        let mut now = at(from);
        let mut got = Vec::new();
        for _ in want {
            let next = cron.after(now, &zone).unwrap();
            assert_eq!(
                cron.until(next, &zone),
                Some(next),
                "{expression}: there and back"
            );
            now = next;
            got.push(next.to_string());
        }
        assert_eq!(got, want, "{expression} in {zone_name}");
    }

    #[test]
    fn the_fields_mean_what_cron_means_by_them() {
        check(
            "0 3 * * *",
            "UTC",
            "2026-11-30T03:00:00Z",
            &["2026-12-01T03:00:00Z"],
        );
        check(
            "*/20 1-2 * * *",
            "UTC",
            "2026-11-30T01:30:00Z",
            &[
                "2026-11-30T01:40:00Z",
                "2026-11-30T02:00:00Z",
                "2026-11-30T02:20:00Z",
            ],
        );
        check(
            "0 0 29 feb *",
            "UTC",
            "2026-11-30T00:00:00Z",
            &["2028-02-29T00:00:00Z"],
        );
        check(
            "0 9 * * mon-fri",
            "UTC",
            "2026-11-27T10:00:00Z",
            &["2026-11-30T09:00:00Z"],
        );
        check(
            "0 9 * * 7",
            "UTC",
            "2026-11-30T00:00:00Z",
            &["2026-12-06T09:00:00Z"],
        );
        check(
            "@weekly",
            "UTC",
            "2026-11-30T00:00:00Z",
            &["2026-12-06T00:00:00Z"],
        );
        // Both days restricted: either will do.
        check(
            "0 0 13 * fri",
            "UTC",
            "2026-11-10T00:00:00Z",
            &["2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"],
        );
    }

    #[test]
    fn a_skipped_time_comes_right_after_and_a_repeated_one_once() {
        // Berlin goes from 02:00 to 03:00 at 01:00Z on 29 March 2026, and from 03:00 to 02:00 at 01:00Z on 25 October.
        check(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-03-28T00:00:00Z",
            &[
                "2026-03-28T01:30:00Z",
                "2026-03-29T01:00:00Z",
                "2026-03-30T00:30:00Z",
            ],
        );
        check(
            "30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T12:00:00Z",
            &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
        );
        // Two times that fall into one instant are one.
        check(
            "0,30 2-3 * * *",
            "Europe/Berlin",
            "2026-03-28T23:00:00Z",
            &[
                "2026-03-29T01:00:00Z",
                "2026-03-29T01:30:00Z",
                "2026-03-30T00:00:00Z",
            ],
        );
    }

    #[test]
    fn every_hour_is_every_hour_that_passes() {
        let hours = |from, want: &[&str]| check("0 * * * *", "Europe/Berlin", from, want);
        hours(
            "2026-03-29T00:00:00Z",
            &["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"],
        );
        hours(
            "2026-10-24T23:00:00Z",
            &[
                "2026-10-25T00:00:00Z",
                "2026-10-25T01:00:00Z",
                "2026-10-25T02:00:00Z",
            ],
        );
        // Lord Howe Island changes by half an hour.
        check(
            "0 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-02T16:00:00Z",
            &["2026-10-03T15:30:00Z", "2026-10-04T15:00:00Z"],
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (text, says) in [
            ("0 3 * *", "five fields"),
            ("0 0 3 * * *", "five fields"),
            (
                "60 3 * * *",
                "minute \"60\": \"60\" is not between 0 and 59",
            ),
            ("0 3 * * funday", "day of the week"),
            ("0 */0 * * *", "step"),
            ("0 22-2 * * *", "runs backwards"),
            ("0 0 30 2 *", "no day that ever comes"),
        ] {
            let error = Cron::read(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
