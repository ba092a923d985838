//! MCP on the wire: the requests we send, the results we accept, the revisions there are.
//! JSON-RPC's own shapes are `jsonrpc`'s; when to send what is `inquiry`'s.

use serde::Serialize;
use serde_json::{Value, json};
use url::Url;

use crate::exchange::Request;
use crate::outcome::{Problem, Violation};

/// The newest revision whose opening is `initialize`; what a census asks for unless told otherwise.
pub const ASKED_VERSION: &str = "2025-11-25";

/// The revision that has no `initialize`.
pub const MODERN_VERSION: &str = "2026-07-28";

/// Every revision string that a server is known to negotiate, oldest first. `2024-10-07` is a pre-release.
pub const VERSIONS: [&str; 6] = [
    "2024-10-07",
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    ASKED_VERSION,
    MODERN_VERSION,
];

/// The id of our `initialize`: neither 0 nor 1, which a server may have written in.
pub const INITIALIZE_ID: i64 = 7341;

/// The id of our `server/discover`.
pub const DISCOVER_ID: i64 = 7342;

/// The id of our `ping`.
pub const PING_ID: i64 = 7343;

/// The id of our `tools/list`.
pub const TOOLS_ID: i64 = 7344;

/// The id of our second `tools/list`.
pub const TOOLS_AGAIN_ID: i64 = 7345;

/// The id of our `prompts/list`.
pub const PROMPTS_ID: i64 = 7346;

/// The id of our `resources/list`.
pub const RESOURCES_ID: i64 = 7347;

/// The id of the second page of tools; each further page has the next one. No id is used twice in a session.
pub const TOOLS_PAGE_ID: i64 = 7350;

/// Further pages that are asked for at most.
pub const TOOLS_PAGES: i64 = 16;

/// The ids of requests that are wrong on purpose, which is for servers of one's own: this, and the number of the check.
pub const INTRUSIVE_ID: i64 = 7300;

/// The ids of the requests that come after `initialize`, whatever they are for.
pub const LATER_IDS: std::ops::RangeInclusive<i64> = DISCOVER_ID..=7399;

/// The header that carries a session.
pub const SESSION_HEADER: &str = "Mcp-Session-Id";

/// The header that names the revision.
pub const VERSION_HEADER: &str = "MCP-Protocol-Version";

/// Capabilities whose values the schemas make objects (2024-11-05 to 2026-07-28).
const CAPABILITIES: [&str; 8] = [
    "experimental",
    "logging",
    "prompts",
    "resources",
    "tools",
    "completions",
    "tasks",
    "extensions",
];

/// A JSON-RPC request, or a notification where it has no id (JSON-RPC 2.0 §4).
#[derive(Serialize)]
struct Call<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<i64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

impl<'a, P> Call<'a, P> {
    const fn new(id: Option<i64>, method: &'a str, params: Option<P>) -> Self {
        Self {
            jsonrpc: "2.0",
            id,
            method,
            params,
        }
    }
}

impl<'a> Call<'a, Empty> {
    const fn bare(id: Option<i64>, method: &'a str) -> Self {
        Self::new(id, method, None)
    }
}

/// `{}`.
#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitializeParams<'a> {
    protocol_version: &'a str,
    capabilities: Empty,
    client_info: ClientInfo<'a>,
}

/// `Implementation` of the schemas.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ClientInfo<'a> {
    name: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    website_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
}

/// Who asks: what the User-Agent and `clientInfo` say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// A URL or an address where an operator can reach the person who runs the census.
    pub contact: Option<String>,
}

impl Identity {
    /// The User-Agent.
    #[must_use]
    pub fn user_agent(&self) -> String {
        let tool = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));
        match &self.contact {
            Some(contact) => format!("{tool} (+{contact})"),
            None => tool.to_owned(),
        }
    }

    fn client_info(&self) -> ClientInfo<'_> {
        let contact = self.contact.as_deref();
        let is_address = contact.is_some_and(|it| it.starts_with("http"));
        ClientInfo {
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            website_url: contact.filter(|_| is_address),
            description: contact.filter(|_| !is_address),
        }
    }

    /// `initialize` of the legacy revisions (2025-11-25 lifecycle, "Initialization"). No `MCP-Protocol-Version`
    /// header: that one belongs to the requests after it.
    #[must_use]
    pub fn initialize(&self, url: &Url, version: &str) -> Request {
        let params = InitializeParams {
            protocol_version: version,
            capabilities: Empty {},
            client_info: self.client_info(),
        };
        let call = Call::new(Some(INITIALIZE_ID), "initialize", Some(params));
        self.post(url, &call, &[])
    }

    /// `server/discover` of 2026-07-28 and later, with the headers and `_meta` that revision demands.
    #[must_use]
    pub fn discover(&self, url: &Url, version: &str) -> Request {
        self.modern(url, "server/discover", DISCOVER_ID, version)
    }

    /// A request of 2026-07-28 and later, which describes itself: headers and `_meta` say what a session did before.
    #[must_use]
    pub fn modern(&self, url: &Url, method: &str, id: i64, version: &str) -> Request {
        let call = self.call(method, id, version);
        self.post(
            url,
            &call,
            &[(VERSION_HEADER, version), ("Mcp-Method", method)],
        )
    }

    fn call<'a>(&self, method: &'a str, id: i64, version: &str) -> Call<'a, Value> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": self.client_info(),
        });
        Call::new(Some(id), method, Some(json!({ "_meta": meta })))
    }

    /// The body of a request that describes itself.
    #[must_use]
    pub fn described(&self, method: &str, id: i64, version: &str) -> Value {
        serde_json::to_value(self.call(method, id, version)).unwrap_or_default()
    }

    /// A page of `tools/list`: in the standing that `initialize` gave us, or as a request that describes itself.
    #[must_use]
    pub fn tools_page(
        &self,
        url: &Url,
        cursor: &str,
        id: i64,
        standing: Option<&Standing>,
    ) -> Request {
        const METHOD: &str = "tools/list";
        if let Some(standing) = standing {
            let params = json!({ "cursor": cursor });
            let call = Call::new(Some(id), METHOD, Some(params));
            return self.post(url, &call, &standing.headers());
        }
        let mut call = self.call(METHOD, id, MODERN_VERSION);
        if let Some(params) = &mut call.params {
            params["cursor"] = json!(cursor);
        }
        let further = [(VERSION_HEADER, MODERN_VERSION), ("Mcp-Method", METHOD)];
        self.post(url, &call, &further)
    }

    /// A POST of any text with any headers beside the usual ones: what is wrong on purpose.
    #[must_use]
    pub fn any(&self, url: &Url, body: String, further: &[(&str, &str)]) -> Request {
        Request {
            body,
            ..self.post(url, &Call::bare(None, ""), further)
        }
    }

    /// `notifications/initialized`, the client's word that the handshake is over (2025-11-25 lifecycle).
    #[must_use]
    pub fn confirm(&self, url: &Url, standing: &Standing) -> Request {
        let call = Call::bare(None, "notifications/initialized");
        self.post(url, &call, &standing.headers())
    }

    /// A request in the standing that `initialize` gave us.
    #[must_use]
    pub fn follow_up(&self, url: &Url, method: &str, id: i64, standing: &Standing) -> Request {
        let call = Call::bare(Some(id), method);
        self.post(url, &call, &standing.headers())
    }

    /// The GET that asks for the server's own event stream (2025-11-25 transports, "Listening for Messages").
    #[must_use]
    pub fn listen(&self, url: &Url, standing: &Standing) -> Request {
        let mut pairs = vec![("Accept", "text/event-stream")];
        pairs.extend(standing.headers());
        self.get(url, &pairs)
    }

    /// The GET of a metadata document.
    #[must_use]
    pub fn document(&self, url: &Url) -> Request {
        self.get(url, &[("Accept", "application/json")])
    }

    /// The GET of a text, such as `robots.txt`.
    #[must_use]
    pub fn text(&self, url: &Url) -> Request {
        self.get(url, &[("Accept", "text/plain, */*;q=0.1")])
    }

    fn get(&self, url: &Url, pairs: &[(&str, &str)]) -> Request {
        Request {
            method: "GET".into(),
            url: url.as_str().to_owned(),
            headers: self.headers(pairs),
            body: String::new(),
        }
    }

    fn post<P: Serialize>(
        &self,
        url: &Url,
        call: &Call<'_, P>,
        further: &[(&str, &str)],
    ) -> Request {
        let mut headers = self.headers(&[
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ]);
        headers.extend(
            further
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned())),
        );
        Request {
            method: "POST".into(),
            url: url.as_str().to_owned(),
            headers,
            body: serde_json::to_string(call).unwrap_or_default(),
        }
    }

    /// The GET that opens an event stream: HTTP+SSE of 2024-11-05, or a stream to resume.
    #[must_use]
    pub fn open_stream(&self, url: &Url, resume: Option<&Resume>) -> Request {
        let mut headers = self.headers(&[("Accept", "text/event-stream")]);
        if let Some(resume) = resume {
            headers.push(("Last-Event-ID".into(), resume.last_event_id.clone()));
            headers.extend(
                resume
                    .session
                    .iter()
                    .map(|id| ("Mcp-Session-Id".into(), id.clone())),
            );
        }
        Request {
            method: "GET".into(),
            url: url.as_str().to_owned(),
            headers,
            body: String::new(),
        }
    }

    /// The DELETE that ends a session (2025-11-25 transports, "Session Management" 5).
    #[must_use]
    pub fn close(&self, url: &Url, session: &str, version: Option<&str>) -> Request {
        let mut headers = self.headers(&[
            ("Accept", "application/json, text/event-stream"),
            ("Mcp-Session-Id", session),
        ]);
        headers.extend(version.map(|version| ("MCP-Protocol-Version".into(), version.to_owned())));
        Request {
            method: "DELETE".into(),
            url: url.as_str().to_owned(),
            headers,
            body: String::new(),
        }
    }

    fn headers(&self, pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut headers = vec![("User-Agent".to_owned(), self.user_agent())];
        headers.extend(
            pairs
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.to_owned())),
        );
        headers
    }
}

/// What `initialize` left us with, for the requests after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standing {
    /// The session, where we were given one.
    pub session: Option<String>,
    /// The revision to name in a header, from 2025-06-18 on.
    pub version: Option<String>,
}

impl Standing {
    /// The headers that say so.
    #[must_use]
    pub fn headers(&self) -> Vec<(&str, &str)> {
        let session = self.session.as_deref().map(|id| (SESSION_HEADER, id));
        let version = self.version.as_deref().map(|it| (VERSION_HEADER, it));
        session.into_iter().chain(version).collect()
    }
}

/// What a stream is resumed with (2025-11-25 transports, "Resumability").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// The last event id the stream gave.
    pub last_event_id: String,
    /// The session, where we have one.
    pub session: Option<String>,
    /// How long the server asks us to wait, in milliseconds.
    pub wait_ms: u64,
}

/// Where an HTTP+SSE stream wants its messages (2024-11-05 transports): resolved against the stream's own
/// address, and on the same origin, so that a stranger's stream cannot send us elsewhere.
///
/// # Errors
/// When the event names no address, or one of another origin.
pub fn message_endpoint(stream: &Url, data: &str) -> Result<Url, Violation> {
    let data = data.trim();
    if data.is_empty() || data.starts_with(['"', '{', '[']) || data.contains(char::is_whitespace) {
        return Err(Violation::EndpointInvalid);
    }
    let url = stream.join(data).map_err(|_| Violation::EndpointInvalid)?;
    if url.origin() == stream.origin() {
        Ok(url)
    } else {
        Err(Violation::EndpointOriginMismatch)
    }
}

/// What an `InitializeResult` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initialized {
    /// The revision the server answers with.
    pub version: String,
    /// `serverInfo.name`.
    pub name: String,
    /// `serverInfo.version`.
    pub server_version: String,
    /// An optional member is null.
    pub null_optional: bool,
}

/// A member at fault: its path, and what is wrong.
pub type Fault = (String, Problem);

/// Checks an `InitializeResult`: the required members of every legacy schema, and the types of the optional ones.
///
/// # Errors
/// The first member at fault, in the order of the schema.
pub fn initialized(result: &Value) -> Result<Initialized, Fault> {
    let version = string(result, "protocolVersion", "protocolVersion")?;
    if !is_date(version) {
        return Err(("protocolVersion".into(), Problem::Malformed));
    }
    let mut null_optional = capabilities(result)?;
    let info = object(result, "serverInfo", "serverInfo")?;
    let name = string(info, "name", "serverInfo.name")?;
    let server_version = string(info, "version", "serverInfo.version")?;
    for (holder, member, path) in [
        (info, "title", "serverInfo.title"),
        (result, "instructions", "instructions"),
    ] {
        match holder.get(member) {
            None | Some(Value::String(_)) => {}
            Some(Value::Null) => null_optional = true,
            Some(_) => return Err((path.into(), Problem::Type)),
        }
    }
    Ok(Initialized {
        version: version.into(),
        name: name.into(),
        server_version: server_version.into(),
        null_optional,
    })
}

/// What a `DiscoverResult` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// `supportedVersions`. Legacy revisions may be missing from it although they are served.
    pub versions: Vec<String>,
    /// The server's name, from `_meta`.
    pub name: Option<String>,
    /// The server's version, from `_meta`.
    pub server_version: Option<String>,
    /// `serverInfo` stands at the top level, as before 2026-07-15.
    pub rc_shape: bool,
    /// What is wrong with the caching members, which say how long to keep the answer and not what it is.
    pub caching: Option<Fault>,
}

/// Checks a `DiscoverResult` (2026-07-28 `server/discover`, caching, and the `_meta` of every result).
///
/// # Errors
/// The first member at fault.
pub fn discovered(result: &Value) -> Result<Discovered, Fault> {
    match result.get("resultType") {
        // Absent means complete (2026-07-28 basic, "resultType").
        None => {}
        Some(Value::String(kind)) if kind == "complete" => {}
        Some(Value::String(_)) => return Err(("resultType".into(), Problem::Malformed)),
        Some(_) => return Err(("resultType".into(), Problem::Type)),
    }
    let versions = match result.get("supportedVersions") {
        None => return Err(("supportedVersions".into(), Problem::Missing)),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<Vec<_>>>(),
        Some(_) => None,
    }
    .ok_or_else(|| ("supportedVersions".to_owned(), Problem::Type))?;
    capabilities(result)?;
    let (info, rc_shape) = server_info(result);
    let text = |member: &str| {
        info.and_then(|info| info.get(member))
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    Ok(Discovered {
        versions,
        name: text("name"),
        server_version: text("version"),
        rc_shape,
        caching: caching(result).err(),
    })
}

/// `ttlMs` and `cacheScope` (2026-07-28 caching).
fn caching(result: &Value) -> Result<(), Fault> {
    match result.get("ttlMs") {
        None => return Err(("ttlMs".into(), Problem::Missing)),
        Some(ttl) if ttl.as_u64().is_some() => {}
        Some(ttl) if ttl.is_number() => return Err(("ttlMs".into(), Problem::Malformed)),
        Some(_) => return Err(("ttlMs".into(), Problem::Type)),
    }
    match string(result, "cacheScope", "cacheScope")? {
        "public" | "private" => Ok(()),
        _ => Err(("cacheScope".into(), Problem::Malformed)),
    }
}

fn server_info(result: &Value) -> (Option<&Value>, bool) {
    match result
        .get("_meta")
        .and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"))
    {
        Some(info) => (Some(info), false),
        None => (result.get("serverInfo"), result.get("serverInfo").is_some()),
    }
}

/// Whether a list of versions names a revision of the modern era.
#[must_use]
pub fn names_modern(versions: &[String]) -> bool {
    versions.iter().any(|version| is_modern(version))
}

/// Whether it names such revisions and no other.
#[must_use]
pub fn names_only_modern(versions: &[String]) -> bool {
    !versions.is_empty() && versions.iter().all(|version| is_modern(version))
}

/// Whether a version is a revision without `initialize`.
#[must_use]
pub fn is_modern(version: &str) -> bool {
    is_date(version) && version >= MODERN_VERSION
}

/// The revisions that an `UnsupportedProtocolVersion` error lists in `data.supported`.
#[must_use]
pub fn supported(data: &Value) -> Vec<String> {
    let listed = data.get("supported").and_then(Value::as_array);
    listed
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn capabilities(result: &Value) -> Result<bool, Fault> {
    let declared = object(result, "capabilities", "capabilities")?;
    let mut null_optional = false;
    for name in CAPABILITIES {
        match declared.get(name) {
            None | Some(Value::Object(_)) => {}
            Some(Value::Null) => null_optional = true,
            Some(_) => return Err((format!("capabilities.{name}"), Problem::Type)),
        }
    }
    Ok(null_optional)
}

fn string<'a>(holder: &'a Value, member: &str, path: &str) -> Result<&'a str, Fault> {
    match holder.get(member) {
        None => Err((path.to_owned(), Problem::Missing)),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err((path.to_owned(), Problem::Type)),
    }
}

fn object<'a>(holder: &'a Value, member: &str, path: &str) -> Result<&'a Value, Fault> {
    match holder.get(member) {
        None => Err((path.to_owned(), Problem::Missing)),
        Some(value @ Value::Object(_)) => Ok(value),
        Some(_) => Err((path.to_owned(), Problem::Type)),
    }
}

/// Whether a version has the form of every revision: `YYYY-MM-DD`.
#[must_use]
pub fn is_date(version: &str) -> bool {
    version.parse::<jiff::civil::Date>().is_ok() && version.len() == 10
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn a_message_endpoint_stays_on_its_origin() {
        let stream = url("https://a.example:8443/x/sse?k=1");
        for (data, want) in [
            (
                "/messages?session_id=abc",
                Ok("https://a.example:8443/messages?session_id=abc"),
            ),
            ("messages", Ok("https://a.example:8443/x/messages")),
            (
                " https://a.example:8443/m \r",
                Ok("https://a.example:8443/m"),
            ),
            (
                "?sessionId=1",
                Ok("https://a.example:8443/x/sse?sessionId=1"),
            ),
            (
                "http://0.0.0.0:3001/messages",
                Err(Violation::EndpointOriginMismatch),
            ),
            ("//evil.example/m", Err(Violation::EndpointOriginMismatch)),
            ("\"/messages\"", Err(Violation::EndpointInvalid)),
            ("", Err(Violation::EndpointInvalid)),
        ] {
            assert_eq!(message_endpoint(&stream, data), want.map(url), "{data}");
        }
    }

    #[test]
    fn an_initialize_result_is_checked_member_by_member() {
        let good = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "a", "version": "1"}});
        assert!(initialized(&good).is_ok());
        for (pointer, value, want) in [
            ("protocolVersion", json!(20_250_618), "protocolVersion_type"),
            ("protocolVersion", json!("%v%"), "protocolVersion_malformed"),
            ("protocolVersion", json!(null), "protocolVersion_type"),
            ("capabilities", json!(null), "capabilities_type"),
            (
                "capabilities",
                json!({"tools": []}),
                "capabilities.tools_type",
            ),
            ("serverInfo", json!("a"), "serverInfo_type"),
            (
                "serverInfo",
                json!({"name": "a"}),
                "serverInfo.version_missing",
            ),
            (
                "serverInfo",
                json!({"name": "a", "version": 1.2}),
                "serverInfo.version_type",
            ),
            ("instructions", json!(7), "instructions_type"),
        ] {
            let mut result = good.clone();
            result[pointer] = value;
            let (path, problem) = initialized(&result).unwrap_err();
            assert_eq!(format!("{path}_{problem}"), want);
        }
        let mut empty_strings = good;
        empty_strings["serverInfo"] = json!({"name": "", "version": "", "title": null});
        assert!(initialized(&empty_strings).unwrap().null_optional);
    }

    #[test]
    fn a_discover_result_is_checked_member_by_member() {
        let good = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "public",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "a", "version": "1"}}});
        let read = discovered(&good).unwrap();
        assert!(
            names_modern(&read.versions) && read.name.as_deref() == Some("a") && !read.rc_shape
        );
        for (member, value, want) in [
            (
                "resultType",
                json!("input_required"),
                "resultType_malformed",
            ),
            (
                "supportedVersions",
                json!("2026-07-28"),
                "supportedVersions_type",
            ),
            ("capabilities", json!([]), "capabilities_type"),
            ("ttlMs", json!(-1), "ttlMs_malformed"),
            ("ttlMs", json!("1"), "ttlMs_type"),
            ("cacheScope", json!("shared"), "cacheScope_malformed"),
        ] {
            let mut result = good.clone();
            result[member] = value;
            let (path, problem) =
                discovered(&result).map_or_else(|fault| fault, |found| found.caching.unwrap());
            assert_eq!(format!("{path}_{problem}"), want);
        }
    }

    #[test]
    fn every_request_names_who_asks() {
        let identity = Identity {
            contact: Some("https://census.example/about".into()),
        };
        for request in [
            identity.initialize(&url("https://a.example/mcp"), ASKED_VERSION),
            identity.discover(&url("https://a.example/mcp"), MODERN_VERSION),
            identity.open_stream(&url("https://a.example/sse"), None),
            identity.close(&url("https://a.example/mcp"), "s", None),
        ] {
            assert!(
                request
                    .headers
                    .iter()
                    .any(|(name, value)| name == "User-Agent"
                        && value.contains("https://census.example/about"))
            );
        }
        let body: Value = serde_json::from_str(
            &identity
                .initialize(&url("https://a.example/mcp"), ASKED_VERSION)
                .body,
        )
        .unwrap();
        assert_eq!(
            body["params"]["clientInfo"]["websiteUrl"],
            "https://census.example/about"
        );
        assert_eq!(body["params"]["capabilities"], json!({}));
    }
}
