//! What of a run is worth an alert: confirmed changes of the world, thresholds that were crossed, runs that failed.
//! Sending it is `sweep`'s affair.

use serde_json::{Value, json};

use super::history::{Line, Status};
use super::series::Endpoints;
use crate::diff::{Aspect, Diff};
use crate::names::names;
use crate::outcome::Verdict;
use crate::report::{change_json, percent};
use crate::stats;

names! {
    /// What an alert is about.
    pub enum Event {
        /// Something changed, and it is the world's.
        Change = "change",
        /// A threshold was crossed.
        Regression = "regression",
        /// A run failed, is incomplete, or did not take place.
        Failure = "failure",
    }
}

/// When a change is a regression.
#[derive(Debug, Clone, PartialEq)]
pub struct Thresholds {
    /// The share that works fell by more than so many points beyond what chance explains.
    pub working_falls: f64,
    /// An endpoint left working in so many ...
    pub leaves: usize,
    /// ... of the last so many runs.
    pub of: usize,
    /// Which endpoints are watched, by address or name; all where none is given.
    pub endpoints: Vec<String>,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            working_falls: 1.0,
            leaves: 2,
            of: 3,
            endpoints: Vec::new(),
        }
    }
}

/// An alert.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// What it is about.
    pub event: Event,
    /// Why, a sentence each.
    pub reasons: Vec<String>,
}

/// What a run is held against.
#[derive(Debug, Default)]
pub struct Evidence<'a> {
    /// What changed since the run before that measured something.
    pub diff: Option<&'a Diff>,
    /// Every endpoint over the runs that can be compared, this one last.
    pub endpoints: Option<&'a Endpoints>,
    /// Failures that the baseline does not have.
    pub new_failures: &'a [(String, String)],
}

/// The alerts of a run.
#[must_use]
pub fn alerts(line: &Line, evidence: &Evidence<'_>, thresholds: &Thresholds) -> Vec<Alert> {
    let changes = evidence.diff.map(changes).unwrap_or_default();
    let regressions = regressions(evidence, thresholds);
    let failures = match line.status {
        Some(Status::Failed | Status::Incomplete) => {
            let status = line.status.map_or("", Status::name);
            vec![format!("the run is {status}: {}", line.reason)]
        }
        Some(Status::Complete | Status::Missed) | None => Vec::new(),
    };
    [
        (Event::Change, changes),
        (Event::Regression, regressions),
        (Event::Failure, failures),
    ]
    .into_iter()
    .filter(|(_, reasons)| !reasons.is_empty())
    .map(|(event, reasons)| Alert { event, reasons })
    .collect()
}

/// The alert of starts that were missed, however many; `last` is the last of them.
#[must_use]
pub fn missed(last: &Line, starts: u64) -> Alert {
    let until = last
        .deals_with()
        .map_or_else(String::new, |it| it.to_string());
    Alert {
        event: Event::Failure,
        reasons: vec![format!(
            "{starts} starts were missed up to {until}: {}",
            last.reason
        )],
    }
}

/// Confirmed changes of the world, and endpoints that came or went. An outcome tells of its verdict, too.
fn changes(diff: &Diff) -> Vec<String> {
    let moved = diff
        .of_the_world()
        .filter(|it| it.confirmed && it.aspect != Aspect::Outcome)
        .map(|it| {
            format!(
                "{}: {} {} -> {}",
                it.endpoint,
                it.aspect,
                shown(&it.before),
                shown(&it.after)
            )
        });
    let came = diff.appeared.iter().filter(|it| it.cause.is_none());
    let went = diff.gone.iter().filter(|it| it.cause.is_none());
    moved
        .chain(came.map(|it| format!("{}: listed", it.endpoint)))
        .chain(went.map(|it| format!("{}: not listed any more", it.endpoint)))
        .collect()
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "none" } else { value }
}

fn regressions(evidence: &Evidence<'_>, thresholds: &Thresholds) -> Vec<String> {
    let mut reasons = Vec::new();
    let working = evidence.diff.and_then(|diff| {
        diff.shifts
            .iter()
            .find(|it| it.aspect == Aspect::Verdict && it.value == Verdict::Working.name())
    });
    if let Some(shift) = working {
        let fall = stats::fall_beyond_noise(shift.gained, shift.lost, shift.of);
        if fall * 100.0 > thresholds.working_falls {
            reasons.push(format!(
                "the share that works fell from {} to {} of {} endpoints, by {:.1} points beyond noise",
                percent(stats::fraction(shift.before, shift.of)),
                percent(stats::fraction(shift.after, shift.of)),
                shift.of,
                fall * 100.0
            ));
        }
    }
    if let Some(endpoints) = evidence.endpoints {
        for (address, track) in &endpoints.tracks {
            let named = |it: &String| it == address || *it == track.name;
            let watched = thresholds.endpoints.is_empty() || thresholds.endpoints.iter().any(named);
            let left = |before| track.has_left(thresholds.leaves, thresholds.of, before);
            if watched && left(0) && !left(1) {
                reasons.push(format!(
                    "{address} left working in {} of {} runs",
                    thresholds.leaves, thresholds.of
                ));
            }
        }
    }
    let failures = evidence.new_failures.iter();
    reasons.extend(
        failures
            .map(|(url, check)| format!("{url} fails {check}, which the baseline does not have")),
    );
    reasons
}

/// What a hook reads: the difference as `diff --format json` has it, and what it is about.
#[must_use]
pub fn message(alert: &Alert, line: &Line, diff: Option<&Diff>) -> String {
    let mut value: Value = diff
        .and_then(|diff| serde_json::from_str(&change_json(diff)).ok())
        .unwrap_or_else(|| json!({}));
    value["event"] = alert.event.name().into();
    value["reasons"] = json!(alert.reasons);
    value["run"] = serde_json::to_value(line).unwrap_or_default();
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Cause, Change, Shift};
    use crate::periodic::series::Fared;

    fn diff(changes: Vec<Change>, lost: u64) -> Diff {
        Diff {
            labels: [String::new(), String::new()],
            instrument: Vec::new(),
            common: 1000,
            appeared: Vec::new(),
            gone: Vec::new(),
            changes,
            shifts: vec![Shift {
                aspect: Aspect::Verdict,
                value: Verdict::Working.name(),
                before: 600,
                after: 600 - lost,
                of: 1000,
                gained: 0,
                lost,
                p: 0.0,
                whole: [(600, 1000), (600 - lost, 1000)],
                p_whole: None,
            }],
        }
    }

    fn change(cause: Option<Cause>, confirmed: bool) -> Change {
        Change {
            endpoint: "https://a.test/".into(),
            name: "a".into(),
            aspect: Aspect::Verdict,
            before: "working".into(),
            after: "down".into(),
            cause,
            confirmed,
        }
    }

    fn events(diff: &Diff, line: &Line) -> Vec<Event> {
        let evidence = Evidence {
            diff: Some(diff),
            ..Evidence::default()
        };
        alerts(line, &evidence, &Thresholds::default())
            .into_iter()
            .map(|it| it.event)
            .collect()
    }

    #[test]
    fn only_confirmed_changes_of_the_world_alert() {
        let complete = Line {
            status: Some(Status::Complete),
            ..Line::default()
        };
        assert_eq!(
            events(&diff(vec![change(None, true)], 1), &complete),
            [Event::Change]
        );
        assert_eq!(events(&diff(vec![change(None, false)], 1), &complete), []);
        assert_eq!(
            events(&diff(vec![change(Some(Cause::Rules), true)], 1), &complete),
            []
        );
    }

    #[test]
    fn a_share_regresses_when_it_falls_beyond_noise_by_more_than_the_threshold() {
        let complete = Line {
            status: Some(Status::Complete),
            ..Line::default()
        };
        assert_eq!(
            events(&diff(Vec::new(), 15), &complete),
            [],
            "15 of 1,000: 0.7 points beyond noise"
        );
        assert_eq!(
            events(&diff(Vec::new(), 40), &complete),
            [Event::Regression]
        );
    }

    #[test]
    fn an_endpoint_that_leaves_alerts_once_and_only_if_it_is_watched() {
        let mut endpoints = Endpoints::default();
        let complete = Line {
            status: Some(Status::Complete),
            ..Line::default()
        };
        let mut told = Vec::new();
        for verdict in [
            Verdict::Working,
            Verdict::Down,
            Verdict::Down,
            Verdict::Down,
        ] {
            let rows = ["a", "b"].map(|it| {
                (
                    format!("https://{it}.test/"),
                    it.to_owned(),
                    Fared {
                        verdict,
                        confirmed: true,
                    },
                )
            });
            endpoints.add(&rows);
            let evidence = Evidence {
                endpoints: Some(&endpoints),
                ..Evidence::default()
            };
            let thresholds = Thresholds {
                endpoints: vec!["b".into()],
                ..Thresholds::default()
            };
            told.push(alerts(&complete, &evidence, &thresholds));
        }
        let counts: Vec<usize> = told.iter().map(Vec::len).collect();
        assert_eq!(counts, [0, 0, 1, 0]);
        assert_eq!(
            told[2][0].reasons,
            ["https://b.test/ left working in 2 of 3 runs"]
        );
    }

    #[test]
    fn a_run_that_is_no_whole_one_is_a_failure() {
        let failed = Line {
            status: Some(Status::Failed),
            reason: "list".into(),
            ..Line::default()
        };
        let told = alerts(&failed, &Evidence::default(), &Thresholds::default());
        assert_eq!(
            (told[0].event, told[0].reasons[0].as_str()),
            (Event::Failure, "the run is failed: list")
        );
        let message: Value = serde_json::from_str(&message(&told[0], &failed, None)).unwrap();
        assert_eq!(
            (&message["event"], &message["run"]["status"]),
            (&json!("failure"), &json!("failed"))
        );
    }
}
