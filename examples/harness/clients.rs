//! The bare loops that a whole scan is held against: sockets, sockets with TLS, and reqwest. Each asks every
//! address of a list once, `width` at a time, and checks that an MCP server answered; none keeps anything.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use futures_util::StreamExt as _;
use mcp_census::resolve::{QUESTIONS, Resolver};
use mcp_census::target::AddressPolicy;
use mcp_census::trust;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use crate::latency;
use crate::server::DOMAIN;

/// What each of them sends.
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bare","version":"1.0.0"}}}"#;

/// A bare loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// tokio sockets, one thread, over TLS with rustls where the list says https.
    Sockets,
    /// reqwest as it is first written: one client, connection pool off, tokio's default runtime, and all requests driven
    /// by one stream in `main`.
    Reqwest,
    /// reqwest with its runtime on one thread, a task for each request in flight.
    ReqwestOneThread,
}

/// What a loop does.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Client {
    /// Which
    #[arg(value_enum)]
    kind: Kind,
    /// Addresses, one a line
    #[arg(long)]
    list: PathBuf,
    /// In flight
    #[arg(long, default_value_t = 256)]
    width: usize,
    /// The root to trust
    #[arg(long)]
    ca: Option<PathBuf>,
    /// The name server to ask, by the scan's own resolver; without one, names are known
    #[arg(long)]
    dns: Option<SocketAddr>,
}

/// An address of the list, taken apart.
struct Place {
    url: String,
    secure: bool,
    host: String,
    port: u16,
    path: String,
}

/// Runs a loop, and gives how many answered as they should.
pub(crate) fn run(client: &Client) -> Result<usize> {
    let text = std::fs::read_to_string(&client.list)?;
    let places: Vec<Place> = text.lines().map(place).collect::<Result<_>>()?;
    let runtime = match client.kind {
        Kind::Sockets | Kind::ReqwestOneThread => tokio::runtime::Builder::new_current_thread(),
        Kind::Reqwest => tokio::runtime::Builder::new_multi_thread(),
    }
    .enable_all()
    .build()?;
    let roots = client
        .ca
        .as_ref()
        .map(std::fs::read_to_string)
        .transpose()?
        .into_iter()
        .collect::<Vec<_>>();
    let mut tls = trust::client_config(&roots)?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    runtime.block_on(async {
        let names = Names(
            client
                .dns
                .map(|server| {
                    let range = "127.0.0.0/8".parse().context("a range")?;
                    Resolver::new(
                        Some(server),
                        Duration::from_secs(4),
                        QUESTIONS,
                        Arc::new(AddressPolicy::opening(vec![range])),
                    )
                })
                .transpose()?,
        );
        match client.kind {
            Kind::Sockets => {
                let sockets = Arc::new(Sockets {
                    names,
                    tls: TlsConnector::from(Arc::new(tls)),
                });
                each(places, client.width, move |place| {
                    let sockets = Arc::clone(&sockets);
                    async move { sockets.ask(&place).await }
                })
                .await
            }
            Kind::Reqwest | Kind::ReqwestOneThread => {
                let client_ = reqwest::Client::builder()
                    .tls_backend_preconfigured(tls)
                    .dns_resolver(Arc::new(names))
                    .redirect(reqwest::redirect::Policy::none())
                    .pool_max_idle_per_host(0)
                    .no_proxy()
                    .build()?;
                let ask = move |place: Arc<Place>| {
                    let client = client_.clone();
                    async move { ask(&client, &place).await }
                };
                if client.kind == Kind::Reqwest {
                    Ok(stream(places, client.width, ask).await)
                } else {
                    each(places, client.width, ask).await
                }
            }
        }
    })
}

/// Asks every place, `width` at a time, and counts the good answers.
async fn each<F>(
    places: Vec<Place>,
    width: usize,
    ask: impl Fn(Arc<Place>) -> F + Clone + Send + 'static,
) -> Result<usize>
where
    F: Future<Output = Result<()>> + Send,
{
    let places: Arc<Vec<Arc<Place>>> = Arc::new(places.into_iter().map(Arc::new).collect());
    let next = Arc::new(AtomicUsize::new(0));
    let mut workers = JoinSet::new();
    for _ in 0..width {
        let (places, next, ask) = (Arc::clone(&places), Arc::clone(&next), ask.clone());
        workers.spawn(async move {
            let mut good = 0;
            while let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
                good += usize::from(ask(Arc::clone(place)).await.is_ok());
            }
            good
        });
    }
    let mut good = 0;
    while let Some(worker) = workers.join_next().await {
        good += worker?;
    }
    Ok(good)
}

/// The same, all in one future.
async fn stream<F>(places: Vec<Place>, width: usize, ask: impl Fn(Arc<Place>) -> F) -> usize
where
    F: Future<Output = Result<()>>,
{
    let good = AtomicUsize::new(0);
    futures_util::stream::iter(places)
        .for_each_concurrent(width, |place| {
            let asked = ask(Arc::new(place));
            async {
                good.fetch_add(usize::from(asked.await.is_ok()), Ordering::Relaxed);
            }
        })
        .await;
    good.into_inner()
}

/// `https://h7.test:18080/mcp/1`, by hand, so that the limit pays for nothing else.
fn place(url: &str) -> Result<Place> {
    let (scheme, rest) = url.split_once("://").context("no scheme")?;
    let (authority, path) = rest.split_once('/').context("no path")?;
    let (host, port) = authority.split_once(':').context("no port")?;
    Ok(Place {
        url: url.to_owned(),
        secure: scheme == "https",
        host: host.to_owned(),
        port: port.parse()?,
        path: format!("/{path}"),
    })
}

/// Names that are known, or asked for.
struct Names(Option<Resolver>);

impl Names {
    async fn find(&self, host: &str) -> Result<IpAddr> {
        if let Ok(address) = host.parse::<Ipv4Addr>() {
            return Ok(address.into());
        }
        let Some(resolver) = &self.0 else {
            return known(host);
        };
        let found = resolver
            .lookup(host)
            .await
            .map_err(|fault| anyhow::anyhow!("{fault:?}"))?;
        found.addresses.first().copied().context("no address")
    }
}

/// The address of `hN.test`.
fn known(host: &str) -> Result<IpAddr> {
    let number = host
        .strip_prefix('h')
        .and_then(|it| it.strip_suffix(DOMAIN)?.strip_suffix('.'))
        .context("no name of the harness")?;
    Ok(latency::address(number.parse()?).into())
}

impl reqwest::dns::Resolve for Names {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let resolver = self.0.clone();
        Box::pin(async move {
            let address = Self(resolver).find(name.as_str()).await?;
            let one = std::iter::once(SocketAddr::new(address, 0));
            Ok(Box::new(one) as reqwest::dns::Addrs)
        })
    }
}

struct Sockets {
    names: Names,
    tls: TlsConnector,
}

impl Sockets {
    async fn ask(&self, place: &Place) -> Result<()> {
        let address = self.names.find(&place.host).await?;
        let stream = TcpStream::connect((address, place.port)).await?;
        stream.set_nodelay(true)?;
        if place.secure {
            let name = ServerName::try_from(place.host.clone())?;
            converse(self.tls.connect(name, stream).await?, place).await
        } else {
            converse(stream, place).await
        }
    }
}

/// One request, one answer with a `Content-Length`.
async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, place: &Place) -> Result<()> {
    let request = format!(
        "POST {} HTTP/1.1\r\nhost: {}:{}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{BODY}",
        place.path,
        place.host,
        place.port,
        BODY.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut read = Vec::with_capacity(2048);
    loop {
        ensure!(stream.read_buf(&mut read).await? > 0, "no answer");
        let Some(head) = read.windows(4).position(|it| it == b"\r\n\r\n") else {
            continue;
        };
        let text = std::str::from_utf8(&read[..head])?;
        let length: usize = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .context("no length")?
            .parse()?;
        if read.len() >= head + 4 + length {
            return check(&read[head + 4..]);
        }
    }
}

async fn ask(client: &reqwest::Client, place: &Place) -> Result<()> {
    let response = client
        .post(&place.url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(BODY)
        .send()
        .await?;
    check(&response.bytes().await?)
}

/// Whether a server introduced itself.
fn check(body: &[u8]) -> Result<()> {
    let message: serde_json::Value = serde_json::from_slice(body)?;
    ensure!(
        message["result"]["serverInfo"]["name"].is_string(),
        "no server"
    );
    Ok(())
}
