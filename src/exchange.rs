//! What was sent, what came back, and how the connection ended: the evidence, uninterpreted.
//!
//! Nothing here concludes anything; `classify` does. Bodies are the bytes as they came over the
//! wire, content coding and all, bounded on the way in.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::net::IpAddr;

use crate::names::names;

/// One request and everything that came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The endpoint's number in the frozen list, counted from 0 in order of first appearance.
    pub endpoint: u32,
    /// Which time of asking: 0, then one more for each confirmation.
    pub attempt: u8,
    /// Why it was sent.
    pub leg: Leg,
    /// When it was sent.
    pub started_at: Timestamp,
    /// What was sent.
    pub request: Request,
    /// What came back.
    pub reply: Reply,
    /// How long each phase took.
    #[serde(default, skip_serializing_if = "Timing::is_empty")]
    pub timing: Timing,
    /// What the connection was.
    #[serde(default, skip_serializing_if = "Connection::is_empty")]
    pub connection: Connection,
}

names! {
    /// Why a request was sent.
    pub enum Leg {
        /// The `initialize` POST, or its re-POST after a 307 or 308.
        Initialize = "initialize",
        /// What a POST to the target of a 301, 302 or 303 says; it decides nothing.
        RedirectTarget = "redirect_target",
        /// `server/discover` of 2026-07-28.
        Discover = "discover",
        /// The GET that opens an HTTP+SSE stream (2024-11-05).
        SseStream = "sse_stream",
        /// The `initialize` POST to the address that an HTTP+SSE stream named.
        SseMessage = "sse_message",
        /// The GET with `Last-Event-ID` that resumes a stream closed after a priming event.
        SseResume = "sse_resume",
        /// `notifications/initialized`, which ends the handshake.
        Initialized = "initialized",
        /// `ping`.
        Ping = "ping",
        /// `tools/list`, page by page; in the session, or as a request of 2026-07-28.
        Tools = "tools_list",
        /// `tools/list` once more, for the order of the tools.
        ToolsAgain = "tools_list_again",
        /// `prompts/list`, whether prompts are declared or not.
        Prompts = "prompts_list",
        /// `resources/list`, whether resources are declared or not.
        Resources = "resources_list",
        /// A GET of the endpoint that asks for the server's event stream; closed as soon as it is opened.
        Listen = "listen",
        /// The GET of a document that says who may let us in (RFC 9728).
        ResourceMetadata = "resource_metadata",
        /// The GET of a document in which an authorization server describes itself (RFC 8414, OpenID discovery).
        IssuerMetadata = "issuer_metadata",
        /// A request that is wrong on purpose; its id says for which check. For servers of one's own.
        Intrusive = "intrusive",
        /// The GET of a site's `robots.txt` (RFC 9309).
        Robots = "robots",
        /// The GET of a page of a registry's list.
        RegistryPage = "registry_page",
        /// The DELETE of a session we were given.
        Close = "close",
    }
}

impl Leg {
    /// Whether it is sent for the checks of the specification alone.
    #[must_use]
    pub const fn is_for_checks(self) -> bool {
        match self {
            Self::Initialized
            | Self::Ping
            | Self::Tools
            | Self::ToolsAgain
            | Self::Prompts
            | Self::Resources
            | Self::Listen
            | Self::Intrusive
            | Self::ResourceMetadata
            | Self::IssuerMetadata => true,
            Self::Initialize
            | Self::RedirectTarget
            | Self::Discover
            | Self::SseStream
            | Self::SseMessage
            | Self::SseResume
            | Self::Robots
            | Self::RegistryPage
            | Self::Close => false,
        }
    }

    /// Whether it asks for a document that somebody pointed to, and not the endpoint itself.
    #[must_use]
    pub const fn is_document(self) -> bool {
        matches!(
            self,
            Self::ResourceMetadata | Self::IssuerMetadata | Self::Robots | Self::RegistryPage
        )
    }
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// GET, POST or DELETE.
    pub method: String,
    /// The URL asked, with its query.
    pub url: String,
    /// The headers we set, in order.
    pub headers: Vec<(String, String)>,
    /// The body, empty for GET and DELETE.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
}

impl Request {
    /// Whether a header of that name is set.
    #[must_use]
    pub fn has_header(&self, name: &str) -> bool {
        self.headers
            .iter()
            .any(|(set, _)| set.eq_ignore_ascii_case(name))
    }
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// A status line and headers, and as much of a body as there was.
    Answer(Answer),
    /// No status line.
    Fault(Fault),
}

/// An HTTP response.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`.
    pub version: String,
    /// The status code.
    pub status: u16,
    /// The headers as they came, in order, names in lower case, repeated where they were.
    pub headers: Vec<(String, String)>,
    /// The body's bytes, before any content coding is undone.
    pub body: Body,
    /// How the body ended.
    pub end: BodyEnd,
}

impl Answer {
    /// Every value of a header, in order. `name` is in lower case.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The first value of a header. `name` is in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// The media type without its parameters, in lower case; empty where there is none.
    #[must_use]
    pub fn media_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    }
}

/// A body's bytes; text in the evidence file where they are UTF-8, base64 where they are not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Body(pub Vec<u8>);

/// An answer as it stands in the evidence file.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    version: Cow<'a, str>,
    status: u16,
    headers: Cow<'a, [(String, String)]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_b64: Option<String>,
    end: BodyEnd,
}

impl Serialize for Answer {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let text = std::str::from_utf8(&self.body.0).ok();
        Line {
            version: Cow::Borrowed(&self.version),
            status: self.status,
            headers: Cow::Borrowed(&self.headers),
            body: text.filter(|it| !it.is_empty()).map(Cow::Borrowed),
            body_b64: if text.is_none() {
                Some(STANDARD.encode(&self.body.0))
            } else {
                None
            },
            end: self.end,
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let line = Line::deserialize(from)?;
        let body = match (line.body, line.body_b64) {
            (Some(text), _) => text.into_owned().into_bytes(),
            (None, Some(coded)) => STANDARD.decode(coded).map_err(serde::de::Error::custom)?,
            (None, None) => Vec::new(),
        };
        Ok(Self {
            version: line.version.into_owned(),
            status: line.status,
            headers: line.headers.into_owned(),
            body: Body(body),
            end: line.end,
        })
    }
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyEnd {
    /// It was read to its end.
    Complete,
    /// We left: what we came for had arrived, and the server had not closed the stream.
    Left,
    /// We left: it was plainly a web page.
    Page,
    /// It passed the limit, as sent or decoded.
    OverLimit,
    /// It broke off.
    Broken(Fault),
}

/// Where on the way to an answer, or inside one, an exchange failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The name did not resolve.
    Dns(DnsFault),
    /// The name resolved to an address that is not public.
    PrivateAddress(IpAddr),
    /// The host, or an address of it, asked to be left alone.
    Excluded,
    /// No connection.
    Connect(ConnectFault),
    /// No TLS session.
    Tls(TlsFault),
    /// The deadline passed.
    Deadline(Stage),
    /// The connection was there, and no complete response came over it.
    Dropped(Drop),
    /// It was us: nothing is known of the endpoint.
    Local(LocalFault),
}

names! {
    /// Why a name did not resolve.
    pub enum DnsFault {
        /// The name does not exist (NXDOMAIN, RFC 1035 §4.1.1).
        NxDomain = "nxdomain",
        /// The name server failed (SERVFAIL), or refused.
        ServFail = "servfail",
        /// The name exists and has no address (NODATA, RFC 2308 §2.2).
        NoData = "nodata",
        /// No answer in time.
        Timeout = "timeout",
    }
}

names! {
    /// Why no connection came about.
    pub enum ConnectFault {
        /// Connection refused (RST to our SYN).
        Refused = "refused",
        /// The network has no route there.
        NoRoute = "no_route",
        /// Reset while connecting.
        Reset = "reset",
        /// Anything else.
        Other = "other",
    }
}

names! {
    /// Why no TLS session came about.
    pub enum TlsFault {
        /// The certificate has expired.
        Expired = "expired",
        /// The certificate is not valid yet.
        NotYetValid = "not_yet_valid",
        /// No path to a trusted root: self-signed, or an intermediate is missing.
        UnknownIssuer = "unknown_issuer",
        /// The certificate is for other names.
        WrongHost = "wrong_host",
        /// The certificate is revoked.
        Revoked = "revoked",
        /// The certificate cannot be used or read.
        BadCertificate = "bad_certificate",
        /// No protocol version in common.
        ProtocolVersion = "protocol_version",
        /// What answered does not speak TLS.
        NotTls = "not_tls",
        /// The server sent a fatal alert.
        Alert = "alert",
        /// The server wants a client certificate.
        ClientCertRequired = "client_cert_required",
        /// Reset during the handshake.
        Reset = "reset",
        /// Closed during the handshake.
        Closed = "closed",
        /// Anything else.
        Other = "other",
    }
}

names! {
    /// What we were waiting for when the deadline passed.
    pub enum Stage {
        /// The TCP connection.
        Connect = "connect",
        /// The TLS handshake.
        Tls = "tls",
        /// The status line and headers.
        FirstByte = "first_byte",
        /// The rest of the body.
        Body = "body",
        /// An event stream was open, and our answer did not come over it.
        SseNoResponse = "sse_no_response",
        /// An HTTP+SSE stream was open, and its `endpoint` event did not come.
        SseNoEndpoint = "sse_no_endpoint",
    }
}

names! {
    /// How a connection was lost.
    pub enum Drop {
        /// Reset before a status line.
        BeforeResponse = "before_response",
        /// Closed without a status line.
        EmptyReply = "empty_reply",
        /// Reset in the middle of the body.
        MidBody = "mid_body",
        /// Closed before the body's announced end.
        IncompleteBody = "incomplete_body",
        /// What came is not HTTP.
        HttpMalformed = "http_malformed",
        /// More headers than we read.
        HeadersOverLimit = "headers_over_limit",
        /// The HTTP/2 stream was reset.
        H2StreamReset = "h2_stream_reset",
        /// The HTTP/2 connection was closed by GOAWAY or a protocol error.
        H2GoAway = "h2_goaway",
        /// The event stream ended before our answer.
        SseClosedBeforeResponse = "sse_closed_before_response",
    }
}

names! {
    /// Our own failures. None says anything of the endpoint.
    pub enum LocalFault {
        /// No file descriptor or no local port was left.
        Exhausted = "exhausted",
        /// This machine has no network.
        NoNetwork = "no_network",
        /// The prober itself failed.
        Instrument = "instrument_error",
        /// The run was stopped while it waited.
        Interrupted = "interrupted",
    }
}

/// How long each phase took, in milliseconds; empty where the phase did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// Name resolution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_ms: Option<f64>,
    /// TCP connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<f64>,
    /// TLS handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_ms: Option<f64>,
    /// From the start to the status line and headers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<f64>,
    /// From the start to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<f64>,
}

impl Timing {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What the connection was.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Connection {
    /// The address that was connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<IpAddr>,
    /// An IPv6 address was there, routable from here, and did not answer; IPv4 did.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ipv6_unreachable: bool,
    /// There was none: another endpoint of the run had asked for the same document, and this is what came of that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
}

impl Connection {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Exchange {
    /// The response, where there was one.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        match &self.reply {
            Reply::Answer(answer) => Some(answer),
            Reply::Fault(_) => None,
        }
    }

    /// The session that this request closes, where it is a DELETE of one.
    #[must_use]
    pub fn closes(&self) -> Option<&str> {
        let headers = self.request.headers.iter();
        headers
            .filter(|_| self.leg == Leg::Close)
            .find(|(name, _)| name.eq_ignore_ascii_case("mcp-session-id"))
            .map(|(_, value)| value.as_str())
    }

    /// The session the server gave us in this answer, where it gave one (2025-11-25 transports, "Session Management").
    #[must_use]
    pub fn session(&self) -> Option<&str> {
        self.answer()?
            .header("mcp-session-id")
            .filter(|id| !id.is_empty())
    }
}
