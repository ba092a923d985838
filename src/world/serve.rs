//! One connection of a scripted server: read a request, play the response that the script has for it,
//! end the connection as it says. Which response that is, is `case`'s to say.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;

use super::case::{Body, Close, Coding, Content, Door, Hop, Http, Raw, Response};
use super::request::Request;
use super::site::{Asked, Log, Site};
use super::tls::{self, Opening};
use super::tokens::{self, Tokens};

/// No connection lives longer, whatever the script says: longer than any asker waits.
const LONGEST: Duration = Duration::from_mins(2);

/// A listening address: how connections to it begin, and who answers there.
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) opening: Opening,
    pub(super) door: Door,
    pub(super) sites: Sites,
    pub(super) log: Arc<Log>,
}

/// Who answers at an address.
#[derive(Debug)]
pub(super) enum Sites {
    /// One server, whatever the request says.
    One(Arc<Site>),
    /// The one of that host name.
    ByHost(BTreeMap<String, Arc<Site>>),
}

/// A stream of either kind, with the socket that it runs over.
pub(super) trait Wire: AsyncRead + AsyncWrite + Unpin + Send {
    fn socket(&self) -> &TcpStream;
}

impl Wire for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Wire for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Accepts connections for ever, each in a task of its own; all of them end with this future.
pub(super) async fn accept<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    open.spawn(serve(stream));
                }
                // Out of descriptors, mostly: a moment's rest lets some come free.
                Err(_) => sleep(Duration::from_millis(20)).await,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

/// Serves one connection to its end.
pub(super) async fn admit(stream: TcpStream, entrance: Arc<Entrance>) {
    // Only speed is lost without it.
    let _ = stream.set_nodelay(true);
    let visit = async {
        match &entrance.opening {
            Opening::Plain => converse(stream, &entrance).await,
            Opening::Handshake(config) => {
                if let Some(stream) = tls::handshake(stream, Arc::clone(config)).await {
                    converse(stream, &entrance).await;
                }
            }
            Opening::Rude(rudeness) => tls::rebuff(stream, *rudeness).await,
            Opening::Alert(version, number) => tls::alarm(stream, *version, *number).await,
            Opening::Http2(config, frame) => tls::http2(stream, Arc::clone(config), frame).await,
        }
    };
    // What is cut off here has had its time.
    let _ = timeout(LONGEST, visit).await;
}

/// One request and its response; there is never a second on a connection.
async fn converse(mut stream: impl Wire, entrance: &Entrance) {
    let Ok(request) = Request::read(&mut BufReader::new(&mut stream)).await else {
        return;
    };
    let site = match &entrance.sites {
        Sites::One(site) => site,
        Sites::ByHost(sites) => match sites.get(&request.host()) {
            Some(site) => site,
            None => return,
        },
    };
    entrance.log.saw(&site.name, &request);
    let (response, Hop(hop)) = site.script.answer(&request, entrance.door, site.speaks);
    let performance = Performance {
        site,
        log: &entrance.log,
        asked: site.hear(&request),
        request: &request,
        posts_before: site.posts.borrow().clone(),
        session: entrance.log.new_session(),
        hop,
    };
    let played = match &*response {
        Response::Http(http) => performance.http(http, &mut stream).await,
        Response::Raw(raw) => performance.raw(raw, &mut stream).await,
        // Neither answers a request; a script in a `then` may say so all the same.
        Response::Transport(_) | Response::Listed(_) => Ok(Close::Clean),
    };
    if request.method == "POST" {
        site.answered_post(request.path());
    }
    match played {
        Ok(Close::Clean | Close::Premature) => drain(stream).await,
        Ok(Close::Reset) => reset(stream.socket()),
        Ok(Close::KeepOpen) => until_left(&mut stream).await,
        // The client has left.
        Err(_) => {}
    }
}

/// A response on its way out.
struct Performance<'a> {
    site: &'a Site,
    log: &'a Log,
    request: &'a Request,
    /// What the request itself asks; without an id, the tokens follow what the site was last asked.
    asked: Option<Arc<Asked>>,
    posts_before: BTreeMap<String, u64>,
    session: String,
    hop: Option<u64>,
}

impl Performance<'_> {
    fn with_tokens<T>(&self, fill: impl FnOnce(Tokens<'_>) -> T) -> T {
        let asked = self.asked.clone().unwrap_or_else(|| self.site.last());
        fill(Tokens {
            id: &asked.id,
            version: &asked.version,
            request_body: &asked.body,
            base: &self.site.base,
            other_base: &self.site.other_base,
            hostname: &self.site.hostname,
            session: &self.session,
            hop: self.hop,
        })
    }

    async fn raw(&self, raw: &Raw, to: &mut impl Wire) -> io::Result<Close> {
        pause(raw.delay).await;
        if raw.subst {
            let filled = self.with_tokens(|tokens| tokens.fill(&raw.bytes));
            to.write_all(&tokens::fill_length(&filled)).await?;
        } else {
            to.write_all(&raw.bytes).await?;
        }
        to.flush().await?;
        Ok(raw.close)
    }

    async fn http(&self, http: &Http, to: &mut impl Wire) -> io::Result<Close> {
        pause(http.delay).await;
        let body = match &http.body {
            Body::Text { prefix, text } => {
                let text = self.with_tokens(|tokens| tokens.fill(&text.0));
                Some([prefix.as_slice(), &text].concat())
            }
            Body::Bytes(bytes) => Some(bytes.clone()),
            Body::Chunks(_) => None,
        };
        let body = match (body, http.encode) {
            // A large body takes a while to code, and others are served by this thread too.
            (Some(plain), Some(coding)) => {
                Some(tokio::task::spawn_blocking(move || encode(coding, &plain)).await??)
            }
            (body, _) => body,
        };
        let chunked = body.is_none()
            || http.dribble.is_some()
            || http.unterminated
            || http.close == Close::KeepOpen;
        let headers = self.headers(http, body.as_ref().map(Vec::len), chunked);
        self.note_session(http.status, &headers);
        to.write_all(&head(http, &headers)).await?;
        to.flush().await?;

        let mut to = Pieces { to, chunked };
        match (&http.body, body) {
            (Body::Chunks(chunks), _) => {
                for chunk in chunks {
                    if let Some(path) = &chunk.after_request
                        && !self.site.posted(path, &self.posts_before).await
                    {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    loop {
                        pause(chunk.delay).await;
                        match &chunk.content {
                            Content::Text(text) => {
                                let text = self.with_tokens(|tokens| tokens.fill(&text.0));
                                to.send(&text).await?;
                            }
                            Content::Bytes(bytes) => to.send(bytes).await?,
                        }
                        // For ever is until the client leaves; `admit` bounds it.
                        if !chunk.forever {
                            break;
                        }
                    }
                }
            }
            (_, Some(body)) => match http.dribble {
                Some(dribble) => {
                    for piece in body.chunks(dribble.bytes.max(1)) {
                        pause(Duration::from_millis(dribble.delay_ms)).await;
                        to.send(piece).await?;
                    }
                }
                None => to.send(&body).await?,
            },
            (_, None) => {}
        }
        if chunked && http.close == Close::Clean && !http.unterminated {
            to.end().await?;
        }
        Ok(http.close)
    }

    /// The headers as they are sent: the script's, filled, and what frames the body.
    fn headers(&self, http: &Http, length: Option<usize>, chunked: bool) -> Vec<(String, String)> {
        let mut headers: Vec<(String, String)> = http
            .headers
            .iter()
            .map(|(name, value)| {
                let value = self.with_tokens(|tokens| tokens.fill_str(value));
                (name.clone(), value)
            })
            .collect();
        let given = |wanted: &str| {
            let mut names = http.headers.iter().map(|(name, _)| name);
            names.any(|name| name.eq_ignore_ascii_case(wanted))
        };
        let mut add = |name: &str, value: String| headers.push((name.to_owned(), value));
        for number in 0..http.header_flood_bytes / 1000 {
            add(&format!("X-Flood-{number}"), "f".repeat(1000));
        }
        if let Some(label) = http.encode.and_then(Coding::label)
            && !http.omit_encoding_header
        {
            add("Content-Encoding", label.to_owned());
        }
        if chunked {
            if !given("transfer-encoding") {
                add("Transfer-Encoding", "chunked".to_owned());
            }
        } else if !given("content-length") && !matches!(http.status, 204 | 304) {
            let length = i64::try_from(length.unwrap_or_default()).unwrap_or(i64::MAX);
            let said = http
                .length_override
                .unwrap_or(length.saturating_add(http.length_delta));
            add("Content-Length", said.to_string());
        }
        add("Connection", "close".to_owned());
        headers
    }

    /// Keeps count of the sessions that are given and taken.
    fn note_session(&self, status: u16, headers: &[(String, String)]) {
        const NAME: &str = "Mcp-Session-Id";
        if !(200..300).contains(&status) {
            return;
        }
        match self.request.method.as_str() {
            "POST" => {
                let mut given = headers
                    .iter()
                    .filter(|(name, value)| name.eq_ignore_ascii_case(NAME) && !value.is_empty());
                if let Some((_, session)) = given.next() {
                    self.log.opened(&self.site.name, session);
                }
            }
            "DELETE" => {
                if let Some(session) = self.request.header(NAME) {
                    self.log.closed(&self.site.name, session);
                }
            }
            _ => {}
        }
    }
}

/// A body going out, as chunks of the chunked transfer coding or as it is.
struct Pieces<'a, S> {
    to: &'a mut S,
    chunked: bool,
}

impl<S: AsyncWrite + Unpin> Pieces<'_, S> {
    async fn send(&mut self, piece: &[u8]) -> io::Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.chunked {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            self.to.write_all(&chunk).await?;
        } else {
            self.to.write_all(piece).await?;
        }
        self.to.flush().await
    }

    async fn end(&mut self) -> io::Result<()> {
        self.to.write_all(b"0\r\n\r\n").await?;
        self.to.flush().await
    }
}

/// The status line and the headers, in Latin-1; what that has no byte for is a question mark.
fn head(http: &Http, headers: &[(String, String)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", http.status, http.reason);
    for (name, value) in headers {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    head.chars()
        .map(|it| u8::try_from(it).unwrap_or(b'?'))
        .collect()
}

fn encode(coding: Coding, plain: &[u8]) -> io::Result<Vec<u8>> {
    const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    match coding {
        Coding::Gzip => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            gzip.write_all(plain)?;
            gzip.finish()
        }
        Coding::GzipSyncFlush => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            gzip.write_all(plain)?;
            gzip.flush()?;
            Ok(gzip.get_ref().clone())
        }
        Coding::Br => {
            let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            brotli.write_all(plain)?;
            Ok(brotli.into_inner())
        }
        Coding::Zstd => Ok([&ZSTD_MAGIC, plain].concat()),
        Coding::Utf16LeBom => {
            let units = String::from_utf8_lossy(plain);
            let units = std::iter::once(0xfeff).chain(units.encode_utf16());
            Ok(units.flat_map(u16::to_le_bytes).collect())
        }
    }
}

async fn pause(duration: Duration) {
    if !duration.is_zero() {
        sleep(duration).await;
    }
}

/// Says that no more will come, and waits a moment for the client to have read it all:
/// closing over unread bytes would reset the connection.
pub(super) async fn drain(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    if stream.shutdown().await.is_ok() {
        let _ = timeout(Duration::from_secs(1), until_left(&mut stream)).await;
    }
}

/// Makes the close of a connection a reset.
pub(super) fn reset(socket: &TcpStream) {
    // Without it the close is an orderly one, which the case then shows.
    let _ = socket.set_zero_linger();
}

/// Reads until the client has left.
pub(super) async fn until_left(stream: &mut (impl AsyncRead + Unpin)) {
    let mut heard = [0; 4096];
    while matches!(stream.read(&mut heard).await, Ok(1..)) {}
}
