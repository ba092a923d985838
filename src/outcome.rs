//! The words of the census: outcomes, their details, verdicts, eras, hints. Each is spelt here and nowhere else.
//! How an exchange earns one is `classify`'s affair.

use std::fmt;

use crate::exchange::{ConnectFault, DnsFault, Drop, Stage, TlsFault};
use crate::names::names;

names! {
    /// The mechanical reading of the answer to `initialize`: exactly one a row.
    pub enum Outcome {
        /// A valid `InitializeResult`.
        Success = "success",
        /// A JSON-RPC error response; the detail is its code.
        JsonrpcError = "jsonrpc_error",
        /// A JSON-RPC message that is no valid answer to `initialize`.
        ProtocolViolation = "protocol_violation",
        /// HTTP 401; the detail is the kind of challenge.
        AuthRequired = "auth_required",
        /// HTTP 402; the detail is the payment protocol.
        PaymentRequired = "payment_required",
        /// HTTP 403.
        Forbidden = "forbidden",
        /// A web page under a 2xx status.
        HtmlPage = "html_page",
        /// JSON that is no JSON-RPC response, under a 2xx status.
        NonEnvelope = "non_envelope",
        /// A body that is no JSON, under a 2xx status.
        InvalidJson = "invalid_json",
        /// A 2xx status without a body, or an event stream without an event.
        EmptyBody = "empty_body",
        /// HTTP 404 or 410.
        NotFound = "not_found",
        /// HTTP 405 to both the POST and, where it was tried, the GET of the older transport.
        MethodNotAllowed = "method_not_allowed",
        /// A redirect that a POST does not follow, or one that leads nowhere.
        Redirect = "redirect",
        /// Any other HTTP status.
        HttpError = "http_error",
        /// HTTP 429: we asked too much, and know nothing.
        RateLimited = "rate_limited",
        /// The deadline passed; the detail is what we were waiting for.
        Timeout = "timeout",
        /// The name does not resolve.
        DnsFailure = "dns_failure",
        /// No TCP connection.
        ConnectFailure = "connect_failure",
        /// No TLS session.
        TlsFailure = "tls_failure",
        /// The connection ended before a complete response.
        ConnectionDropped = "connection_dropped",
        /// The listing names no public endpoint; nothing was sent.
        Unprobeable = "unprobeable",
        /// We have no measurement, for a reason of our own.
        Unmeasured = "unmeasured",
    }
}

names! {
    /// The roll-up that a headline uses.
    pub enum Verdict {
        /// Speaks MCP to anyone.
        Working = "working",
        /// Alive, and wants credentials or payment first.
        Gated = "gated",
        /// Speaks JSON-RPC, and not a valid handshake.
        Faulty = "faulty",
        /// Answers with something that is not MCP.
        NotMcp = "not_mcp",
        /// Does not answer.
        Down = "down",
        /// Not measured; in no denominator.
        Unmeasured = "unmeasured",
        /// The listing is at fault; in no denominator.
        Unprobeable = "unprobeable",
    }
}

impl Verdict {
    /// Whether rows of this verdict are in the denominator of a share.
    #[must_use]
    pub const fn is_measured(self) -> bool {
        !matches!(self, Self::Unmeasured | Self::Unprobeable)
    }
}

names! {
    /// What the text of an answer suggests. It never decides an outcome.
    pub enum Hint {
        /// It wants credentials.
        AuthLike = "auth_like",
        /// It wants credentials, or there is no such route: an API gateway says both alike.
        AuthOrRoute = "auth_or_route",
        /// It wants payment.
        PaymentLike = "payment_like",
        /// It does not take the protocol version asked for.
        Version = "version",
        /// It wants a session, or does not know ours.
        Session = "session",
        /// A challenge for browsers: it says nothing of the server behind.
        BotChallenge = "bot_challenge",
        /// The platform answers, and the deployment is gone.
        DeploymentGone = "deployment_gone",
        /// It may pass.
        Transient = "transient",
        /// It speaks the 2026-07-28 revision.
        EraModern = "era_modern",
        /// It depends on where we ask from.
        Vantage = "vantage",
        /// The words of an MCP SDK: a server is there, behind a misconfigured front.
        McpSdkFingerprint = "mcp_sdk_fingerprint",
        /// `http` was spoken to an `https` port, or the reverse.
        SchemeMismatch = "scheme_mismatch",
    }
}

names! {
    /// Which generation of the protocol the endpoint was seen to speak (2026-07-28 versioning).
    pub enum Era {
        /// The `initialize` handshake, 2024-11-05 to 2025-11-25.
        Legacy = "legacy",
        /// `server/discover`, 2026-07-28 and later.
        Modern = "modern",
        /// Both.
        Dual = "dual",
        /// Nothing was seen that tells.
        Unknown = "unknown",
    }
}

names! {
    /// A transport, as a list declares it or as we saw it.
    pub enum Transport {
        /// Streamable HTTP, since 2025-03-26.
        StreamableHttp = "streamable-http",
        /// HTTP+SSE of 2024-11-05; lists call it `sse`.
        HttpSse = "sse",
    }
}

names! {
    /// What a body is, by its bytes.
    pub enum BodyKind {
        /// No byte, or white space only.
        Empty = "empty",
        /// JSON.
        Json = "json",
        /// An event stream.
        Sse = "sse",
        /// A web page.
        Html = "html",
        /// XML that is no web page.
        Xml = "xml",
        /// Text.
        Text = "text",
        /// Anything else.
        Binary = "binary",
    }
}

names! {
    /// How a successful answer was framed.
    pub enum Framing {
        /// One JSON object.
        Json = "json",
        /// An event stream in answer to the POST.
        Sse = "sse",
        /// The HTTP+SSE transport of 2024-11-05.
        HttpSse = "http+sse",
    }
}

names! {
    /// How the session we were given ended.
    pub enum Session {
        /// Our DELETE was accepted.
        Closed = "closed",
        /// Our DELETE was refused, as a server may.
        Refused = "refused",
        /// We could not close it.
        Left = "left",
    }
}

names! {
    /// Why JSON is no JSON-RPC response.
    pub enum Envelope {
        /// A top-level array.
        Array = "array",
        /// A string.
        JsonString = "json_string",
        /// A number, a boolean or null.
        JsonScalar = "json_scalar",
        /// No `jsonrpc` member.
        MissingJsonrpc = "missing_jsonrpc",
        /// `jsonrpc` is not the string "2.0".
        BadJsonrpcVersion = "bad_jsonrpc_version",
        /// `error` is not an object.
        ErrorNotObject = "error_not_object",
        /// `error.code` is missing or no integer.
        ErrorCodeInvalid = "error_code_invalid",
        /// Both `result` and `error`.
        ResultAndError = "result_and_error",
        /// Neither `result` nor `error`.
        NeitherResultNorError = "neither_result_nor_error",
        /// An `InitializeResult` without its envelope.
        BareResult = "bare_result",
        /// Any other JSON.
        UnrelatedJson = "unrelated_json",
    }
}

names! {
    /// Why a body is no JSON.
    pub enum NotJson {
        /// Prose.
        PlainText = "plain_text",
        /// XML.
        Xml = "xml",
        /// It starts like JSON and is not.
        Syntax = "syntax",
        /// JSON, and something after it.
        TrailingGarbage = "trailing_garbage",
        /// Something, and JSON after it.
        LeadingGarbage = "leading_garbage",
        /// Not UTF-8 (RFC 8259 §8.1).
        NotUtf8 = "not_utf8",
        /// No text at all.
        Binary = "binary",
        /// The events of a stream hold no JSON.
        SseData = "sse_data",
        /// The content coding cannot be undone.
        ContentEncoding = "content_encoding",
    }
}

names! {
    /// Why a target was not asked.
    pub enum Unprobeable {
        /// A placeholder was left in.
        Template = "template",
        /// Not `http` or `https`.
        Scheme = "scheme",
        /// An address that is not public.
        PrivateAddress = "private_address",
        /// Credentials in the URL.
        Userinfo = "userinfo",
        /// Nothing there.
        Empty = "empty",
        /// No URL.
        InvalidUrl = "invalid_url",
        /// On the exclusion list.
        Excluded = "excluded",
        /// The site's robots.txt forbids it.
        Robots = "robots",
        /// The registry has taken it down.
        Deleted = "deleted",
        /// The list row cannot be read.
        BadRow = "bad_row",
    }
}

names! {
    /// Why there is no measurement.
    pub enum Unmeasured {
        /// Left out of the sample.
        SampledOut = "sampled_out",
        /// Its site asked us to stop, or keeps back whether its robots.txt lets us ask.
        SitePaused = "site_paused",
        /// The run was interrupted.
        Interrupted = "interrupted",
        /// The instrument failed.
        InstrumentError = "instrument_error",
        /// Another shard's.
        OtherShard = "other_shard",
        /// Measured while the instrument's own network failed.
        InstrumentDoubt = "instrument_doubt",
    }
}

names! {
    /// What a violation is about, other than a member of the result.
    pub enum Violation {
        /// A result whose id is not ours.
        IdMismatch = "id_mismatch",
        /// A result whose id is ours in another type.
        IdTypeMismatch = "id_type_mismatch",
        /// A result whose id is null.
        IdNull = "id_null",
        /// A result without an id.
        IdMissing = "id_missing",
        /// Requests or notifications only.
        NoResponse = "no_response",
        /// A result that is no object.
        ResultNotObject = "result_not_object",
        /// A result under an HTTP error status.
        ResultWithHttpError = "result_with_http_error",
        /// Larger than we read.
        BodyOverLimit = "body_over_limit",
        /// An HTTP+SSE stream named an endpoint of another origin.
        EndpointOriginMismatch = "endpoint_origin_mismatch",
        /// An HTTP+SSE stream named something that is no address.
        EndpointInvalid = "endpoint_invalid",
        /// Our own request came back.
        EchoesRequest = "echoes_request",
    }
}

names! {
    /// What is wrong with a member.
    pub enum Problem {
        /// Not there.
        Missing = "missing",
        /// Of another type.
        Type = "type",
        /// Of the right type, and no possible value.
        Malformed = "malformed",
    }
}

names! {
    /// How HTTP 401 challenges us (RFC 9110 §11.6.1).
    pub enum Challenge {
        /// `Bearer`, alone or among others.
        Bearer = "bearer",
        /// `Basic`.
        Basic = "basic",
        /// `Digest`.
        Digest = "digest",
        /// `DPoP`.
        DPoP = "dpop",
        /// `Negotiate`.
        Negotiate = "negotiate",
        /// Any other scheme.
        Other = "other",
        /// No `WWW-Authenticate`.
        NoChallenge = "no_challenge",
    }
}

names! {
    /// How HTTP 402 asks to be paid.
    pub enum Payment {
        /// x402, version 1.
        X402V1 = "x402_v1",
        /// x402, version 2.
        X402V2 = "x402_v2",
        /// Anything else.
        Plain = "402",
    }
}

names! {
    /// What stands behind HTTP 403.
    pub enum Refusal {
        /// Nothing more is known.
        Plain = "403",
        /// `error="insufficient_scope"` (RFC 6750 §3.1).
        InsufficientScope = "insufficient_scope",
        /// The `Origin` is refused.
        Origin = "origin",
        /// An API gateway, before any server.
        ApiGateway = "api_gateway",
        /// The edge of a network refuses us.
        EdgeBlock = "edge_block",
        /// A challenge for browsers.
        BotChallenge = "bot_challenge",
    }
}

names! {
    /// What more can be said of a redirect's target.
    pub enum Turn {
        /// It looks like a login page.
        Login = "login",
        /// The same address under `https`.
        HttpsUpgrade = "https_upgrade",
        /// From `https` to `http`.
        Downgrade = "downgrade",
    }
}

names! {
    /// A chain of redirects that leads nowhere.
    pub enum DeadEnd {
        /// It comes back to where it was.
        Loop = "loop",
        /// It is longer than we follow.
        TooMany = "too_many",
        /// It leads to an address that is not public.
        BlockedPrivate = "blocked_private",
        /// It names no target.
        NoLocation = "no_location",
        /// It names something that is no `http` address.
        BadLocation = "bad_location",
    }
}

/// What narrows an outcome: the `detail` column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// `success`.
    Framing(Framing),
    /// `jsonrpc_error`: the code.
    Code(i64),
    /// `protocol_violation`.
    Violation(Violation),
    /// `protocol_violation` of one member of the result, by its path.
    Member(String, Problem),
    /// `auth_required`.
    Challenge(Challenge),
    /// `payment_required`.
    Payment(Payment),
    /// `forbidden`.
    Refusal(Refusal),
    /// `html_page` as such.
    Html,
    /// `html_page` at the end of a redirect.
    HtmlAfterRedirect,
    /// `non_envelope`.
    Envelope(Envelope),
    /// `invalid_json`.
    NotJson(NotJson),
    /// `empty_body` of an event stream.
    SseNoEvents,
    /// A bare HTTP status: `empty_body`, `not_found`, `method_not_allowed`, `http_error`, `rate_limited`.
    Status(u16),
    /// `redirect`: the status, and what more can be said.
    Redirect(u16, Option<Turn>),
    /// `redirect` that leads nowhere.
    DeadEnd(DeadEnd),
    /// `rate_limited`, seconds.
    RetryAfter(u64),
    /// `rate_limited` by a challenge for browsers.
    RateLimitedChallenge,
    /// `timeout`.
    Stage(Stage),
    /// `dns_failure`.
    Dns(DnsFault),
    /// `connect_failure`.
    Connect(ConnectFault),
    /// `tls_failure`.
    Tls(TlsFault),
    /// `connection_dropped`.
    Drop(Drop),
    /// `unprobeable`.
    Unprobeable(Unprobeable),
    /// `unmeasured`.
    Unmeasured(Unmeasured),
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Framing(it) => it.fmt(f),
            Self::Code(code) => code.fmt(f),
            Self::Violation(it) => it.fmt(f),
            Self::Member(path, problem) => write!(f, "{path}_{problem}"),
            Self::Challenge(it) => it.fmt(f),
            Self::Payment(it) => it.fmt(f),
            Self::Refusal(it) => it.fmt(f),
            Self::Html => f.write_str("html"),
            Self::HtmlAfterRedirect => f.write_str("after_redirect"),
            Self::Envelope(it) => it.fmt(f),
            Self::NotJson(it) => it.fmt(f),
            Self::SseNoEvents => f.write_str("sse_no_events"),
            Self::Status(status) | Self::Redirect(status, None) => status.fmt(f),
            Self::Redirect(status, Some(turn)) => write!(f, "{status}_{turn}"),
            Self::DeadEnd(it) => it.fmt(f),
            Self::RetryAfter(seconds) => write!(f, "retry_after={seconds}"),
            Self::RateLimitedChallenge => f.write_str(Refusal::BotChallenge.name()),
            Self::Stage(it) => it.fmt(f),
            Self::Dns(it) => it.fmt(f),
            Self::Connect(it) => it.fmt(f),
            Self::Tls(it) => it.fmt(f),
            Self::Drop(it) => it.fmt(f),
            Self::Unprobeable(it) => it.fmt(f),
            Self::Unmeasured(it) => it.fmt(f),
        }
    }
}

impl Detail {
    /// The outcome that the detail narrows. `Status` belongs to several and is decided by its number.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Framing(_) => Outcome::Success,
            Self::Code(_) => Outcome::JsonrpcError,
            Self::Violation(_) | Self::Member(..) => Outcome::ProtocolViolation,
            Self::Challenge(_) => Outcome::AuthRequired,
            Self::Payment(_) => Outcome::PaymentRequired,
            Self::Refusal(_) => Outcome::Forbidden,
            Self::Html | Self::HtmlAfterRedirect => Outcome::HtmlPage,
            Self::Envelope(_) => Outcome::NonEnvelope,
            Self::NotJson(_) => Outcome::InvalidJson,
            Self::SseNoEvents | Self::Status(200..=299) => Outcome::EmptyBody,
            Self::Status(404 | 410) => Outcome::NotFound,
            Self::Status(405) => Outcome::MethodNotAllowed,
            Self::Status(429) | Self::RetryAfter(_) | Self::RateLimitedChallenge => {
                Outcome::RateLimited
            }
            Self::Status(_) => Outcome::HttpError,
            Self::Redirect(..) | Self::DeadEnd(_) => Outcome::Redirect,
            Self::Stage(_) => Outcome::Timeout,
            Self::Dns(_) => Outcome::DnsFailure,
            Self::Connect(_) => Outcome::ConnectFailure,
            Self::Tls(_) => Outcome::TlsFailure,
            Self::Drop(_) => Outcome::ConnectionDropped,
            Self::Unprobeable(_) => Outcome::Unprobeable,
            Self::Unmeasured(_) => Outcome::Unmeasured,
        }
    }

    /// The verdict that follows, before hints and `server/discover` are heard (see [`verdict`]).
    #[must_use]
    const fn plain_verdict(&self) -> Verdict {
        match self {
            Self::Refusal(Refusal::BotChallenge | Refusal::EdgeBlock)
            | Self::Connect(ConnectFault::NoRoute) => Verdict::Unmeasured,
            Self::Status(500..) => Verdict::Down,
            _ => match self.outcome() {
                Outcome::Success => Verdict::Working,
                Outcome::JsonrpcError | Outcome::ProtocolViolation => Verdict::Faulty,
                Outcome::AuthRequired | Outcome::PaymentRequired | Outcome::Forbidden => {
                    Verdict::Gated
                }
                Outcome::HtmlPage
                | Outcome::NonEnvelope
                | Outcome::InvalidJson
                | Outcome::EmptyBody
                | Outcome::NotFound
                | Outcome::MethodNotAllowed
                | Outcome::Redirect
                | Outcome::HttpError => Verdict::NotMcp,
                Outcome::RateLimited | Outcome::Unmeasured => Verdict::Unmeasured,
                Outcome::Timeout
                | Outcome::DnsFailure
                | Outcome::ConnectFailure
                | Outcome::TlsFailure
                | Outcome::ConnectionDropped => Verdict::Down,
                Outcome::Unprobeable => Verdict::Unprobeable,
            },
        }
    }
}

/// The verdict of a reading: the roll-up of its outcome, lifted where a JSON-RPC refusal turns out to
/// be a gate, or the refusal of a server that answers `server/discover`.
#[must_use]
pub const fn verdict(detail: &Detail, hint: Option<Hint>, discovered: bool) -> Verdict {
    match (detail, hint) {
        (Detail::Code(_), _) if discovered => Verdict::Working,
        (Detail::Code(_), Some(Hint::AuthLike | Hint::PaymentLike)) => Verdict::Gated,
        _ => detail.plain_verdict(),
    }
}
