//! The servers: one process that is every host of 127.0.0.0/8, over HTTP or HTTPS, with a name server for
//! `hN.test`. It answers `initialize` and little else, takes as long as it is told to, and can log when
//! each request arrived.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use tokio::sync::oneshot;
use tokio_rustls::LazyConfigAcceptor;

use crate::latency::{self, Latency};

/// The domain that hosts have names in: each is a site of its own, so that each has a lane of its own.
pub(crate) const DOMAIN: &str = "test";

/// Connections that may wait to be accepted; the kernel's own bound is lower.
const BACKLOG: u32 = 65_535;

/// The longest request that is read.
const LONGEST: usize = 64 << 10;

/// The length of an answer's body.
const BODY: usize = 464;

/// What the servers do.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Serve {
    /// How long they take: none, milliseconds, or median,sigma,percent hanging
    #[arg(long, default_value = "none")]
    pub(crate) latency: Latency,
    /// HTTPS; the root's certificate is written here
    #[arg(long)]
    pub(crate) tls: Option<PathBuf>,
    /// Names of a hundred that nobody answers for
    #[arg(long, default_value_t = 0)]
    pub(crate) dead_names: u32,
    /// Log when each request arrived
    #[arg(long)]
    pub(crate) log: bool,
    /// The core it runs on
    #[arg(long, default_value_t = 0)]
    pub(crate) core: usize,
}

impl Default for Serve {
    fn default() -> Self {
        Self {
            latency: Latency::None,
            tls: None,
            dead_names: 0,
            log: false,
            core: 0,
        }
    }
}

/// Whether nobody answers for a host's name.
pub(crate) fn is_dead(host: u32, percent: u32) -> bool {
    host * 37 % 100 < percent
}

/// A request as it arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) host: u32,
    pub(crate) micros: u64,
}

/// The servers, seen from the process that started them. They end with it, at the latest.
#[derive(Debug)]
pub(crate) struct Servers {
    child: Child,
    /// Taken when they are to end.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// The port that every host listens on.
    pub(crate) port: u16,
    /// The name server.
    pub(crate) dns: SocketAddr,
}

impl Servers {
    /// Starts them.
    pub(crate) fn start(serve: &Serve) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("serve")
            .args(["--latency", &serve.latency.to_string()])
            .args(["--dead-names", &serve.dead_names.to_string()])
            .args(["--core", &serve.core.to_string()]);
        if let Some(pem) = &serve.tls {
            command.arg("--tls").arg(pem);
        }
        if serve.log {
            command.arg("--log");
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the servers")?;
        let orders = child.stdin.take();
        let mut answers =
            BufReader::new(child.stdout.take().context("the servers have no stdout")?);
        let mut line = String::new();
        answers.read_line(&mut line)?;
        let (port, dns) = line
            .trim()
            .split_once(' ')
            .context("the servers did not start")?;
        Ok(Self {
            child,
            orders,
            port: port.parse()?,
            dns: dns.parse()?,
            answers,
        })
    }

    /// Every request that arrived since this was last asked.
    pub(crate) fn arrivals(&mut self) -> Result<Vec<Arrival>> {
        let orders = self.orders.as_mut().context("the servers have ended")?;
        orders.write_all(b"arrivals\n")?;
        orders.flush()?;
        let mut arrivals = Vec::new();
        loop {
            let mut line = String::new();
            ensure!(self.answers.read_line(&mut line)? > 0, "the servers ended");
            let Some((host, micros)) = line.trim().split_once(' ') else {
                return Ok(arrivals);
            };
            arrivals.push(Arrival {
                host: host.parse()?,
                micros: micros.parse()?,
            });
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

/// What every connection shares.
struct Shop {
    latency: Latency,
    tls: Option<Certificates>,
    log: Option<Mutex<Vec<Arrival>>>,
    began: Instant,
}

/// Serves until stdin ends.
pub(crate) fn run(serve: &Serve) -> Result<()> {
    crate::cost::keep_to_core(serve.core);
    let tls = serve
        .tls
        .as_ref()
        .map(|pem| -> Result<Certificates> {
            let certificates = Certificates::new()?;
            std::fs::write(pem, &certificates.root_pem)?;
            Ok(certificates)
        })
        .transpose()?;
    let shop = Arc::new(Shop {
        latency: serve.latency,
        tls,
        log: serve.log.then(Mutex::default),
        began: Instant::now(),
    });
    let dead = serve.dead_names;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
        let listener = socket.listen(BACKLOG)?;
        let names = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        {
            let mut stdout = std::io::stdout().lock();
            writeln!(
                stdout,
                "{} {}",
                listener.local_addr()?.port(),
                names.local_addr()?
            )?;
            stdout.flush()?;
        }
        let (ended, end) = oneshot::channel();
        let desk = Arc::clone(&shop);
        std::thread::spawn(move || {
            let _ = obey(&desk);
            let _ = ended.send(());
        });
        tokio::spawn(answer_names(names, dead));
        tokio::select! {
            it = accept(listener, &shop) => it,
            _ = end => Ok(()),
        }
    })
}

/// Does what stdin asks for, to its end.
fn obey(shop: &Shop) -> Result<()> {
    for line in std::io::stdin().lock().lines() {
        line?;
        let arrivals = shop
            .log
            .as_ref()
            .map(|log| std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner)));
        let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
        for Arrival { host, micros } in arrivals.into_iter().flatten() {
            writeln!(stdout, "{host} {micros}")?;
        }
        writeln!(stdout, "end")?;
        stdout.flush()?;
    }
    Ok(())
}

async fn accept(listener: TcpListener, shop: &Arc<Shop>) -> Result<()> {
    loop {
        // Out of descriptors: those that are there will be closed.
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            continue;
        };
        if !peer.ip().is_loopback() {
            continue;
        }
        let shop = Arc::clone(shop);
        // A client that breaks off has its reasons.
        tokio::spawn(async move { welcome(stream, &shop).await.ok() });
    }
}

async fn welcome(stream: TcpStream, shop: &Shop) -> Result<()> {
    let SocketAddr::V4(local) = stream.local_addr()? else {
        return Ok(());
    };
    stream.set_nodelay(true)?;
    let host = latency::host(*local.ip());
    let Some(certificates) = &shop.tls else {
        return converse(stream, host, shop).await;
    };
    let hello = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
    let subject = hello
        .client_hello()
        .server_name()
        .map_or_else(|| local.ip().to_string(), str::to_owned);
    let config = certificates.of(&subject)?;
    converse(hello.into_stream(config).await?, host, shop).await
}

/// Answers requests until the client has had enough.
async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    host: u32,
    shop: &Shop,
) -> Result<()> {
    let mut read = Vec::with_capacity(2048);
    loop {
        let Some(request) = request(&mut stream, &mut read).await? else {
            return Ok(());
        };
        if let Some(log) = &shop.log {
            let micros = u64::try_from(shop.began.elapsed().as_micros())?;
            log.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(Arrival { host, micros });
        }
        match shop.latency.of(host, request.path) {
            Some(wait) if wait.is_zero() => {}
            Some(wait) => tokio::time::sleep(wait).await,
            None => {
                // Until the client gives up.
                while stream.read_buf(&mut read).await? > 0 {
                    read.clear();
                }
                return Ok(());
            }
        }
        stream.write_all(&request.answer).await?;
        stream.flush().await?;
    }
}

struct Asked {
    path: u32,
    answer: Vec<u8>,
}

async fn request(
    stream: &mut (impl AsyncRead + Unpin),
    read: &mut Vec<u8>,
) -> Result<Option<Asked>> {
    let (head, length) = loop {
        if let Some(head) = find(read, b"\r\n\r\n") {
            break (head + 4, content_length(&read[..head]));
        }
        ensure!(read.len() < LONGEST, "a request without an end");
        if stream.read_buf(read).await? == 0 {
            return Ok(None);
        }
    };
    ensure!(length < LONGEST, "a request without an end");
    while read.len() < head + length {
        if stream.read_buf(read).await? == 0 {
            return Ok(None);
        }
    }
    let posted = read.starts_with(b"POST ");
    let line = read.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let path = path(line);
    let answer = if posted {
        initialized(&read[head..head + length])
    } else {
        b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n".to_vec()
    };
    read.drain(..head + length);
    Ok(Some(Asked { path, answer }))
}

/// The number at the end of `/mcp/7`; 0 where there is none.
fn path(line: &[u8]) -> u32 {
    let path = line.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    std::str::from_utf8(path)
        .ok()
        .and_then(|it| it.rsplit('/').next()?.parse().ok())
        .unwrap_or_default()
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|it| it == what)
}

fn content_length(head: &[u8]) -> usize {
    head.split(|byte| *byte == b'\n')
        .find_map(|line| {
            let (name, value) = line.split_at_checked(b"content-length:".len())?;
            if !name.eq_ignore_ascii_case(b"content-length:") {
                return None;
            }
            std::str::from_utf8(value).ok()?.trim().parse().ok()
        })
        .unwrap_or_default()
}

/// A valid answer to `initialize`, with the request's own id.
fn initialized(request: &[u8]) -> Vec<u8> {
    let id = find(request, b"\"id\":")
        .map(|at| &request[at + 5..])
        .and_then(|rest| rest.split(|byte| matches!(byte, b',' | b'}')).next())
        .unwrap_or(b"1");
    let id = String::from_utf8_lossy(id);
    let start = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{"listChanged":true}},"prompts":{{}},"resources":{{"subscribe":true}}}},"serverInfo":{{"name":"bench","version":"1.0.0"}},"instructions":""#
    );
    let filler = BODY.saturating_sub(start.len() + 3);
    let body = format!("{start}{}\"}}}}", "x".repeat(filler));
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A name server for `hN.test`: one A record each, no AAAA, and nothing at all for the dead ones.
async fn answer_names(socket: UdpSocket, dead: u32) {
    let mut datagram = [0; 1500];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut datagram).await else {
            continue;
        };
        if let Some(answer) = name_answer(&datagram[..length], dead) {
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

/// RFC 1035 §4.1, as far as a stub resolver's questions go.
fn name_answer(query: &[u8], dead: u32) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let first = usize::from(*query.get(HEADER)?);
    let label = query.get(HEADER + 1..HEADER + 1 + first)?;
    let digits = label.strip_prefix(b"h").or(label.strip_prefix(b"H"))?;
    let host: u32 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    if is_dead(host, dead) {
        return None;
    }
    let end = HEADER + find(query.get(HEADER..)?, b"\0")? + 1;
    let question = query.get(HEADER..end + 4)?;
    let kind = u16::from_be_bytes([*query.get(end)?, *query.get(end + 1)?]);
    let is_a = kind == 1;
    let mut answer = query.get(..2)?.to_vec();
    // A response, recursion available; one question, an answer or none.
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    answer.extend(question);
    if is_a {
        // The question's name, A, IN, 60 seconds, 4 bytes.
        answer.extend([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(latency::address(host).octets());
    }
    Some(answer)
}

/// Certificates: a P-256 leaf under a P-384 intermediate under a P-384 root, as public authorities have them.
struct Certificates {
    root_pem: String,
    intermediate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    /// One for each name or address, made when it is first asked for.
    issued: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

impl Certificates {
    fn new() -> Result<Self> {
        let key = || KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384);
        let (root_params, root_key) = (authority("harness root"), key()?);
        let root = root_params.self_signed(&root_key)?;
        let root_issuer = Issuer::new(root_params, root_key);
        let (params, between_key) = (authority("harness intermediate"), key()?);
        let intermediate = params.signed_by(&between_key, &root_issuer)?.der().clone();
        let issuer = Issuer::new(params, between_key);
        Ok(Self {
            root_pem: root.pem(),
            intermediate,
            issuer,
            issued: Mutex::default(),
        })
    }

    fn of(&self, subject: &str) -> Result<Arc<ServerConfig>> {
        let mut all = self.issued.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = all.get(subject) {
            return Ok(Arc::clone(config));
        }
        let config = server(subject, &self.issuer, &self.intermediate)?;
        all.insert(subject.to_owned(), Arc::clone(&config));
        Ok(config)
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn server(
    subject: &str,
    issuer: &Issuer<'static, KeyPair>,
    intermediate: &CertificateDer<'static>,
) -> Result<Arc<ServerConfig>> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(vec![subject.to_owned()])?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let leaf = params.signed_by(&key, issuer)?;
    let chain = vec![leaf.der().clone(), intermediate.clone()];
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::Pkcs8(key.serialize_der().into()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
