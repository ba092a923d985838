//! Servers of another make, asked over loopback: rmcp, which shares no code with this crate, must be read as
//! what it is and be left with no session. What its authors serve is the expectation, and not our own world.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set itself up has failed"
)]

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next as Inner, from_fn};
use axum::response::Response;
use mcp_census::catalogue::{self, Own, Status};
use mcp_census::classify::Reading;
use mcp_census::exchange::{Exchange, Leg};
use mcp_census::finding::{Check, Finding};
use mcp_census::inquiry::{self, Ask, Next, Opening, Profile, Terms};
use mcp_census::mcp::{ASKED_VERSION, Identity, MODERN_VERSION};
use mcp_census::outcome::{Era, Outcome, Session, Transport, Verdict};
use mcp_census::probe::{Limits, Prober, Reach};
use mcp_census::target::{AddressPolicy, Target};
use rmcp::ServerHandler;
use rmcp::model::{Implementation, ServerCapabilities, ServerConfig};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;

/// More legs than any inquiry has; a test that reaches it asks in circles.
const LEGS: usize = 60;

/// The server's own name and version, to be found again in what was read.
const SERVER: (&str, &str) = ("oracle", "1.2.3");

#[derive(Debug, Clone)]
struct Oracle;

impl ServerHandler for Oracle {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new(SERVER.0, SERVER.1))
    }
}

/// How rmcp is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it comes: a session for every `initialize`, answers as event streams.
    Stateful,
    /// No sessions, answers as JSON.
    Stateless,
    /// As `Stateful`, behind a gate that gives a session with every refusal, as Python servers do.
    Generous,
    /// As `Stateful`, behind a gate that refuses `initialize` as a server of 2026-07-28 alone does.
    ModernOnly,
}

/// A server under test; it ends with the test's runtime.
struct Server {
    url: Url,
    sessions: Arc<LocalSessionManager>,
}

impl Server {
    async fn start(form: Form) -> Self {
        let sessions = Arc::new(LocalSessionManager::default());
        let config = match form {
            Form::Stateful | Form::Generous | Form::ModernOnly => {
                StreamableHttpServerConfig::default()
            }
            Form::Stateless => StreamableHttpServerConfig::default()
                .with_legacy_session_mode(false)
                .with_json_response(true),
        };
        let service = StreamableHttpService::new(|| Ok(Oracle), Arc::clone(&sessions), config);
        let router = Router::new().route_service("/mcp", service);
        let router = match form {
            Form::Stateful | Form::Stateless => router,
            Form::Generous => router.layer(from_fn(give_a_session)),
            Form::ModernOnly => router.layer(from_fn(refuse_initialize)),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let url = format!("http://{address}/mcp").parse().unwrap();
        Self { url, sessions }
    }

    async fn open_sessions(&self) -> usize {
        self.sessions.sessions.read().await.len()
    }
}

/// A session id on every answer that has none and was asked without one.
async fn give_a_session(request: Request, inner: Inner) -> Response {
    const SESSION: &str = "mcp-session-id";
    let asked_in = request.headers().contains_key(SESSION);
    let mut response = inner.run(request).await;
    if !asked_in && !response.headers().contains_key(SESSION) {
        let id = HeaderValue::from_static("given-with-a-refusal");
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// What a server that speaks 2026-07-28 only says to `initialize` (versioning, "Compatibility Matrix").
async fn refuse_initialize(request: Request, inner: Inner) -> Response {
    if request.method() != Method::POST {
        return inner.run(request).await;
    }
    let (head, body) = request.into_parts();
    let body = to_bytes(body, 1 << 16).await.unwrap();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    // One that describes itself is a request of 2026-07-28, for a method that is not there.
    if asked["method"] != "initialize" || asked["params"]["_meta"].is_object() {
        return inner.run(Request::from_parts(head, Body::from(body))).await;
    }
    let data =
        json!({ "supported": [MODERN_VERSION], "requested": asked["params"]["protocolVersion"] });
    let error = json!({ "code": -32022, "message": "Unsupported protocol version", "data": data });
    let refusal = json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error });
    Response::builder()
        .status(StatusCode::BAD_REQUEST)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(refusal.to_string()))
        .unwrap()
}

/// An inquiry at a server, driven as a scan drives it, without the lanes.
struct Inquiry {
    target: Target,
    terms: Terms,
    prober: Prober,
    exchanges: Vec<Exchange>,
}

impl Inquiry {
    fn at(url: Url, declared: Option<Transport>) -> Self {
        let identity = Identity {
            contact: Some("https://census.example/about".into()),
        };
        let reach = Reach {
            limits: Limits {
                connect: Duration::from_secs(2),
                total: Duration::from_secs(5),
            },
            policy: Arc::new(AddressPolicy::opening(vec!["127.0.0.0/8".parse().unwrap()])),
            // No name is resolved here; naming a server keeps the test from reading this machine's settings.
            dns_server: Some("127.0.0.1:1".parse().unwrap()),
            ..Reach::default()
        };
        Self {
            target: Target {
                endpoint: 0,
                url,
                declared,
            },
            terms: Terms {
                identity: identity.clone(),
                version: ASKED_VERSION.into(),
                confirm: 1,
                opening: Opening::Initialize,
                profile: Profile::Census,
                budget: 0,
                own: None,
            },
            prober: Prober::new(reach, identity).unwrap(),
            exchanges: Vec::new(),
        }
    }

    async fn send(&mut self, ask: &Ask) {
        let to = Url::parse(&ask.request.url).ok();
        let way = self.prober.find(to).await;
        self.exchanges.extend(
            self.prober
                .send(0, ask, &way, None, || std::future::ready(()))
                .await,
        );
    }

    /// Asks the next thing. `false` where there is nothing more to ask.
    async fn step(&mut self) -> bool {
        match inquiry::next(&self.target, &self.exchanges, &self.terms) {
            Next::Ask(ask) | Next::Later(ask) => {
                self.send(&ask).await;
                true
            }
            Next::Done(_) => false,
        }
    }

    async fn finish(&mut self) -> Reading {
        for _ in 0..LEGS {
            if !self.step().await {
                let settled =
                    inquiry::settled(&self.target, &self.terms.version, &self.exchanges).unwrap();
                assert!(!settled.flaky);
                return settled.reading;
            }
        }
        panic!("the inquiry does not end: {:?}", self.legs());
    }

    fn legs(&self) -> Vec<Leg> {
        self.exchanges.iter().map(|it| it.leg).collect()
    }

    fn sessions_given(&self) -> usize {
        self.exchanges
            .iter()
            .filter(|it| it.session().is_some())
            .count()
    }
}

/// What is to be read of a server that works.
struct Works<'a> {
    detail: &'a str,
    era: Era,
    session: Option<Session>,
    legs: &'a [Leg],
    findings: &'a [Finding],
}

#[track_caller]
fn check(inquiry: &Inquiry, reading: &Reading, want: &Works<'_>) {
    assert_eq!(inquiry.legs(), want.legs);
    assert_eq!(reading.detail.outcome(), Outcome::Success);
    assert_eq!(reading.detail.to_string(), want.detail);
    assert_eq!(reading.verdict, Verdict::Working);
    assert_eq!(reading.era, want.era);
    assert_eq!(reading.transport, Some(Transport::StreamableHttp));
    assert_eq!(reading.protocol_version.as_deref(), Some(ASKED_VERSION));
    assert_eq!(reading.server, Some((SERVER.0.into(), SERVER.1.into())));
    assert_eq!(reading.session, want.session);
    assert_eq!(reading.findings, want.findings);
}

#[tokio::test]
async fn a_stateful_server_works_over_a_stream_and_keeps_no_session() {
    let server = Server::start(Form::Stateful).await;
    let mut inquiry = Inquiry::at(server.url.clone(), None);
    assert!(inquiry.step().await);
    assert_eq!(
        (inquiry.sessions_given(), server.open_sessions().await),
        (1, 1)
    );
    let reading = inquiry.finish().await;
    let want = Works {
        detail: "sse",
        era: Era::Legacy,
        session: Some(Session::Closed),
        legs: &[Leg::Initialize, Leg::Close],
        findings: &[],
    };
    check(&inquiry, &reading, &want);
    assert_eq!(server.open_sessions().await, 0);
}

#[tokio::test]
async fn a_stateless_server_works_in_one_request_and_gives_no_session() {
    let server = Server::start(Form::Stateless).await;
    let mut inquiry = Inquiry::at(server.url.clone(), Some(Transport::StreamableHttp));
    let reading = inquiry.finish().await;
    let want = Works {
        detail: "json",
        era: Era::Legacy,
        session: None,
        legs: &[Leg::Initialize],
        findings: &[],
    };
    check(&inquiry, &reading, &want);
    assert_eq!(
        (inquiry.sessions_given(), server.open_sessions().await),
        (0, 0)
    );
}

#[tokio::test]
async fn a_server_of_both_eras_that_is_asked_both_ways_reads_as_dual() {
    for (form, detail, session) in [
        (Form::Stateful, "sse", Some(Session::Closed)),
        (Form::Stateless, "json", None),
    ] {
        let server = Server::start(form).await;
        let mut inquiry = Inquiry::at(server.url.clone(), None);
        assert!(inquiry.step().await);
        let discover = Ask {
            attempt: 0,
            leg: Leg::Discover,
            request: inquiry.terms.identity.discover(&server.url, MODERN_VERSION),
            wait_ms: 0,
            half_time: false,
            version: ASKED_VERSION.into(),
        };
        inquiry.send(&discover).await;
        let reading = inquiry.finish().await;
        let legs = [Leg::Initialize, Leg::Discover, Leg::Close];
        let want = Works {
            detail,
            era: Era::Dual,
            session,
            legs: &legs[..2 + usize::from(session.is_some())],
            findings: &[Check::DiscoverOk.into()],
        };
        check(&inquiry, &reading, &want);
        assert_eq!(server.open_sessions().await, 0);
    }
}

#[tokio::test]
async fn a_server_of_the_modern_era_alone_works_although_it_refuses_initialize() {
    let server = Server::start(Form::ModernOnly).await;
    let mut inquiry = Inquiry::at(server.url.clone(), None);
    let reading = inquiry.finish().await;
    assert_eq!(inquiry.legs(), [Leg::Initialize, Leg::Discover]);
    assert_eq!(reading.detail.outcome(), Outcome::JsonrpcError);
    assert_eq!(reading.detail.to_string(), "-32022");
    assert_eq!(reading.http_status, Some(400));
    assert_eq!(reading.verdict, Verdict::Working);
    assert_eq!(reading.era, Era::Modern);
    assert_eq!(reading.transport, Some(Transport::StreamableHttp));
    assert_eq!(reading.protocol_version.as_deref(), Some(MODERN_VERSION));
    assert_eq!(reading.server, Some((SERVER.0.into(), SERVER.1.into())));
    let want: [Finding; 2] = [Check::ModernOnlyServer.into(), Check::DiscoverOk.into()];
    assert_eq!(reading.findings, want);
    assert_eq!(reading.session, None);
    assert_eq!(server.open_sessions().await, 0);
}

#[tokio::test]
async fn a_server_of_another_make_is_held_against_every_check() {
    // What rmcp does to a foreign Origin and to what is no JSON; the positions of the two checks say why it counts.
    let odd = [
        "warn neg.bad-cursor: a result under HTTP 200",
        "fail neg.parse-error: HTTP 415 without a response",
        "fail neg.origin-403: a result under HTTP 200",
    ];
    for (form, polite) in [
        (Form::Stateful, None),
        (Form::Stateless, None),
        // It has the earlier revisions' stream, whatever the gate before it says to `initialize`.
        (Form::ModernOnly, Some("warn get.405-modern: HTTP 400")),
    ] {
        let want: Vec<&str> = polite.into_iter().chain(odd).collect();
        let server = Server::start(form).await;
        let mut inquiry = Inquiry::at(server.url.clone(), None);
        inquiry.terms.profile = Profile::Compliance;
        inquiry.terms.budget = LEGS;
        inquiry.terms.own = Some(Own {
            nets: vec!["127.0.0.0/8".parse().unwrap()],
            hosts: Vec::new(),
        });
        inquiry.finish().await;
        let speaking = catalogue::speaking(&inquiry.target, ASKED_VERSION, &inquiry.exchanges);
        let checked = catalogue::evaluate(&inquiry.target, speaking.unwrap());
        let broken: Vec<String> = checked
            .iter()
            .filter(|it| matches!(it.status, Status::Fail | Status::Warn))
            .map(|it| format!("{} {}: {}", it.status, it.check, it.detail))
            .collect();
        assert_eq!(broken, want, "{form:?}");
        assert!(inquiry.legs().contains(&Leg::Intrusive));
        assert_eq!(server.open_sessions().await, 0, "{form:?}");
    }
}

#[tokio::test]
async fn a_server_listed_under_the_wrong_transport_works_all_the_same() {
    let server = Server::start(Form::Stateful).await;
    let mut inquiry = Inquiry::at(server.url.clone(), Some(Transport::HttpSse));
    let reading = inquiry.finish().await;
    let want = Works {
        detail: "sse",
        era: Era::Legacy,
        session: Some(Session::Closed),
        legs: &[Leg::SseStream, Leg::Initialize, Leg::Close],
        findings: &[Check::TransportMismatch.of("declared_sse")],
    };
    check(&inquiry, &reading, &want);
    assert_eq!(server.open_sessions().await, 0);
}

#[tokio::test]
async fn every_session_is_closed_that_was_given_even_with_a_refusal() {
    let server = Server::start(Form::Generous).await;
    let mut inquiry = Inquiry::at(server.url.clone(), Some(Transport::HttpSse));
    let reading = inquiry.finish().await;
    let want = Works {
        detail: "sse",
        era: Era::Legacy,
        session: Some(Session::Closed),
        legs: &[Leg::SseStream, Leg::Initialize, Leg::Close, Leg::Close],
        findings: &[Check::TransportMismatch.of("declared_sse")],
    };
    check(&inquiry, &reading, &want);
    let told = |what: fn(&Exchange) -> Option<&str>| -> Vec<&str> {
        let legs = inquiry.exchanges.iter();
        legs.filter_map(what).collect()
    };
    assert_eq!(told(Exchange::closes), told(Exchange::session));
    assert_eq!(server.open_sessions().await, 0);
}

#[tokio::test]
async fn a_path_without_a_server_is_not_found() {
    let server = Server::start(Form::Stateful).await;
    let mut inquiry = Inquiry::at(server.url.join("/elsewhere").unwrap(), None);
    let reading = inquiry.finish().await;
    assert_eq!(reading.detail.outcome(), Outcome::NotFound);
    assert_eq!(reading.verdict, Verdict::NotMcp);
    // Asked a second time before it counts: the POST, and the GET of the older transport.
    assert_eq!(
        inquiry.legs(),
        [
            Leg::Initialize,
            Leg::SseStream,
            Leg::Initialize,
            Leg::SseStream
        ]
    );
    assert_eq!(server.open_sessions().await, 0);
}
