//! How far an endpoint got: the layers of the funnel, read off a finished row.

use crate::exchange::{Drop, Stage};
use crate::names::names;
use crate::outcome::{BodyKind, Outcome, Verdict, Violation};
use crate::row::Row;

names! {
    /// A layer that an exchange has to pass, outermost first.
    pub enum Layer {
        /// It was asked.
        Asked = "asked",
        /// Its name resolves to a public address.
        Resolved = "resolved",
        /// It accepts a connection.
        Connected = "connected",
        /// It has a TLS session with us, where its address wants one.
        Secured = "tls",
        /// It answers over HTTP. Gates (401, 402, 403) end here: they do not show what stands behind them.
        Http = "http",
        /// Its answer is JSON.
        Json = "json",
        /// Its answer is a JSON-RPC message.
        Envelope = "envelope",
        /// It answers as an MCP server, be it to ask for credentials.
        Mcp = "mcp",
        /// It opens to anyone.
        Open = "open",
    }
}

impl Layer {
    /// The innermost layer that a row shows to have been reached. `None` for what was not measured.
    ///
    /// Only what the row proves counts: a status line proves everything down to HTTP, whatever its outcome is.
    #[must_use]
    pub fn reached(row: &Row) -> Option<Self> {
        if !row.verdict.is_measured() {
            return None;
        }
        let answered = |otherwise| {
            if row.http_status.is_some() {
                Self::Http
            } else {
                otherwise
            }
        };
        let by_body = match row.body_kind {
            Some(BodyKind::Json) => Self::Json,
            Some(
                BodyKind::Empty
                | BodyKind::Sse
                | BodyKind::Html
                | BodyKind::Xml
                | BodyKind::Text
                | BodyKind::Binary,
            )
            | None => Self::Http,
        };
        Some(match row.outcome {
            Outcome::Success => match row.verdict {
                Verdict::Working => Self::Open,
                Verdict::Gated
                | Verdict::Faulty
                | Verdict::NotMcp
                | Verdict::Down
                | Verdict::Unmeasured
                | Verdict::Unprobeable => Self::Mcp,
            },
            // Working: `server/discover` succeeded. Gated: the refusal asks for credentials or payment.
            Outcome::JsonrpcError => match row.verdict {
                Verdict::Working => Self::Open,
                Verdict::Gated => Self::Mcp,
                Verdict::Faulty
                | Verdict::NotMcp
                | Verdict::Down
                | Verdict::Unmeasured
                | Verdict::Unprobeable => Self::Envelope,
            },
            Outcome::ProtocolViolation => match Violation::named(&row.detail) {
                // Nothing of these was read as a message.
                Some(
                    Violation::BodyOverLimit
                    | Violation::EndpointOriginMismatch
                    | Violation::EndpointInvalid,
                ) => Self::Http,
                Some(
                    Violation::IdMismatch
                    | Violation::IdTypeMismatch
                    | Violation::IdNull
                    | Violation::IdMissing
                    | Violation::NoResponse
                    | Violation::ResultNotObject
                    | Violation::ResultWithHttpError
                    | Violation::EchoesRequest,
                )
                // A member of the result is at fault.
                | None => Self::Envelope,
            },
            Outcome::NonEnvelope => Self::Json,
            Outcome::AuthRequired
            | Outcome::PaymentRequired
            | Outcome::Forbidden
            | Outcome::NotFound
            | Outcome::MethodNotAllowed
            | Outcome::HttpError
            | Outcome::RateLimited => by_body,
            Outcome::HtmlPage | Outcome::InvalidJson | Outcome::EmptyBody | Outcome::Redirect => {
                Self::Http
            }
            Outcome::Timeout => match Stage::named(&row.detail) {
                Some(Stage::Connect) => Self::Resolved,
                Some(Stage::Tls) => Self::Connected,
                Some(Stage::FirstByte) => Self::Secured,
                Some(Stage::Body | Stage::SseNoResponse | Stage::SseNoEndpoint) => Self::Http,
                None => answered(Self::Asked),
            },
            Outcome::ConnectFailure => Self::Resolved,
            Outcome::TlsFailure => Self::Connected,
            Outcome::ConnectionDropped => match Drop::named(&row.detail) {
                Some(Drop::MidBody | Drop::IncompleteBody | Drop::SseClosedBeforeResponse) => {
                    Self::Http
                }
                Some(
                    Drop::BeforeResponse
                    | Drop::EmptyReply
                    | Drop::HttpMalformed
                    | Drop::HeadersOverLimit
                    | Drop::H2StreamReset
                    | Drop::H2GoAway,
                )
                | None => answered(Self::Secured),
            },
            Outcome::DnsFailure | Outcome::Unprobeable | Outcome::Unmeasured => Self::Asked,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::sample::row;

    #[track_caller]
    fn check(row: &Row, want: Option<Layer>) {
        assert_eq!(Layer::reached(row), want, "{} {}", row.outcome, row.detail);
    }

    #[test]
    fn a_row_shows_how_far_its_endpoint_got() {
        use Outcome as O;
        use Verdict as V;
        for (outcome, detail, verdict, want) in [
            (O::Success, "json", V::Working, Layer::Open),
            (O::JsonrpcError, "-32601", V::Faulty, Layer::Envelope),
            (O::JsonrpcError, "-32001", V::Gated, Layer::Mcp),
            (O::JsonrpcError, "-32022", V::Working, Layer::Open),
            (
                O::ProtocolViolation,
                "id_mismatch",
                V::Faulty,
                Layer::Envelope,
            ),
            (
                O::ProtocolViolation,
                "serverInfo_missing",
                V::Faulty,
                Layer::Envelope,
            ),
            (
                O::ProtocolViolation,
                "body_over_limit",
                V::Faulty,
                Layer::Http,
            ),
            (O::NonEnvelope, "array", V::NotMcp, Layer::Json),
            (O::AuthRequired, "bearer", V::Gated, Layer::Http),
            (O::HtmlPage, "html", V::NotMcp, Layer::Http),
            (O::Timeout, "connect", V::Down, Layer::Resolved),
            (O::Timeout, "tls", V::Down, Layer::Connected),
            (O::Timeout, "first_byte", V::Down, Layer::Secured),
            (O::Timeout, "sse_no_response", V::Down, Layer::Http),
            (O::DnsFailure, "nxdomain", V::Down, Layer::Asked),
            (O::ConnectFailure, "refused", V::Down, Layer::Resolved),
            (O::TlsFailure, "expired", V::Down, Layer::Connected),
            (O::ConnectionDropped, "empty_reply", V::Down, Layer::Secured),
            (O::ConnectionDropped, "mid_body", V::Down, Layer::Http),
        ] {
            check(&row(outcome, detail, verdict), Some(want));
        }
        let status = |it| Row {
            http_status: Some(200),
            ..it
        };
        check(
            &status(row(O::ConnectionDropped, "h2_stream_reset", V::Down)),
            Some(Layer::Http),
        );
        check(
            &Row {
                body_kind: Some(BodyKind::Json),
                ..row(O::NotFound, "404", V::NotMcp)
            },
            Some(Layer::Json),
        );
        check(&row(O::RateLimited, "429", V::Unmeasured), None);
        check(&row(O::Unprobeable, "template", V::Unprobeable), None);
    }
}
