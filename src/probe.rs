//! A request -> an exchange: the only place that opens a connection to a target. It concludes nothing and
//! fails never: whatever happens on the way is part of the exchange.

mod client;
mod phases;
mod reading;

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use jiff::Timestamp;
use reqwest::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response};
use tokio::time::{Instant, timeout_at};
use url::{Host, Url};

use client::Written;
use phases::{PHASES, Phases, micros};
use reading::{Reading, head};

use crate::body::EVENT_STREAM;
use crate::classify;
use crate::exchange::{
    Answer, BodyEnd, ConnectFault, Connection, Drop, Exchange, Fault, Leg, LocalFault, Reply,
    Request, Stage, TlsFault,
};
use crate::fault::{self, Reached};
use crate::inquiry::Ask;
use crate::mcp::{self, Identity};
use crate::resolve::{self, QUESTIONS, Resolver};
use crate::sse::Parser;
use crate::target::AddressPolicy;
use crate::trust;

/// Headers read of one answer at most; hyper bounds their bytes at some 400 KiB. Who sends more than its usual 100 is
/// asked again with room for these: to hold it for everyone costs every probe a fortieth of its time.
const MOST_HEADERS: usize = 1024;

/// How long a stream is given to close by itself once our answer has come.
const LINGER: Duration = Duration::from_millis(250);

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Name resolution, TCP connection and TLS handshake together.
    pub connect: Duration,
    /// The whole exchange, from the first packet to the last byte.
    pub total: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            total: Duration::from_secs(15),
        }
    }
}

/// How to reach targets.
#[derive(Debug, Clone)]
pub struct Reach {
    /// How long to wait.
    pub limits: Limits,
    /// Which addresses may be connected to.
    pub policy: Arc<AddressPolicy>,
    /// The name server to ask; the system's where there is none.
    pub dns_server: Option<SocketAddr>,
    /// Certificates to trust beside the public roots, PEM.
    pub extra_roots: Vec<String>,
    /// Names looked up at once.
    pub questions: usize,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            policy: Arc::default(),
            dns_server: None,
            extra_roots: Vec::new(),
            questions: QUESTIONS,
        }
    }
}

/// Sends requests. One for a whole run; cheap to clone.
#[derive(Debug, Clone)]
pub struct Prober {
    client: Client,
    /// For those who send more headers than usual.
    roomy: Client,
    resolver: Resolver,
    limits: Limits,
    policy: Arc<AddressPolicy>,
    identity: Identity,
}

/// The way to a host: its addresses, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    /// Where it leads. None where the address of a request is none, which is a defect of ours.
    pub to: Option<Url>,
    /// Checked against the address policy; the only ones that will be connected to.
    pub addresses: Result<Vec<IpAddr>, Fault>,
    /// How long the name took; none for an address.
    pub took: Option<Duration>,
}

impl Way {
    /// The address that is tried first.
    #[must_use]
    pub fn first(&self) -> Option<IpAddr> {
        self.addresses.as_ref().ok()?.first().copied()
    }
}

/// Told when a request has left for its server.
pub type OnLeaving = Arc<dyn Fn() + Send + Sync>;

impl Prober {
    /// A prober that reaches targets in this way, in this name.
    ///
    /// # Errors
    /// When a certificate or the resolver's configuration cannot be read.
    pub fn new(reach: Reach, identity: Identity) -> anyhow::Result<Self> {
        let Reach {
            limits,
            policy,
            dns_server,
            extra_roots,
            questions,
        } = reach;
        let tls = trust::client_config(&extra_roots)?;
        let resolver = Resolver::new(dns_server, limits.connect, questions, Arc::clone(&policy))?;
        let builder = || client::builder(tls.clone(), limits);
        let client = builder().build();
        let roomy = builder().http1_max_headers(MOST_HEADERS).build();
        Ok(Self {
            client: client.context("cannot set up the HTTP client")?,
            roomy: roomy.context("cannot set up the HTTP client")?,
            resolver,
            limits,
            policy,
            identity,
        })
    }

    /// Finds the way to the host of a URL; there is none to nowhere.
    pub async fn find(&self, to: Option<Url>) -> Way {
        let (addresses, took) = match to.as_ref().and_then(Url::host) {
            _ if to
                .as_ref()
                .is_some_and(|url| self.policy.excluded().covers(url)) =>
            {
                (Err(Fault::Excluded), None)
            }
            Some(Host::Domain(name)) => {
                let began = Instant::now();
                let found = Box::pin(self.resolver.lookup(name)).await;
                (found.map(|it| it.addresses), Some(began.elapsed()))
            }
            Some(Host::Ipv4(address)) => (self.literal(address.into()), None),
            Some(Host::Ipv6(address)) => (self.literal(address.into()), None),
            None => (Err(Fault::Local(LocalFault::Instrument)), None),
        };
        Way {
            to,
            addresses,
            took,
        }
    }

    fn literal(&self, address: IpAddr) -> Result<Vec<IpAddr>, Fault> {
        if self.policy.allows(address) {
            Ok(vec![address])
        } else {
            Err(Fault::PrivateAddress(address))
        }
    }

    /// Sends what is asked, over the way that was found. One exchange comes of it, or two: an HTTP+SSE stream, and
    /// the message sent to its endpoint, which waits for `turn` first. `on_leaving` is told when the first has left.
    pub async fn send<T: Future<Output = ()>>(
        &self,
        endpoint: u32,
        ask: &Ask,
        way: &Way,
        on_leaving: Option<OnLeaving>,
        turn: impl Fn() -> T,
    ) -> Vec<Exchange> {
        let total = if ask.half_time {
            self.limits.total / 2
        } else {
            self.limits.total
        };
        let mut sending = Sending::new(
            self,
            endpoint,
            ask.attempt,
            ask.leg,
            &ask.request,
            total,
            way,
        );
        sending.on_leaving = on_leaving;
        let reply = match sending.open(way.to.as_ref(), &turn).await {
            Ok(response) if ask.leg == Leg::SseStream => {
                // Boxed, because it is rare and large.
                return Box::pin(sending.converse(response, &ask.version, turn)).await;
            }
            // A stream that is opened has told what it was opened for.
            Ok(response)
                if ask.leg == Leg::Listen && head(&response).media_type() == EVENT_STREAM =>
            {
                Reply::Answer(Answer {
                    end: BodyEnd::Left,
                    ..head(&response)
                })
            }
            Ok(response) => sending.read(response).await,
            Err(fault) => Reply::Fault(fault),
        };
        vec![sending.finish(reply)]
    }
}

/// One request under way.
struct Sending<'a> {
    prober: &'a Prober,
    way: &'a Way,
    endpoint: u32,
    attempt: u8,
    leg: Leg,
    request: &'a Request,
    started_at: Timestamp,
    deadline: Instant,
    phases: Arc<Phases>,
    first_byte: Option<u64>,
    connection: Connection,
    on_leaving: Option<OnLeaving>,
}

impl<'a> Sending<'a> {
    fn new(
        prober: &'a Prober,
        endpoint: u32,
        attempt: u8,
        leg: Leg,
        request: &'a Request,
        total: Duration,
        way: &'a Way,
    ) -> Self {
        let phases = Phases::new(way);
        Self {
            prober,
            way,
            endpoint,
            attempt,
            leg,
            request,
            started_at: Timestamp::now(),
            deadline: phases.start + total,
            phases: Arc::new(phases),
            first_byte: None,
            connection: Connection::default(),
            on_leaving: None,
        }
    }

    /// Sends the request and waits for the status line and headers. Where those are more than usual, it is sent once
    /// more in a turn of its own: what there was no room for is no verdict on anyone.
    async fn open<T: Future<Output = ()>>(
        &mut self,
        to: Option<&Url>,
        turn: impl Fn() -> T,
    ) -> Result<Response, Fault> {
        match self.open_by(&self.prober.client, to).await {
            Err(Fault::Dropped(Drop::HeadersOverLimit)) => {}
            opened => return opened,
        }
        // Boxed, because it is rare and large.
        Box::pin(async {
            turn().await;
            let total = self.deadline - self.phases.start;
            self.phases = Arc::new(Phases::new(self.way));
            self.started_at = Timestamp::now();
            self.deadline = self.phases.start + total;
            self.open_by(&self.prober.roomy, to).await
        })
        .await
    }

    async fn open_by(&mut self, client: &Client, to: Option<&Url>) -> Result<Response, Fault> {
        let url = to.ok_or(Fault::Local(LocalFault::Instrument))?.clone();
        self.way.addresses.as_ref().map_err(|fault| *fault)?;
        let request = self
            .built(url)
            .ok_or(Fault::Local(LocalFault::Instrument))?;
        let sent = PHASES.scope(Arc::clone(&self.phases), client.execute(request));
        let response = match timeout_at(self.deadline, sent).await {
            Err(_) => return Err(fault::deadline(self.phases.reached())),
            Ok(Err(error)) => return Err(self.lost(&error.without_url())),
            Ok(Ok(response)) => response,
        };
        self.first_byte = Some(micros(self.phases.start.elapsed()));
        let peer = response.remote_addr().map(|address| address.ip());
        self.connection = Connection {
            peer,
            shared: false,
            ipv6_unreachable: self.way.first().is_some_and(|it| it.is_ipv6())
                && peer.is_some_and(|peer| peer.is_ipv4()),
        };
        Ok(response)
    }

    /// The request as the client takes it. `None` where it is none, which is a defect of ours.
    fn built(&mut self, url: Url) -> Option<reqwest::Request> {
        // The client adds some of its own.
        let mut headers = HeaderMap::with_capacity(self.request.headers.len() + 4);
        for (name, value) in &self.request.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            headers.append(name, HeaderValue::from_str(value).ok()?);
        }
        // No connection is kept, and who keeps none says so (RFC 9112 §9.3). HTTP/2 has no such header.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        let method = Method::from_bytes(self.request.method.as_bytes()).ok()?;
        let mut request = reqwest::Request::new(method, url);
        *request.headers_mut() = headers;
        let text = Bytes::from(self.request.body.clone());
        *request.body_mut() = Some(reqwest::Body::wrap(Written {
            left: Some(text).filter(|it| !it.is_empty()),
            phases: Arc::clone(&self.phases),
            on_leaving: self.on_leaving.take(),
        }));
        Some(request)
    }

    /// No response came. A server that asked for a certificate and then broke off wanted that certificate:
    /// with TLS 1.3 the client has finished its handshake by then, and often only sees the end of the connection.
    fn lost(&self, error: &reqwest::Error) -> Fault {
        match fault::fault(error, self.phases.reached()) {
            Fault::Dropped(Drop::EmptyReply | Drop::BeforeResponse | Drop::H2GoAway)
            | Fault::Tls(TlsFault::Alert | TlsFault::Reset | TlsFault::Closed)
                if self.phases.certificate_asked.load(Ordering::Relaxed) =>
            {
                Fault::Tls(TlsFault::ClientCertRequired)
            }
            // A machine without IPv6 has no address to connect from, which is no want of ports.
            Fault::Local(LocalFault::Exhausted)
                if !self
                    .phases
                    .addresses
                    .iter()
                    .any(|it| resolve::has_route(*it)) =>
            {
                Fault::Connect(ConnectFault::NoRoute)
            }
            fault => fault,
        }
    }

    fn finish(self, reply: Reply) -> Exchange {
        Exchange {
            endpoint: self.endpoint,
            attempt: self.attempt,
            leg: self.leg,
            started_at: self.started_at,
            request: self.request.clone(),
            reply,
            timing: self.phases.timing(self.first_byte),
            connection: self.connection,
        }
    }

    /// Reads a body to its end, or to where nothing more can be learned from it.
    async fn read(&self, mut response: Response) -> Reply {
        let mut answer = head(&response);
        let mut reading = Reading::new(&answer);
        let mut events = (answer.media_type() == EVENT_STREAM).then(Parser::default);
        let end = loop {
            let chunk = match self.chunk(&mut response, self.deadline).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break BodyEnd::Complete,
                Err(fault) if events.is_some() && fault == Fault::Deadline(Stage::Body) => {
                    break BodyEnd::Broken(Fault::Deadline(Stage::SseNoResponse));
                }
                Err(fault) => break BodyEnd::Broken(fault),
            };
            let fresh = match reading.take(&chunk) {
                Ok(fresh) => fresh,
                Err(end) => break end,
            };
            if let Some(parser) = &mut events {
                if parser
                    .push(&fresh)
                    .iter()
                    .any(|event| classify::is_answer(&event.data))
                {
                    break self.linger(&mut response, &mut reading).await;
                }
            } else if reading.is_page() {
                break BodyEnd::Page;
            }
        };
        answer.body = reading.kept(end);
        answer.end = end;
        Reply::Answer(answer)
    }

    /// Our answer has come: does the server close the stream, as it should?
    async fn linger(&self, response: &mut Response, reading: &mut Reading) -> BodyEnd {
        let until = self.deadline.min(Instant::now() + LINGER);
        loop {
            match self.chunk(response, until).await {
                Ok(Some(chunk)) if reading.take(&chunk).is_ok() => {}
                Ok(None) => return BodyEnd::Complete,
                Ok(Some(_)) | Err(_) => return BodyEnd::Left,
            }
        }
    }

    async fn chunk(&self, response: &mut Response, until: Instant) -> Result<Option<Bytes>, Fault> {
        match timeout_at(until, response.chunk()).await {
            Err(_) => Err(Fault::Deadline(Stage::Body)),
            Ok(Err(error)) => Err(fault::fault(&error.without_url(), Reached::Body)),
            Ok(Ok(chunk)) => Ok(chunk),
        }
    }

    /// The HTTP+SSE transport: waits for the stream's `endpoint`, POSTs `initialize` there, and listens on.
    async fn converse<T: Future<Output = ()>>(
        mut self,
        mut response: Response,
        version: &str,
        turn: impl Fn() -> T,
    ) -> Vec<Exchange> {
        let mut answer = head(&response);
        if answer.status != 200 || answer.media_type() != EVENT_STREAM {
            let reply = self.read(response).await;
            return vec![self.finish(reply)];
        }
        let url = self.way.to.as_ref();
        let mut reading = Reading::new(&answer);
        let mut parser = Parser::default();
        let mut message: Option<Exchange> = None;
        let mut waiting_for = Stage::SseNoEndpoint;
        let end = 'stream: loop {
            let chunk = match self.chunk(&mut response, self.deadline).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break BodyEnd::Complete,
                Err(Fault::Deadline(_)) => break BodyEnd::Broken(Fault::Deadline(waiting_for)),
                Err(fault) => break BodyEnd::Broken(fault),
            };
            let fresh = match reading.take(&chunk) {
                Ok(fresh) => fresh,
                Err(end) => break end,
            };
            for event in parser.push(&fresh) {
                if event.name == "endpoint" && message.is_none() {
                    let endpoint = url.and_then(|url| mcp::message_endpoint(url, &event.data).ok());
                    let Some(endpoint) = endpoint else {
                        break 'stream BodyEnd::Left;
                    };
                    turn().await;
                    // The endpoint was found: from here on the whole deadline counts.
                    self.deadline = Instant::now() + self.prober.limits.total;
                    waiting_for = Stage::SseNoResponse;
                    let posted = self.post(&endpoint, version, &turn).await;
                    let is_final = !matches!(posted.answer(), Some(answer) if (200..300).contains(&answer.status) && !classify::has_envelope(answer));
                    message = Some(posted);
                    if is_final {
                        break 'stream BodyEnd::Left;
                    }
                } else if classify::is_answer(&event.data) {
                    break 'stream BodyEnd::Left;
                }
            }
        };
        answer.body = reading.kept(end);
        answer.end = end;
        let mut exchanges = vec![self.finish(Reply::Answer(answer))];
        exchanges.extend(message);
        exchanges
    }

    /// POSTs `initialize` to the endpoint that a stream named.
    async fn post<T: Future<Output = ()>>(
        &self,
        endpoint: &Url,
        version: &str,
        turn: impl Fn() -> T,
    ) -> Exchange {
        let mut request = self.prober.identity.initialize(endpoint, version);
        // What the stream was opened with beside our own headers goes with its messages.
        let further: Vec<(String, String)> = self
            .request
            .headers
            .iter()
            .filter(|(name, _)| !request.has_header(name))
            .cloned()
            .collect();
        request.headers.extend(further);
        let mut sending = Sending::new(
            self.prober,
            self.endpoint,
            self.attempt,
            Leg::SseMessage,
            &request,
            self.prober.limits.total,
            self.way,
        );
        let reply = match sending.open(Some(endpoint), turn).await {
            Ok(response) => sending.read(response).await,
            Err(fault) => Reply::Fault(fault),
        };
        sending.finish(reply)
    }
}
