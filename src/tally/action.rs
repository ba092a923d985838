//! Rows that the maintainer of a list can act on: what one mechanism did to them, and the correction it suggests.

use crate::exchange::{DnsFault, TlsFault};
use crate::finding::Check;
use crate::names::names;
use crate::outcome::{Hint, Outcome, Transport, Unprobeable, Verdict};
use crate::row::Row;

names! {
    /// What went wrong with a listing, as far as its row tells.
    pub enum Mechanism {
        /// A placeholder was left in the listed address.
        TemplateLeftIn = "template_left_in",
        /// The listed address is none, or none that can be reached from outside.
        UnusableAddress = "unusable_address",
        /// The listed address holds credentials.
        CredentialsListed = "credentials_listed",
        /// The host's name does not exist, or has no address.
        DeadName = "dead_name",
        /// The server's certificate is not to be trusted.
        TlsCertificate = "tls_certificate",
        /// The hosting platform answers that the deployment is gone.
        DeploymentGone = "deployment_gone",
        /// Every row of the host is answered with 404 or 410.
        HostNotFound = "host_not_found",
        /// This path is answered with 404 or 410, and others of the host are not.
        PathNotFound = "path_not_found",
        /// Declared as HTTP+SSE, and speaks Streamable HTTP.
        IsStreamableHttp = "is_streamable_http",
        /// Declared as Streamable HTTP, and speaks HTTP+SSE.
        IsSse = "is_sse",
        /// It works at the target of a redirect that clients do not follow, or one that is permanent.
        Moved = "moved",
        /// Listed as `http`, and answers under `https`.
        ListedAsHttp = "listed_as_http",
    }
}

impl Mechanism {
    /// The correction that it suggests.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::TemplateLeftIn => {
                "give the placeholder a default, or mark the row as one that each user fills in"
            }
            Self::UnusableAddress => "list a public http or https address, or withdraw the row",
            Self::CredentialsListed => {
                "take the credentials out of the address, and have them revoked"
            }
            Self::DeadName => "ask the publisher for the new name, or withdraw the row",
            Self::TlsCertificate => {
                "tell the operator; withdraw the row if the certificate is not mended"
            }
            Self::DeploymentGone => {
                "ask the publisher whether it was deployed elsewhere, or withdraw the row"
            }
            Self::HostNotFound => {
                "one question to the operator settles all of them: what is the path now"
            }
            Self::PathNotFound => {
                "compare with the rows of the host that answer; the path was renamed or withdrawn"
            }
            Self::IsStreamableHttp => "declare streamable-http",
            Self::IsSse => "declare sse",
            Self::Moved => "list the address in the column final_url, or the redirect's target",
            Self::ListedAsHttp => "list the https address",
        }
    }
}

/// The mechanism behind a row, the first that fits. A 404 is [`Mechanism::PathNotFound`] here: one row cannot
/// tell whether its whole host is gone.
#[must_use]
pub fn mechanism(row: &Row) -> Option<Mechanism> {
    let has = |check: Check| checks(row).any(|it| it == check.name());
    match row.outcome {
        Outcome::Unprobeable => {
            return match Unprobeable::named(&row.detail)? {
                Unprobeable::Template => Some(Mechanism::TemplateLeftIn),
                Unprobeable::Userinfo => Some(Mechanism::CredentialsListed),
                Unprobeable::Scheme
                | Unprobeable::PrivateAddress
                | Unprobeable::Empty
                | Unprobeable::InvalidUrl
                | Unprobeable::BadRow
                | Unprobeable::Deleted => Some(Mechanism::UnusableAddress),
                Unprobeable::Excluded | Unprobeable::Robots => None,
            };
        }
        Outcome::DnsFailure => {
            return match DnsFault::named(&row.detail)? {
                DnsFault::NxDomain | DnsFault::NoData => Some(Mechanism::DeadName),
                DnsFault::ServFail | DnsFault::Timeout => None,
            };
        }
        Outcome::TlsFailure => {
            return match TlsFault::named(&row.detail)? {
                TlsFault::Expired
                | TlsFault::NotYetValid
                | TlsFault::UnknownIssuer
                | TlsFault::WrongHost
                | TlsFault::Revoked
                | TlsFault::BadCertificate => Some(Mechanism::TlsCertificate),
                TlsFault::ProtocolVersion
                | TlsFault::NotTls
                | TlsFault::Alert
                | TlsFault::ClientCertRequired
                | TlsFault::Reset
                | TlsFault::Closed
                | TlsFault::Other => None,
            };
        }
        Outcome::Success
        | Outcome::JsonrpcError
        | Outcome::ProtocolViolation
        | Outcome::AuthRequired
        | Outcome::PaymentRequired
        | Outcome::Forbidden
        | Outcome::HtmlPage
        | Outcome::NonEnvelope
        | Outcome::InvalidJson
        | Outcome::EmptyBody
        | Outcome::NotFound
        | Outcome::MethodNotAllowed
        | Outcome::Redirect
        | Outcome::HttpError
        | Outcome::RateLimited
        | Outcome::Timeout
        | Outcome::ConnectFailure
        | Outcome::ConnectionDropped
        | Outcome::Unmeasured => {}
    }
    if !row.verdict.is_measured() {
        return None;
    }
    if row.hint == Some(Hint::DeploymentGone) || has(Check::PlatformAppMissing) {
        return Some(Mechanism::DeploymentGone);
    }
    if row.outcome == Outcome::NotFound {
        return Some(Mechanism::PathNotFound);
    }
    match (row.declared_transport, row.transport) {
        (Some(Transport::HttpSse), Some(Transport::StreamableHttp)) => {
            return Some(Mechanism::IsStreamableHttp);
        }
        (Some(Transport::StreamableHttp), Some(Transport::HttpSse)) => {
            return Some(Mechanism::IsSse);
        }
        (Some(_) | None, _) => {}
    }
    let lives = matches!(row.verdict, Verdict::Working | Verdict::Gated);
    if has(Check::RedirectTargetWouldSucceed)
        || (lives && row.findings.split(';').any(|it| it == permanent()))
    {
        return Some(Mechanism::Moved);
    }
    if has(Check::ListedAsPlainHttp) {
        return Some(Mechanism::ListedAsHttp);
    }
    has(Check::CredentialsInListing).then_some(Mechanism::CredentialsListed)
}

/// How the finding of a permanent redirect reads in a row.
fn permanent() -> String {
    Check::Redirected.of("308").to_string()
}

/// The names of the checks in a row's findings.
pub fn checks(row: &Row) -> impl Iterator<Item = &str> {
    row.findings
        .split(';')
        .map(|finding| finding.split_once(':').map_or(finding, |(check, _)| check))
        .filter(|check| !check.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::sample::row;

    #[track_caller]
    fn check(row: &Row, want: Option<Mechanism>) {
        assert_eq!(mechanism(row), want, "{} {}", row.outcome, row.detail);
    }

    #[test]
    fn a_row_to_act_on_has_one_mechanism() {
        use Outcome as O;
        use Verdict as V;
        for (outcome, detail, verdict, want) in [
            (
                O::Unprobeable,
                "template",
                V::Unprobeable,
                Some(Mechanism::TemplateLeftIn),
            ),
            (
                O::Unprobeable,
                "private_address",
                V::Unprobeable,
                Some(Mechanism::UnusableAddress),
            ),
            (O::Unprobeable, "excluded", V::Unprobeable, None),
            (
                O::DnsFailure,
                "nxdomain",
                V::Down,
                Some(Mechanism::DeadName),
            ),
            (O::DnsFailure, "servfail", V::Down, None),
            (
                O::TlsFailure,
                "expired",
                V::Down,
                Some(Mechanism::TlsCertificate),
            ),
            (O::TlsFailure, "alert", V::Down, None),
            (O::NotFound, "404", V::NotMcp, Some(Mechanism::PathNotFound)),
            (O::Success, "json", V::Working, None),
            (O::RateLimited, "429", V::Unmeasured, None),
        ] {
            check(&row(outcome, detail, verdict), want);
        }
    }

    #[test]
    fn what_was_noticed_names_a_mechanism_too() {
        let working = || row(Outcome::Success, "json", Verdict::Working);
        let found = |findings: &str| Row {
            findings: findings.to_owned(),
            ..working()
        };
        check(&found("html_body;redirected:308"), Some(Mechanism::Moved));
        check(&found("redirected:307"), None);
        check(
            &found("listed_as_plain_http"),
            Some(Mechanism::ListedAsHttp),
        );
        check(
            &Row {
                declared_transport: Some(Transport::HttpSse),
                transport: Some(Transport::StreamableHttp),
                ..working()
            },
            Some(Mechanism::IsStreamableHttp),
        );
        check(
            &Row {
                hint: Some(Hint::DeploymentGone),
                ..row(Outcome::NotFound, "404", Verdict::NotMcp)
            },
            Some(Mechanism::DeploymentGone),
        );
    }
}
