//! The details that an outcome can carry, with the verdict each leads to: the enums behind the `detail` column, listed.

use std::fmt::Display;

use crate::exchange::{ConnectFault, DnsFault, Drop, Stage, TlsFault};
use crate::outcome::{
    Challenge, DeadEnd, Detail, Envelope, Framing, NotJson, Outcome, Payment, Problem, Refusal,
    Turn, Unmeasured, Unprobeable, Verdict, Violation, verdict,
};

/// One detail.
pub(super) struct Narrowing {
    /// As it stands in the column.
    pub(super) name: String,
    /// What it means.
    pub(super) about: &'static str,
    /// The verdict it leads to.
    pub(super) verdict: Verdict,
}

impl Narrowing {
    fn of(detail: &Detail, about: &'static str) -> Self {
        Self::called(detail, detail, about)
    }

    fn called(name: impl Display, detail: &Detail, about: &'static str) -> Self {
        Self {
            name: name.to_string(),
            about,
            verdict: verdict(detail, None, false),
        }
    }
}

/// One for each variant.
fn each<T: Copy>(
    all: &[T],
    about: impl Fn(T) -> &'static str,
    detail: impl Fn(T) -> Detail,
) -> Vec<Narrowing> {
    all.iter()
        .map(|&it| Narrowing::of(&detail(it), about(it)))
        .collect()
}

/// The details of an outcome. Where a detail is a number, there is one entry for the numbers alike.
pub(super) fn details(outcome: Outcome) -> Vec<Narrowing> {
    match outcome {
        Outcome::Success => each(Framing::ALL, Framing::about, Detail::Framing),
        Outcome::JsonrpcError => vec![Narrowing::called(
            "CODE",
            &Detail::Code(0),
            "The error code; `mcp-census explain CODE` tells what it means.",
        )],
        Outcome::ProtocolViolation => {
            let mut all = each(Violation::ALL, Violation::about, Detail::Violation);
            for &problem in Problem::ALL {
                all.push(Narrowing::called(
                    format_args!("MEMBER_{problem}"),
                    &Detail::Member(String::new(), problem),
                    match problem {
                        Problem::Missing => "A required member of the result is not there.",
                        Problem::Type => "A member of the result is of another type.",
                        Problem::Malformed => {
                            "A member of the result is of the right type, and no possible value."
                        }
                    },
                ));
            }
            all
        }
        Outcome::AuthRequired => each(Challenge::ALL, Challenge::about, Detail::Challenge),
        Outcome::PaymentRequired => each(Payment::ALL, Payment::about, Detail::Payment),
        Outcome::Forbidden => each(Refusal::ALL, Refusal::about, Detail::Refusal),
        Outcome::HtmlPage => vec![
            Narrowing::of(&Detail::Html, "The address itself serves the page."),
            Narrowing::of(
                &Detail::HtmlAfterRedirect,
                "A redirect was followed to the page.",
            ),
        ],
        Outcome::NonEnvelope => each(Envelope::ALL, Envelope::about, Detail::Envelope),
        Outcome::InvalidJson => each(NotJson::ALL, NotJson::about, Detail::NotJson),
        Outcome::EmptyBody => vec![
            Narrowing::called("2XX", &Detail::Status(200), "The status, and no body."),
            Narrowing::of(
                &Detail::SseNoEvents,
                "An event stream that ended without an event.",
            ),
        ],
        Outcome::NotFound => vec![
            Narrowing::of(&Detail::Status(404), "No such path."),
            Narrowing::of(&Detail::Status(410), "Gone for good."),
        ],
        Outcome::MethodNotAllowed => vec![Narrowing::of(
            &Detail::Status(405),
            "The path is there, and takes no POST.",
        )],
        Outcome::Redirect => redirects(),
        Outcome::HttpError => vec![
            Narrowing::called(
                "4XX",
                &Detail::Status(400),
                "The server refuses the request.",
            ),
            Narrowing::called(
                "5XX",
                &Detail::Status(500),
                "The server failed, or what stands before it did not reach it.",
            ),
        ],
        Outcome::RateLimited => vec![
            Narrowing::of(&Detail::Status(429), "It does not say for how long."),
            Narrowing::called(
                "retry_after=N",
                &Detail::RetryAfter(0),
                "Not before so many seconds.",
            ),
            Narrowing::of(
                &Detail::RateLimitedChallenge,
                "With a challenge for browsers.",
            ),
        ],
        Outcome::Timeout => each(Stage::ALL, Stage::about, Detail::Stage),
        Outcome::DnsFailure => each(DnsFault::ALL, DnsFault::about, Detail::Dns),
        Outcome::ConnectFailure => each(ConnectFault::ALL, ConnectFault::about, Detail::Connect),
        Outcome::TlsFailure => each(TlsFault::ALL, TlsFault::about, Detail::Tls),
        Outcome::ConnectionDropped => each(Drop::ALL, Drop::about, Detail::Drop),
        Outcome::Unprobeable => each(Unprobeable::ALL, Unprobeable::about, Detail::Unprobeable),
        Outcome::Unmeasured => each(Unmeasured::ALL, Unmeasured::about, Detail::Unmeasured),
    }
}

fn redirects() -> Vec<Narrowing> {
    let mut all = vec![Narrowing::called(
        "3XX",
        &Detail::Redirect(301, None),
        "The status of a redirect that a POST does not follow.",
    )];
    for &turn in Turn::ALL {
        all.push(Narrowing::called(
            format_args!("3XX_{turn}"),
            &Detail::Redirect(302, Some(turn)),
            turn.about(),
        ));
    }
    all.extend(each(DeadEnd::ALL, DeadEnd::about, Detail::DeadEnd));
    all
}

/// What a detail of an outcome means, as it stands in a row. `None` where it has no meaning of its own.
pub(super) fn meaning(outcome: Outcome, detail: &str) -> Option<&'static str> {
    details(outcome)
        .into_iter()
        .find(|it| it.name == detail || fits(&it.name, detail))
        .map(|it| it.about)
}

/// Whether a detail is one of those that a name with a placeholder stands for.
fn fits(name: &str, detail: &str) -> bool {
    let is_class = |class: &str, status: &str| {
        status.len() == 3 && status.is_ascii() && status[..1] == class[..1]
    };
    match name {
        "CODE" => false,
        "2XX" | "3XX" | "4XX" | "5XX" => is_class(name, detail),
        _ => {
            if let Some(problem) = name.strip_prefix("MEMBER_") {
                detail
                    .strip_suffix(problem)
                    .is_some_and(|member| member.ends_with('_'))
            } else if let Some(turn) = name.strip_prefix("3XX_") {
                detail
                    .split_once('_')
                    .is_some_and(|(status, it)| it == turn && is_class("3XX", status))
            } else {
                name.strip_suffix("=N").is_some_and(|kind| {
                    detail
                        .split_once('=')
                        .is_some_and(|(before, _)| before == kind)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_of_a_row_has_the_meaning_of_its_name() {
        for (outcome, detail, want) in [
            (Outcome::Success, "json", Some("One JSON object.")),
            (Outcome::EmptyBody, "202", Some("The status, and no body.")),
            (
                Outcome::RateLimited,
                "retry_after=30",
                Some("Not before so many seconds."),
            ),
            (
                Outcome::ProtocolViolation,
                "serverInfo_missing",
                Some("A required member of the result is not there."),
            ),
            (Outcome::JsonrpcError, "-32601", None),
            (
                Outcome::Redirect,
                "301",
                Some("The status of a redirect that a POST does not follow."),
            ),
        ] {
            assert_eq!(meaning(outcome, detail), want, "{outcome} {detail}");
        }
    }
}
