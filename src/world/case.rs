//! The case format: what a server does, and how its answer to `initialize` should be read.
//! It says which scripted response a request gets; playing it is left to `serve`, and what the
//! tokens in its texts stand for to `tokens`. data/gauntlet/README.md is the format's reference.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Deserializer, de};

use super::request::Request;
use super::written::{Written, WrittenCase};
use crate::names::names;

/// One server behaviour with its right reading. Fields it does not know are passed over.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is called: the row's name in a scan, and (mended where it must be) the server's host label.
    pub id: String,
    /// What the server does, for people.
    pub title: String,
    /// Why the expected reading is right.
    pub why: String,
    /// What the case was written for.
    pub request_hint: RequestHint,
    /// What the server does, for the machine.
    pub response: Script,
    /// How the answer should be read.
    pub expect: Expect,
}

/// The request that a case was written for.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RequestHint {
    /// The path of the listed URL, `/mcp` where it is not given.
    pub path: Option<String>,
    /// The transport that the list declares, `streamable-http` where it is not given.
    pub transport: Option<String>,
    /// The protocol version to ask for.
    #[serde(rename = "protocolVersion")]
    pub protocol_version: Option<String>,
    /// How long the asker should wait at most, in milliseconds.
    pub deadline_ms: Option<u64>,
    /// What is asked first, `initialize` where it is not given.
    pub opening: Option<String>,
    /// The scheme of the listed URL, `http` where it is not given.
    pub scheme: Option<String>,
}

impl RequestHint {
    pub(super) fn path(&self) -> &str {
        self.path.as_deref().unwrap_or("/mcp")
    }

    pub(super) fn transport(&self) -> &str {
        self.transport.as_deref().unwrap_or("streamable-http")
    }
}

/// How an answer should be read. Names are kept as they are written, so that a corpus may be newer than this program.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Expect {
    /// The outcome.
    pub category: String,
    /// Its detail; `None` where any will do.
    pub detail: Option<String>,
    /// The findings that should be attached.
    pub findings: Vec<String>,
    /// The hint, where the answer's text suggests one.
    pub hint: Option<String>,
    /// Other outcomes that can be argued for.
    pub also_ok: Vec<String>,
    /// The checks of the specification that are not held to, each with `fail` or `warn`, and no others; `None` where
    /// the server is not held against the checks.
    pub checks: Option<BTreeMap<String, String>>,
}

/// Everything that a server does: its response, and responses for particular requests.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub struct Script {
    /// The response to `initialize`, and to whatever nothing else is said about.
    pub response: Response,
    /// Responses for particular requests; the first that matches is played.
    pub then: Vec<Then>,
}

/// One of the things a listed server can be.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Written")]
pub enum Response {
    /// It answers with an HTTP response.
    Http(Box<Http>),
    /// It answers with bytes that are no HTTP response, or none that could be written otherwise.
    Raw(Raw),
    /// It fails below HTTP.
    Transport(Transport),
    /// It is only an address in a list.
    Listed(String),
}

/// An HTTP response.
#[derive(Debug, Clone)]
pub struct Http {
    /// The status code.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// The headers, in order. Framing headers and `Connection: close` are added.
    pub headers: Vec<(String, String)>,
    /// This many bytes of further headers, roughly.
    pub header_flood_bytes: usize,
    /// The body.
    pub body: Body,
    /// The content coding applied to the body, tokens filled.
    pub encode: Option<Coding>,
    /// Leaves the coding's Content-Encoding header off.
    pub omit_encoding_header: bool,
    /// Added to the true Content-Length.
    pub length_delta: i64,
    /// Stands in the place of the true Content-Length.
    pub length_override: Option<i64>,
    /// Chunked transfer coding whose last chunk never comes.
    pub unterminated: bool,
    /// Sends the body in small pieces.
    pub dribble: Option<Dribble>,
    /// Waits before the status line.
    pub delay: Duration,
    /// How the connection ends.
    pub close: Close,
}

/// A body, before tokens are filled and a coding is applied.
#[derive(Debug, Clone)]
pub enum Body {
    /// Text with tokens, after bytes that stand in front of it.
    Text {
        /// What stands in front of the text, a byte order mark say.
        prefix: Vec<u8>,
        /// The text.
        text: Text,
    },
    /// Bytes as they are.
    Bytes(Vec<u8>),
    /// Pieces, each sent as a chunk of the chunked transfer coding.
    Chunks(Vec<Chunk>),
}

/// A piece of a streamed body.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// What is sent.
    pub content: Content,
    /// Waits before it is sent.
    pub delay: Duration,
    /// Sends it until the client leaves.
    pub forever: bool,
    /// Waits for the answer to a POST to this path.
    pub after_request: Option<String>,
}

/// What a chunk holds.
#[derive(Debug, Clone)]
pub enum Content {
    /// Text with tokens.
    Text(Text),
    /// Bytes as they are.
    Bytes(Vec<u8>),
}

/// Bytes that are the whole answer.
#[derive(Debug, Clone)]
pub struct Raw {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Fills tokens in them.
    pub subst: bool,
    /// Waits before they are sent.
    pub delay: Duration,
    /// How the connection ends.
    pub close: Close,
}

/// How a server fails below HTTP. The words are those of the format; one that is not known cannot be played.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// `refused` or `blackhole`.
    Connect(String),
    /// A trouble of the TLS handshake, or `alert:` and its name.
    Tls(String),
    /// `nxdomain`, `servfail`, `nodata`, `timeout`, or `answer:` and addresses.
    Dns(String),
    /// `rst_stream:` or `goaway:` and an error code of HTTP/2.
    H2(String),
}

/// Pieces of a body and the pause before each.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Dribble {
    /// The size of a piece.
    pub bytes: usize,
    /// The pause before each piece, in milliseconds.
    pub delay_ms: u64,
}

names! {
    /// How a connection ends.
    pub enum Close {
        /// After a complete message.
        Clean = "clean",
        /// By a reset (RST).
        Reset = "reset",
        /// In order (FIN), and inside the message.
        Premature = "premature",
        /// Not until the client leaves, or gives up.
        KeepOpen = "keepopen",
    }
}

names! {
    /// A coding of a body. All but UTF-16 are labelled with the word before the first hyphen.
    pub enum Coding {
        /// RFC 1952.
        Gzip = "gzip",
        /// RFC 1952, flushed and never finished.
        GzipSyncFlush = "gzip-sync-flush",
        /// RFC 7932.
        Br = "br",
        /// The magic number of RFC 8878, and then the plain bytes.
        Zstd = "zstd",
        /// UTF-16 with a byte order mark, little end first. No content coding, so never labelled.
        Utf16LeBom = "utf-16le-bom",
    }
}

names! {
    /// Which of its two addresses a server is asked at.
    pub enum Door {
        /// The listed one.
        Own = "self",
        /// The one that `@@OTHER_BASE@@` stands for.
        Other = "other",
    }
}

/// A response for particular requests.
#[derive(Debug, Clone, Deserialize)]
pub struct Then {
    /// Which requests.
    #[serde(rename = "match")]
    pub when: Match,
    /// What they get.
    pub response: Response,
}

/// What a request must be. Everything that is given must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Match {
    /// Its method.
    pub method: Option<String>,
    /// Its path, without the query.
    pub path: Option<String>,
    /// A pattern that its path begins with; the first group is the hop that `@@N+1@@` counts from.
    #[serde(deserialize_with = "pattern")]
    pub path_regex: Option<regex_lite::Regex>,
    /// The address it came to.
    pub host: Option<Door>,
    /// Headers it carries, with exactly these values.
    pub header: BTreeMap<String, String>,
    /// What its body contains.
    pub body_contains: Option<String>,
    /// Its body, whole.
    pub body: Option<String>,
}

/// Text with tokens, as bytes: JSON can hold half a surrogate pair, and a string of ours cannot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(pub Vec<u8>);

fn pattern<'de, D: Deserializer<'de>>(from: D) -> Result<Option<regex_lite::Regex>, D::Error> {
    let Some(text) = <Option<String>>::deserialize(from)? else {
        return Ok(None);
    };
    regex_lite::Regex::new(&format!("^(?:{text})"))
        .map(Some)
        .map_err(de::Error::custom)
}

impl Http {
    /// A response of text, and nothing odd about it.
    pub(super) fn plain(status: u16, media_type: Option<&str>, body: &str) -> Self {
        let headers = media_type.map(|it| ("Content-Type".to_owned(), it.to_owned()));
        Self {
            status,
            reason: "X".to_owned(),
            headers: headers.into_iter().collect(),
            header_flood_bytes: 0,
            body: Body::Text {
                prefix: Vec::new(),
                text: Text(body.as_bytes().to_vec()),
            },
            encode: None,
            omit_encoding_header: false,
            length_delta: 0,
            length_override: None,
            unterminated: false,
            dribble: None,
            delay: Duration::ZERO,
            close: Close::Clean,
        }
    }
}

impl Coding {
    /// The value of Content-Encoding that says so.
    pub(super) fn label(self) -> Option<&'static str> {
        match self {
            Self::Gzip | Self::GzipSyncFlush => Some("gzip"),
            Self::Br => Some("br"),
            Self::Zstd => Some("zstd"),
            Self::Utf16LeBom => None,
        }
    }
}

impl Match {
    /// Whether a request is one of these, and the hop number where its path carries one.
    fn holds(&self, request: &Request, door: Door) -> Option<Hop> {
        let given = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|it| it == is);
        let fits = given(&self.method, &request.method)
            && given(&self.path, request.path())
            && self.host.is_none_or(|it| it == door)
            && self
                .header
                .iter()
                .all(|(name, value)| request.header(name) == Some(value))
            && self
                .body_contains
                .as_deref()
                .is_none_or(|it| String::from_utf8_lossy(&request.body).contains(it))
            && self
                .body
                .as_ref()
                .is_none_or(|it| it.as_bytes() == request.body);
        if !fits {
            return None;
        }
        let Some(pattern) = &self.path_regex else {
            return Some(Hop(None));
        };
        let groups = pattern.captures(request.path())?;
        Some(Hop(groups.get(1).and_then(|it| it.as_str().parse().ok())))
    }
}

/// The number that a redirect chain has counted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hop(pub(super) Option<u64>);

impl Script {
    /// A server that answers `initialize` as it should, for cases that are about something else.
    pub(super) fn working() -> Self {
        const RESULT: &str = r#"{"jsonrpc":"2.0","id":@@ID@@,"result":{"protocolVersion":"@@PV@@","capabilities":{"tools":{}},"serverInfo":{"name":"acme-demo","version":"1.0.0"}}}"#;
        Self {
            response: Response::Http(Box::new(Http::plain(200, Some("application/json"), RESULT))),
            then: Vec::new(),
        }
    }

    /// The response to a request. `speaks`: the server speaks MCP, so it answers what it does not know as such a server would.
    pub(super) fn answer(
        &self,
        request: &Request,
        door: Door,
        speaks: bool,
    ) -> (Cow<'_, Response>, Hop) {
        for then in &self.then {
            if let Some(hop) = then.when.holds(request, door) {
                return (Cow::Borrowed(&then.response), hop);
            }
        }
        let rpc = request.rpc_method();
        let usual = match request.method.as_str() {
            "GET" | "HEAD" => Some(Http::plain(405, Some("text/plain"), "Method Not Allowed")),
            "DELETE" => Some(Http::plain(405, None, "")),
            _ if rpc.starts_with("notifications/") => Some(Http::plain(202, None, "")),
            _ if speaks && !matches!(rpc, "initialize" | "") => Some(Http::plain(
                200,
                Some("application/json"),
                r#"{"jsonrpc":"2.0","id":@@ID@@,"error":{"code":-32601,"message":"Method not found"}}"#,
            )),
            _ => None,
        };
        let answer = match usual {
            Some(usual) => Cow::Owned(Response::Http(Box::new(usual))),
            None => Cow::Borrowed(&self.response),
        };
        (answer, Hop(None))
    }
}

/// Reads a file of cases.
///
/// # Errors
/// When it is no JSON array of cases; the error names the place.
pub fn read(text: &str) -> anyhow::Result<Vec<Case>> {
    let written: Vec<WrittenCase> = serde_json::from_str(text).context("no array of cases")?;
    let mut cases = Vec::with_capacity(written.len());
    for case in written {
        let case = case.after(&cases)?;
        cases.push(case);
    }
    Ok(cases)
}

/// The built-in servers of the checks of the specification: good ones, and for every check one that breaks it alone.
///
/// # Panics
/// Never: a test reads the file.
#[must_use]
pub fn checks() -> Vec<Case> {
    read(include_str!("../../data/gauntlet/checks.json"))
        .expect("the embedded corpus is read by a test")
}

/// The corpus that is built in: data/gauntlet, file by file.
///
/// # Panics
/// Never: a test reads every file.
#[must_use]
pub fn corpus() -> Vec<Case> {
    const FILES: [&str; 10] = [
        include_str!("../../data/gauntlet/success.json"),
        include_str!("../../data/gauntlet/sse.json"),
        include_str!("../../data/gauntlet/envelope.json"),
        include_str!("../../data/gauntlet/era.json"),
        include_str!("../../data/gauntlet/http.json"),
        include_str!("../../data/gauntlet/gate.json"),
        include_str!("../../data/gauntlet/redirect.json"),
        include_str!("../../data/gauntlet/body.json"),
        include_str!("../../data/gauntlet/transport.json"),
        include_str!("../../data/gauntlet/url.json"),
    ];
    FILES
        .iter()
        .flat_map(|file| read(file).expect("the embedded corpus is read by a test"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use std::collections::BTreeSet;

    fn script(json: &str) -> Script {
        serde_json::from_str(json).unwrap()
    }

    async fn request(line: &str, body: &str) -> Request {
        let length = body.len();
        let text = format!(
            "{line} HTTP/1.1\r\nHost: a\r\nLast-Event-ID: s1/0\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        Request::read(&mut text.as_bytes()).await.unwrap()
    }

    fn status(response: &Response) -> u16 {
        match response {
            Response::Http(http) => http.status,
            Response::Raw(_) | Response::Transport(_) | Response::Listed(_) => 0,
        }
    }

    #[test]
    fn the_corpus_is_read_and_names_outcomes_that_there_are() {
        let corpus = corpus();
        assert_eq!(corpus.len(), 218);
        let ids: BTreeSet<&str> = corpus.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids.len(), corpus.len(), "an id stands twice");
        for case in &corpus {
            let expect = &case.expect;
            for name in std::iter::once(&expect.category).chain(&expect.also_ok) {
                assert!(Outcome::named(name).is_some(), "{}: {name}", case.id);
            }
        }
    }

    #[test]
    fn fields_that_are_not_known_are_passed_over() {
        let cases = read(
            r#"[{"id": "a", "n": 1, "kind": "success", "source": "somewhere", "client_pitfall": "",
                 "response": {"status": 200, "body": "x", "body_b64_id1": "eA==", "close": "clean"},
                 "expect": {"category": "success", "detail": null, "proposed": null}}]"#,
        );
        assert_eq!(cases.unwrap()[0].id, "a");
    }

    #[test]
    fn a_response_is_one_of_the_things_it_can_be() {
        assert!(matches!(
            script(r#"{"url": ""}"#).response,
            Response::Listed(_)
        ));
        assert!(matches!(
            script(r#"{"transport": {"tls": "expired"}}"#).response,
            Response::Transport(Transport::Tls(word)) if word == "expired"
        ));
        assert!(matches!(
            script(r#"{"raw_b64": "eA==", "after": "request"}"#).response,
            Response::Raw(Raw { bytes, close: Close::Clean, .. }) if bytes == b"x"
        ));
        let nothing = serde_json::from_str::<Script>("{}").unwrap_err();
        assert!(nothing.to_string().contains("has a status"), "{nothing}");
    }

    #[test]
    fn half_a_surrogate_pair_survives() {
        let Response::Http(http) = script(r#"{"status": 200, "body": "\ud83d"}"#).response else {
            panic!("no HTTP response");
        };
        assert!(
            matches!(&http.body, Body::Text { text, .. } if text.0 == b"\xed\xa0\xbd"),
            "{:?}",
            http.body
        );
    }

    #[tokio::test]
    async fn the_first_match_in_which_everything_holds_answers() {
        let script = script(
            r#"{"status": 200, "then": [
                {"match": {"method": "GET", "header": {"Last-Event-ID": "s1/0"}, "path": "/resume"}, "response": {"status": 210}},
                {"match": {"host": "other"}, "response": {"status": 211}},
                {"match": {"path_regex": "/hop/(\\d+)$"}, "response": {"status": 212}},
                {"match": {"body_contains": "server/discover"}, "response": {"status": 213}},
                {"match": {"path": "/resume"}, "response": {"status": 214}}
            ]}"#,
        );
        let initialize = r#"{"id": 7, "method": "initialize"}"#;
        let discover = r#"{"id": 7, "method": "server/discover"}"#;
        for (line, body, door, wanted, hop) in [
            ("POST /mcp", initialize, Door::Own, 200, None),
            ("GET /resume?x=1", "", Door::Own, 210, None),
            ("POST /resume", initialize, Door::Own, 214, None),
            ("POST /mcp", initialize, Door::Other, 211, None),
            ("POST /hop/41", initialize, Door::Own, 212, Some(41)),
            ("POST /x/hop/41", initialize, Door::Own, 200, None),
            ("POST /mcp", discover, Door::Own, 213, None),
        ] {
            let request = request(line, body).await;
            let (response, found) = script.answer(&request, door, true);
            assert_eq!(
                (status(&response), found),
                (wanted, Hop(hop)),
                "{line} {body}"
            );
        }
    }

    #[tokio::test]
    async fn what_a_script_does_not_mention_is_answered_as_a_server_of_its_kind_would() {
        let script = script(r#"{"status": 299}"#);
        for (line, body, speaking, silent) in [
            ("GET /mcp", "", 405, 405),
            ("DELETE /mcp", "", 405, 405),
            (
                "POST /mcp",
                r#"{"method": "notifications/initialized"}"#,
                202,
                202,
            ),
            (
                "POST /mcp",
                r#"{"id": 2, "method": "tools/list"}"#,
                200,
                299,
            ),
            (
                "POST /mcp",
                r#"{"id": 2, "method": "initialize"}"#,
                299,
                299,
            ),
            ("POST /mcp", "no json", 299, 299),
        ] {
            let request = request(line, body).await;
            let answer = |speaks| status(&script.answer(&request, Door::Own, speaks).0);
            assert_eq!(
                (answer(true), answer(false)),
                (speaking, silent),
                "{line} {body}"
            );
        }
    }
}
