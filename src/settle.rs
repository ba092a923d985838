//! The readings of several attempts at one endpoint -> one. An accusation is made only when every attempt agrees.

use crate::classify::Reading;
use crate::finding::{Check, Finding};
use crate::outcome::{Outcome, Verdict};

/// What all attempts at an endpoint tell together.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// The attempt that speaks: the one that got furthest, the first of those.
    pub reading: Reading,
    /// Which attempt that is, counted from 0.
    pub speaks: usize,
    /// The attempts that measured something disagree.
    pub flaky: bool,
}

/// Whether a reading is worth asking again: it accuses the endpoint, or measured nothing.
#[must_use]
pub const fn is_doubtful(reading: &Reading) -> bool {
    match reading.verdict {
        Verdict::Working | Verdict::Gated | Verdict::Unprobeable => false,
        Verdict::Faulty | Verdict::NotMcp | Verdict::Down | Verdict::Unmeasured => true,
    }
}

/// Folds the attempts, first to last. `None` where there is none.
#[must_use]
pub fn settle(readings: Vec<Reading>) -> Option<Settled> {
    let measured: Vec<Outcome> = readings
        .iter()
        .filter(|it| it.verdict.is_measured())
        .map(|it| it.detail.outcome())
        .collect();
    let flaky = measured.windows(2).any(|pair| pair[0] != pair[1]);
    let furthest = readings.iter().map(reach).max()?;
    let (speaks, mut reading) = readings
        .into_iter()
        .enumerate()
        .find(|(_, it)| reach(it) == furthest)?;
    if flaky {
        let said: Vec<&str> = measured.iter().map(|it| it.name()).collect();
        reading.findings.push(Finding {
            check: Check::AttemptsDisagree,
            about: Some(said.join(",")),
        });
    }
    Some(Settled {
        reading,
        speaks,
        flaky,
    })
}

/// How far an attempt got.
const fn reach(reading: &Reading) -> u8 {
    if matches!(reading.verdict, Verdict::Working) {
        return 9;
    }
    match reading.detail.outcome() {
        Outcome::Unmeasured => 0,
        Outcome::RateLimited | Outcome::Unprobeable => 1,
        Outcome::DnsFailure => 2,
        Outcome::ConnectFailure | Outcome::Timeout => 3,
        Outcome::TlsFailure => 4,
        Outcome::ConnectionDropped => 5,
        Outcome::HtmlPage
        | Outcome::InvalidJson
        | Outcome::NonEnvelope
        | Outcome::EmptyBody
        | Outcome::NotFound
        | Outcome::MethodNotAllowed
        | Outcome::Redirect
        | Outcome::HttpError => 6,
        Outcome::ProtocolViolation | Outcome::JsonrpcError => 7,
        Outcome::AuthRequired | Outcome::PaymentRequired | Outcome::Forbidden => 8,
        Outcome::Success => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{DnsFault, Stage};
    use crate::outcome::{Challenge, Detail, Framing, Unmeasured};

    #[track_caller]
    fn check(attempts: &[Detail], want: &str, flaky: bool) {
        let settled = settle(attempts.iter().cloned().map(Reading::of).collect()).unwrap();
        assert_eq!(
            (settled.reading.detail.outcome().name(), settled.flaky),
            (want, flaky)
        );
    }

    #[test]
    fn the_attempt_that_got_furthest_speaks() {
        let (down, works) = (
            Detail::Stage(Stage::FirstByte),
            Detail::Framing(Framing::Json),
        );
        check(&[down.clone(), works], "success", true);
        check(
            &[down.clone(), Detail::Challenge(Challenge::Bearer)],
            "auth_required",
            true,
        );
        check(
            &[down.clone(), Detail::Stage(Stage::Body)],
            "timeout",
            false,
        );
        check(
            &[Detail::Dns(DnsFault::NxDomain), Detail::Status(404)],
            "not_found",
            true,
        );
    }

    #[test]
    fn an_attempt_that_measured_nothing_contradicts_nobody() {
        check(
            &[Detail::Status(404), Detail::Status(429)],
            "not_found",
            false,
        );
        check(
            &[
                Detail::Unmeasured(Unmeasured::Interrupted),
                Detail::Status(404),
            ],
            "not_found",
            false,
        );
    }
}
