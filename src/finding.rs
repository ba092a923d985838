//! Near misses: what was noticed beside the outcome, by name. A finding never changes an outcome.

use std::fmt;

use crate::names::names;

names! {
    /// What can be noticed.
    pub enum Check {
        /// A body without a Content-Type.
        ContentTypeMissing = "content_type_missing",
        /// A JSON-RPC answer under another media type; the argument is that type.
        ContentTypeWrong = "content_type_wrong",
        /// The media type says one framing and the bytes are another.
        ContentTypeMismatch = "content_type_mismatch",
        /// HTTP 202, which is for notifications, in answer to a request.
        Status202ForRequest = "status_202_for_request",
        /// An answer under a 2xx other than 200 and 202; the argument is the status.
        StatusNot200 = "status_not_200",
        /// HTTP/1.0.
        Http10 = "http_1_0",
        /// The server counter-offered an older revision; the argument is that revision.
        NegotiatedDown = "negotiated_down",
        /// The server counter-offered a revision newer than the one asked for.
        CounterOfferNewer = "counter_offer_newer_than_requested",
        /// An `InitializeResult` that claims 2026-07-28, a revision that has no `initialize`.
        ModernVersionInLegacyHandshake = "modern_version_in_legacy_handshake",
        /// The negotiated version is no revision of the specification; the argument is that version.
        UnknownVersion = "unknown_protocol_version",
        /// An optional member is null.
        NullOptionalMember = "null_optional_member",
        /// `error: null` beside a result.
        ErrorNullMember = "error_null_member",
        /// `result: null` beside an error.
        ResultNullMember = "result_null_member",
        /// The id came back as `7.0` for 7.
        IdFloatForm = "id_float_form",
        /// A UTF-8 byte order mark before the JSON.
        Utf8Bom = "utf8_bom",
        /// JSON in UTF-16 or UTF-32.
        NotUtf8Encoding = "utf16_body",
        /// An object with the same member twice.
        DuplicateKey = "duplicate_key",
        /// A lone surrogate in a string.
        LoneSurrogate = "lone_surrogate",
        /// The last event of a stream lacks its blank line.
        SseUnterminatedEvent = "sse_unterminated_event",
        /// The stream stayed open after the answer.
        SseNotClosedAfterResponse = "sse_not_closed_after_response",
        /// The server sent a request before its answer.
        ServerRequestBeforeResponse = "server_request_before_response",
        /// Events that are no JSON-RPC.
        SseForeignEvent = "sse_foreign_event",
        /// The answer came under another event name than `message`; the argument is that name.
        SseNonstandardEventName = "sse_nonstandard_event_name",
        /// Several messages in one event.
        SseArrayInEvent = "sse_array_in_event",
        /// The stream closed after a priming event and was resumed with `Last-Event-ID`.
        SseResumed = "sse_resumed",
        /// A JSON-RPC error whose id is null.
        ErrorIdNull = "error_id_null",
        /// A JSON-RPC error without an id.
        ErrorIdAbsent = "error_id_absent",
        /// A JSON-RPC error with another id than ours.
        ErrorIdMismatch = "error_id_mismatch",
        /// A JSON-RPC error whose message is missing or no string.
        ErrorMessageInvalid = "error_message_invalid",
        /// `initialize` is an unknown method there.
        InitializeNotImplemented = "initialize_not_implemented",
        /// The version was refused where another should have been offered.
        VersionRejected = "version_rejected_instead_of_counter_offer",
        /// The version was refused at the level of HTTP.
        VersionRejectedAtHttp = "version_rejected_at_http",
        /// A refusal for want of credentials that is no HTTP 401.
        AuthInJsonrpc = "auth_in_jsonrpc_not_401",
        /// A refusal for want of payment that is no HTTP 402.
        PaymentInJsonrpc = "payment_in_jsonrpc_not_402",
        /// A refusal for want of credentials under another HTTP status.
        AuthWithWrongStatus = "auth_with_wrong_status",
        /// Our Accept header was refused although it lists both types.
        RejectedAcceptHeader = "rejected_accept_header",
        /// Our Content-Type was refused although it is application/json.
        RejectedContentType = "rejected_content_type",
        /// `initialize`, which opens a session, was refused for want of one.
        RejectedForMissingSession = "initialize_rejected_for_missing_session",
        /// `MCP-Protocol-Version` was demanded on `initialize`, which has none.
        RequiresVersionHeader = "requires_version_header_on_initialize",
        /// A result with id 0 or 1 whatever was asked.
        IdHardcoded = "id_hardcoded",
        /// The id came back as a string.
        IdTypeChanged = "id_type_changed",
        /// A single answer inside an array.
        BatchArrayReply = "batch_array_reply",
        /// The envelope is a string inside JSON.
        DoubleEncodedEnvelope = "double_encoded_envelope",
        /// Our own request stands in the answer.
        EchoesRequest = "echoes_request",
        /// A bare error object where an envelope belongs.
        MalformedEnvelopeBody = "malformed_envelope_body",
        /// The server speaks 2026-07-28 only.
        ModernOnlyServer = "modern_only_server",
        /// `server/discover` gave a valid result.
        DiscoverOk = "discover_ok",
        /// `server/discover` gave a result that is not valid; the argument is the first member at fault.
        DiscoverInvalid = "discover_invalid",
        /// `server/discover` answered in a shape from before the release of 2026-07-28.
        DiscoverRcShape = "discover_rc_shape",
        /// 401 without `WWW-Authenticate` (RFC 9110 §15.5.2).
        WwwAuthenticateMissing = "www_authenticate_missing",
        /// `WWW-Authenticate` cannot be read.
        WwwAuthenticateMalformed = "www_authenticate_malformed",
        /// 401 with a JSON-RPC error in its body.
        JsonrpcBodyOn401 = "jsonrpc_body_on_401",
        /// 403 with a JSON-RPC error in its body.
        JsonrpcBodyOn403 = "jsonrpc_body_on_403",
        /// A challenge, and none of them Bearer.
        ChallengeNotBearer = "challenge_not_bearer",
        /// Several challenges.
        MultipleChallenges = "multiple_challenges",
        /// The same parameter twice in one challenge.
        DuplicateChallengeParam = "duplicate_challenge_param",
        /// A web page where it does not decide the outcome.
        HtmlBody = "html_body",
        /// A GET of the same address is a web page.
        GetServesHtml = "get_serves_html",
        /// A guard against DNS rebinding refuses the public name.
        HostGuardMisconfigured = "host_guard_misconfigured",
        /// The hosting platform has no such application.
        PlatformAppMissing = "platform_app_missing",
        /// Several JSON values, a line each.
        Ndjson = "ndjson",
        /// A content coding we did not ask for; the argument is the coding.
        UnsolicitedEncoding = "unsolicited_encoding",
        /// `Content-Encoding: identity`, which RFC 9110 §8.4.1 reserves.
        ContentEncodingIdentity = "content_encoding_identity",
        /// The body is not in the coding its label names.
        ContentEncodingMismatch = "content_encoding_mismatch",
        /// The body is compressed and has no label.
        ContentEncodingUnlabelled = "content_encoding_unlabelled",
        /// The compressed body ends before its trailer.
        ContentEncodingTruncated = "content_encoding_truncated",
        /// The body is shorter than its Content-Length.
        ContentLengthMismatch = "content_length_mismatch",
        /// Reached over a redirect; the argument is its status.
        Redirected = "redirected",
        /// Reached over a redirect to another origin.
        RedirectedCrossOrigin = "redirected_cross_origin",
        /// A POST to the redirect's target works: the listing should name it.
        RedirectTargetWouldSucceed = "redirect_target_would_succeed",
        /// What a POST to the redirect's target says; the argument is the outcome.
        RedirectTargetSays = "redirect_target_says",
        /// Listed as `http`, and answers under `https`.
        ListedAsPlainHttp = "listed_as_plain_http",
        /// A redirect from `https` to `http`; not followed.
        RedirectDowngrade = "redirect_downgrade",
        /// More than three seconds to the first byte.
        SlowFirstByte = "slow_first_byte",
        /// The IPv6 address does not answer; IPv4 does.
        Ipv6Unreachable = "ipv6_unreachable",
        /// Speaks the other transport than the one declared; the argument is `declared_` and that transport.
        TransportMismatch = "transport_mismatch",
        /// Speaks HTTP+SSE, which is deprecated.
        LegacySse = "legacy_sse",
        /// Two session headers.
        SessionIdDuplicated = "session_id_duplicated",
        /// A session id that is empty or not visible ASCII.
        SessionIdInvalidChars = "session_id_invalid_chars",
        /// Credentials in the listed URL.
        CredentialsInListing = "credentials_in_listing",
        /// A fragment in the listed URL.
        FragmentInUrl = "fragment_in_url",
        /// White space around the listed URL.
        WhitespaceInUrl = "whitespace_in_url",
        /// Listed as `http`.
        PlainHttp = "plain_http",
        /// The registry has the listing as deprecated.
        DeprecatedListing = "deprecated_listing",
        /// A template was filled from its defaults.
        TemplateDefaultsUsed = "template_defaults_used",
        /// The attempts disagree; the argument is the outcomes in order.
        AttemptsDisagree = "attempts_disagree",
        /// The vantage points disagree; the argument is the verdicts in the order of the vantages.
        Regional = "regional",
    }
}

/// Something noticed: a check, and what it was about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// What was noticed.
    pub check: Check,
    /// The particulars, where the check has any.
    pub about: Option<String>,
}

impl From<Check> for Finding {
    fn from(check: Check) -> Self {
        Self { check, about: None }
    }
}

impl Check {
    /// The finding of this check about something.
    #[must_use]
    pub fn of(self, about: impl Into<String>) -> Finding {
        Finding {
            check: self,
            about: Some(about.into()),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.about {
            // `;` separates findings in a cell.
            Some(about) => write!(f, "{}:{}", self.check, about.replace(';', ",")),
            None => self.check.fmt(f),
        }
    }
}

impl serde::Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Finding {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(from)?;
        let (name, about) = text
            .split_once(':')
            .map_or((&*text, None), |(name, about)| {
                (name, Some(about.to_owned()))
            });
        let check = Check::named(name)
            .ok_or_else(|| serde::de::Error::custom(format_args!("{name:?} is no check")))?;
        Ok(Self { check, about })
    }
}
