//! What the operator of a server can do about what was found there. Nothing here is needed to classify anything.

use crate::finding::Check;
use crate::outcome::{Outcome, Verdict};

/// About an outcome.
pub(super) const fn of_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Success => {
            "Nothing. What was noticed beside it, if anything, stands in the row's findings."
        }
        Outcome::JsonrpcError => {
            "Look the code up with `mcp-census explain CODE`. A refusal for want of credentials belongs into HTTP \
             401, one for want of payment into 402; a version that is not served is answered with one that is."
        }
        Outcome::ProtocolViolation => {
            "Compare the answer with the InitializeResult of its revision: the id as it was sent, in the same type; \
             `protocolVersion`, `capabilities`, and `serverInfo` with `name` and `version`. `mcp-census check URL` \
             shows the answer and the rule."
        }
        Outcome::AuthRequired => {
            "Nothing, if the server is meant to be closed. Clients find the way in by a challenge \
             `WWW-Authenticate: Bearer` with `resource_metadata`; without a challenge they do not."
        }
        Outcome::PaymentRequired => {
            "Nothing, if it is meant. Some hosting platforms answer 402 for a deployment they suspended."
        }
        Outcome::Forbidden => {
            "Find out who refuses: the server itself, whose status for missing credentials should be 401; its guard \
             against foreign hosts and origins, which has to know the public name; or the network's edge, whose \
             rules may take every program for an attack."
        }
        Outcome::HtmlPage => {
            "List the address of the server instead of its page. A front that serves a page for every path has to \
             let POST requests for the server through."
        }
        Outcome::NonEnvelope => {
            "Answer with one JSON-RPC response: `jsonrpc` \"2.0\", the request's `id`, and either `result` or `error`. \
             An error outside the envelope cannot be read by clients."
        }
        Outcome::InvalidJson => {
            "Answer with JSON in UTF-8 or with an event stream, and nothing before or after it. Often a log line or \
             a greeting for browsers is in the way."
        }
        Outcome::EmptyBody => {
            "Answer a request with a response. Status 202 without a body is for notifications; a server that gives \
             it here took the request for one."
        }
        Outcome::NotFound => {
            "Correct the path in the listing, or put the server back. Common paths are `/mcp`, `/sse` and the root."
        }
        Outcome::MethodNotAllowed => {
            "If the server speaks HTTP+SSE, a GET of the address has to open an event stream that names an \
             `endpoint`. If the address is a web page's, list the server's."
        }
        Outcome::Redirect => {
            "List the address that the redirect leads to: a client sends its POST again after 307 and 308 only."
        }
        Outcome::HttpError => {
            "5XX: look in the logs of the server and of what stands before it, at the time of `started_at`. 4XX: \
             `mcp-census check URL` shows the request that was refused."
        }
        Outcome::RateLimited => {
            "Nothing is held against the server. Whoever scans can ask more slowly (`--gap`, `--depth 1`); the \
             operator can exempt the scanner by its User-Agent."
        }
        Outcome::Timeout => {
            "See what was waited for. A server that starts on demand may need longer than a client waits; an event \
             stream that stays silent usually lost the request on its way to a worker."
        }
        Outcome::DnsFailure => {
            "Renew the name, or publish its address again. If it moved, correct the listing."
        }
        Outcome::ConnectFailure => {
            "Start the server, or open its port. `no_route` may be the scanner's own network."
        }
        Outcome::TlsFailure => {
            "Renew the certificate, or install it with its intermediates and for every name that is listed."
        }
        Outcome::ConnectionDropped => {
            "Look for a crash, or a limit of the proxy in front, at the time of `started_at`."
        }
        Outcome::Unprobeable => {
            "List a public http or https address without placeholders and without credentials. `excluded` is the \
             operator's own wish, or the scanner's."
        }
        Outcome::Unmeasured => {
            "Nothing: it is the scanner's affair. `scan --resume` asks what was not asked."
        }
    }
}

/// About a verdict.
pub(super) const fn of_verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Working => "Nothing.",
        Verdict::Gated => {
            "Nothing, if the gate is meant. The row's `auth_scheme` and findings tell how well it can be found."
        }
        Verdict::Faulty => {
            "The row's detail names the rule that was broken; `mcp-census check URL` shows the answer."
        }
        Verdict::NotMcp => {
            "Correct the listing, or what stands before the server: something else answers for it."
        }
        Verdict::Down => {
            "Bring it back, or withdraw the listing. Every attempt failed alike before this was said."
        }
        Verdict::Unmeasured => {
            "Nothing: such rows are in no denominator, and are asked again in the next run."
        }
        Verdict::Unprobeable => "Correct the listing: there was nothing to ask.",
    }
}

const MEDIA: &str =
    "Answer `application/json` for one JSON object and `text/event-stream` for an event stream.";
const STATUS: &str = "Answer a request with HTTP 200. 202 is for notifications.";
const NEGOTIATE: &str = "A server that serves the version asked for has to answer with it, and otherwise with the newest it \
    serves. Updating the SDK usually does it.";
const NOT_AN_ERROR: &str =
    "Answer `initialize` with a version that is served: a version that is not is no error.";
const OPTIONAL: &str = "Leave a member out that has no value: null is not among its types.";
const ECHO: &str = "Answer with the id of the request, in the same type.";
const JSON: &str = "Send JSON as RFC 8259 has it: UTF-8 without a byte order mark, each member once, whole characters.";
const STREAM: &str = "Send each message as one event: `data:` lines, a blank line; close the stream after the answer.";
const GATE: &str = "Answer 401 with a challenge `WWW-Authenticate: Bearer` and `resource_metadata` (RFC 9728): clients begin to \
    authorize on that, and on nothing else.";
const CHALLENGE: &str = "Send one challenge, `Bearer`, its parameters as tokens or quoted strings, each once (RFC 9110 section 11).";
const PAY: &str = "Answer 402 and say in the body or headers how to pay.";
const ENVELOPE: &str = "Answer with one JSON-RPC response, an object: no array around it, no string, nothing beside it.";
const OPENER: &str = "`initialize` comes first: it has no session and no version header, and must not be refused for want of them.";
const HEADERS: &str = "The request lists `application/json` and `text/event-stream` in Accept and has Content-Type \
    `application/json`: what refuses it misreads them, often a proxy or a strict comparison.";
const MODERN: &str =
    "Nothing, if clients of 2026-07-28 are to be served only. Others need `initialize` as well.";
const DISCOVER: &str = "Answer `server/discover` with `resultType`, `supportedVersions`, `capabilities`, `ttlMs` and `cacheScope` as \
    released: drafts had another shape.";
const PAGE: &str = "Nothing, if the page is meant for people who open the address.";
const HOSTS: &str = "Tell the server's guard against DNS rebinding its public name; the default knows loopback names only.";
const CODING: &str =
    "Send the body in a coding that Accept-Encoding allows, and label it with that coding.";
const LENGTH: &str =
    "Let the server or its front compute Content-Length, after any change to the body.";
const MOVED: &str = "List the address that the redirect leads to.";
const SECURE: &str = "List the https address, and let http redirect to it with 308.";
const SLOW: &str =
    "Clients wait, and some give up. Look at the server's start and at its distance.";
const ADDRESS: &str = "Answer on the IPv6 address that the name publishes, or publish none.";
const LISTED: &str = "Correct the transport that the listing declares.";
const OLD_TRANSPORT: &str = "Offer Streamable HTTP: HTTP+SSE has been deprecated since 2025-03-26.";
const SESSION: &str = "Send one session id, of visible ASCII characters (0x21 to 0x7E), and only where there are sessions.";
const SECRET: &str = "Have the credentials revoked, and take them out of the listing.";
const WRITTEN: &str = "List the address without white space and without a fragment.";
const DEFAULTS: &str = "Nothing: other values than the defaults may behave otherwise.";
const DEPRECATED: &str =
    "Nothing, or take the listing down: its publisher says that something else is to be used.";
const DISAGREE: &str = "Look for one of several instances that fails, or for a limit: the attempts were seconds apart.";

const REGIONAL: &str =
    "Look for a firewall, a CDN or a name server that treats where clients come from differently.";

/// About a finding.
pub(super) const fn of_check(check: Check) -> &'static str {
    match check {
        Check::ContentTypeMissing | Check::ContentTypeWrong | Check::ContentTypeMismatch => MEDIA,
        Check::Status202ForRequest | Check::StatusNot200 => STATUS,
        Check::Http10 => "Speak HTTP/1.1 or later: event streams need chunks.",
        Check::NegotiatedDown | Check::CounterOfferNewer | Check::UnknownVersion => NEGOTIATE,
        Check::ModernVersionInLegacyHandshake => {
            "Do not echo a version back: 2026-07-28 has no `initialize`. Answer with the newest that has."
        }
        Check::NullOptionalMember | Check::ErrorNullMember | Check::ResultNullMember => OPTIONAL,
        Check::IdFloatForm
        | Check::ErrorIdNull
        | Check::ErrorIdAbsent
        | Check::ErrorIdMismatch
        | Check::IdHardcoded
        | Check::IdTypeChanged => ECHO,
        Check::Utf8Bom | Check::NotUtf8Encoding | Check::DuplicateKey | Check::LoneSurrogate => {
            JSON
        }
        Check::SseUnterminatedEvent
        | Check::SseNotClosedAfterResponse
        | Check::SseForeignEvent
        | Check::SseNonstandardEventName
        | Check::SseArrayInEvent => STREAM,
        Check::ServerRequestBeforeResponse => {
            "Before a client has said `notifications/initialized`, send no requests but ping."
        }
        Check::SseResumed => {
            "Nothing: 2025-11-25 allows it. Clients that cannot resume a stream see no answer."
        }
        Check::ErrorMessageInvalid => "Give an error a `message` that is a string.",
        Check::InitializeNotImplemented | Check::ModernOnlyServer => MODERN,
        Check::VersionRejected | Check::VersionRejectedAtHttp => NOT_AN_ERROR,
        Check::AuthInJsonrpc
        | Check::AuthWithWrongStatus
        | Check::WwwAuthenticateMissing
        | Check::ChallengeNotBearer => GATE,
        Check::PaymentInJsonrpc => PAY,
        Check::RejectedAcceptHeader | Check::RejectedContentType => HEADERS,
        Check::RejectedForMissingSession | Check::RequiresVersionHeader => OPENER,
        Check::BatchArrayReply
        | Check::DoubleEncodedEnvelope
        | Check::EchoesRequest
        | Check::MalformedEnvelopeBody
        | Check::Ndjson => ENVELOPE,
        Check::DiscoverOk => "Nothing.",
        Check::DiscoverInvalid | Check::DiscoverRcShape => DISCOVER,
        Check::WwwAuthenticateMalformed
        | Check::MultipleChallenges
        | Check::DuplicateChallengeParam => CHALLENGE,
        Check::JsonrpcBodyOn401 | Check::JsonrpcBodyOn403 => {
            "Nothing: the status is what counts. Clients read the challenge and not the body."
        }
        Check::HtmlBody | Check::GetServesHtml => PAGE,
        Check::HostGuardMisconfigured => HOSTS,
        Check::PlatformAppMissing => {
            "Deploy again, or withdraw the listing: the platform no longer knows the application."
        }
        Check::UnsolicitedEncoding
        | Check::ContentEncodingIdentity
        | Check::ContentEncodingMismatch
        | Check::ContentEncodingUnlabelled
        | Check::ContentEncodingTruncated => CODING,
        Check::ContentLengthMismatch => LENGTH,
        Check::Redirected
        | Check::RedirectedCrossOrigin
        | Check::RedirectTargetWouldSucceed
        | Check::RedirectTargetSays => MOVED,
        Check::ListedAsPlainHttp | Check::RedirectDowngrade | Check::PlainHttp => SECURE,
        Check::SlowFirstByte => SLOW,
        Check::Ipv6Unreachable => ADDRESS,
        Check::TransportMismatch => LISTED,
        Check::LegacySse => OLD_TRANSPORT,
        Check::SessionIdDuplicated | Check::SessionIdInvalidChars => SESSION,
        Check::CredentialsInListing => SECRET,
        Check::FragmentInUrl | Check::WhitespaceInUrl => WRITTEN,
        Check::TemplateDefaultsUsed => DEFAULTS,
        Check::DeprecatedListing => DEPRECATED,
        Check::AttemptsDisagree => DISAGREE,
        Check::Regional => REGIONAL,
    }
}
