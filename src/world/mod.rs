//! The loopback world: real sockets that answer, and misbehave, on demand. `demo` scans one that
//! looks like a registry, `gauntlet` one that holds the corpus. It knows nothing of probing, and
//! nothing in it listens or asks beyond this machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::case::{Case, Door, Response, Script, Transport};
use self::dns::{Says, Zone};
use self::mix::Mix;
use self::serve::{Entrance, Sites, accept, admit};
use self::site::{Asked, Log, Site};
use self::tls::{Authority, Credential, Opening};
use self::tokens::Tokens;
use crate::target::is_public;

pub mod case;
mod dns;
pub mod mix;
mod request;
mod serve;
mod site;
pub mod tls;
mod tokens;
mod written;

pub use self::site::Seen;

/// The host names of a gauntlet stand directly under this.
pub const GAUNTLET: &str = "gauntlet.test";

/// The host names of a demo stand directly under this.
pub const DEMO: &str = "demo.test";

/// Servers that listen on loopback until this is dropped.
#[derive(Debug)]
pub struct World {
    targets: Vec<Offered>,
    strict_targets: Vec<Offered>,
    skipped: Vec<String>,
    dns: SocketAddr,
    ca_pem: String,
    log: Arc<Log>,
    _tasks: JoinSet<()>,
    _held: Held,
}

/// One row of the list that a world offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The case's id, or a name as a registry has them.
    pub name: String,
    /// The listed URL.
    pub url: String,
    /// The declared transport.
    pub transport: String,
}

impl World {
    /// Serves cases, each at a name and a port of its own.
    ///
    /// # Errors
    /// When a socket or a certificate cannot be had.
    pub async fn gauntlet(cases: Vec<Case>) -> anyhow::Result<Self> {
        let mut ground = Ground::new(GAUNTLET)?;
        let (other, other_port) = listener().await?;
        let mut at_other = BTreeMap::new();
        for (number, case) in cases.into_iter().enumerate() {
            let speaks = speaks(&case.expect.category);
            let spot = Spot {
                host: ground.host(&case.id, number),
                path: case.request_hint.path().to_owned(),
                transport: case.request_hint.transport().to_owned(),
                scheme: match case.request_hint.scheme.as_deref() {
                    Some("https") => "https",
                    Some(_) | None => "http",
                },
                name: case.id,
                speaks,
            };
            match &case.response.response {
                Response::Http(_) | Response::Raw(_) => {
                    let (listener, port) = listener().await?;
                    let site = Arc::new(spot.site(
                        case.response,
                        &spot.base(Some(port)),
                        &spot.base(Some(other_port)),
                    ));
                    at_other.insert(spot.host.clone(), Arc::clone(&site));
                    let opening = if spot.scheme == "https" {
                        Opening::Handshake(ground.authority.config(Credential::Good)?)
                    } else {
                        Opening::Plain
                    };
                    ground.open(listener, opening, Door::Own, Sites::One(site));
                    ground.live(&spot, Some(port));
                }
                Response::Transport(transport) => ground.place(&spot, transport).await?,
                Response::Listed(url) if case.expect.category == "unprobeable" => {
                    ground.strict_targets.push(spot.offered(url.clone()));
                }
                Response::Listed(_) => {
                    ground.skip(&spot, "how its address is read is not seen on the wire");
                }
            }
        }
        ground.open(other, Opening::Plain, Door::Other, Sites::ByHost(at_other));
        ground.done().await
    }

    /// Serves a mix: one plain and one TLS listener answer for all names, and a few more fail below HTTP.
    ///
    /// # Errors
    /// When a socket or a certificate cannot be had, or the mix has more rows than names.
    pub async fn demo(mix: &Mix) -> anyhow::Result<Self> {
        let mut ground = Ground::new(DEMO)?;
        let (plain, plain_port) = listener().await?;
        let (secure, secure_port) = listener().await?;
        let (mut at_plain, mut at_secure) = (BTreeMap::new(), BTreeMap::new());
        for row in mix.rows()? {
            let group = row.group;
            let spot = Spot {
                host: format!("{}.{DEMO}", row.label),
                path: group.path.clone(),
                transport: group.transport.clone(),
                scheme: if group.plain { "http" } else { "https" },
                name: row.name,
                speaks: speaks(&group.expect.category),
            };
            match &group.response.response {
                Response::Http(_) | Response::Raw(_) => {
                    let (sites, port) = if group.plain {
                        (&mut at_plain, plain_port)
                    } else {
                        (&mut at_secure, secure_port)
                    };
                    let base = spot.base(Some(port));
                    let site = spot.site(group.response.clone(), &base, &base);
                    sites.insert(spot.host.clone(), Arc::new(site));
                    ground.live(&spot, Some(port));
                }
                Response::Transport(transport) => ground.place(&spot, transport).await?,
                Response::Listed(url) => {
                    let url = spot.filled(url);
                    ground.targets.push(spot.offered(url));
                }
            }
        }
        let secured = Opening::Handshake(ground.authority.config(Credential::Good)?);
        ground.open(plain, Opening::Plain, Door::Own, Sites::ByHost(at_plain));
        ground.open(secure, secured, Door::Own, Sites::ByHost(at_secure));
        ground.done().await
    }

    /// The list to scan with `127.0.0.0/8` and `::1/128` opened to probing.
    #[must_use]
    pub fn targets(&self) -> &[Offered] {
        &self.targets
    }

    /// The list to scan with nothing opened: none of its rows may be asked.
    #[must_use]
    pub fn strict_targets(&self) -> &[Offered] {
        &self.strict_targets
    }

    /// The name server that knows the world's names.
    #[must_use]
    pub fn dns(&self) -> SocketAddr {
        self.dns
    }

    /// The certificate authority to trust, in PEM.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        &self.ca_pem
    }

    /// The cases that are in neither list, each with the reason.
    #[must_use]
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// The requests that have arrived, in order; the first 65,536 of them.
    #[must_use]
    pub fn requests(&self) -> Vec<Seen> {
        self.log.seen()
    }

    /// Sessions handed out and not closed by DELETE.
    #[must_use]
    pub fn open_sessions(&self) -> usize {
        self.log.open()
    }
}

/// Such a server answers what it does not know with a JSON-RPC error, and not with its script.
fn speaks(category: &str) -> bool {
    matches!(category, "success" | "protocol_violation")
}

/// Where a server stands, and how it is listed.
#[derive(Clone)]
struct Spot {
    name: String,
    host: String,
    path: String,
    transport: String,
    scheme: &'static str,
    speaks: bool,
}

impl Spot {
    fn base(&self, port: Option<u16>) -> String {
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        format!("{}://{}{port}", self.scheme, self.host)
    }

    fn offered(&self, url: String) -> Offered {
        Offered {
            name: self.name.clone(),
            url,
            transport: self.transport.clone(),
        }
    }

    fn site(&self, script: Script, base: &str, other_base: &str) -> Site {
        Site {
            name: self.name.clone(),
            script,
            speaks: self.speaks,
            hostname: self.host.clone(),
            base: base.to_owned(),
            other_base: other_base.to_owned(),
            last: Mutex::default(),
            posts: tokio::sync::watch::Sender::default(),
        }
    }

    /// A listed address with its tokens filled.
    fn filled(&self, url: &str) -> String {
        let (asked, base) = (Asked::default(), self.base(None));
        let tokens = Tokens {
            id: &asked.id,
            version: &asked.version,
            request_body: &asked.body,
            base: &base,
            other_base: &base,
            hostname: &self.host,
            session: "",
            hop: None,
        };
        tokens.fill_str(url)
    }
}

/// A world that is being built.
struct Ground {
    domain: &'static str,
    authority: Authority,
    zone: Zone,
    targets: Vec<Offered>,
    strict_targets: Vec<Offered>,
    skipped: Vec<String>,
    log: Arc<Log>,
    tasks: JoinSet<()>,
    held: Held,
}

/// Sockets that do their work by not being served.
#[derive(Debug, Default)]
struct Held {
    bound: Vec<TcpSocket>,
    full: Vec<(TcpListener, Vec<TcpStream>)>,
}

impl Ground {
    fn new(domain: &'static str) -> anyhow::Result<Self> {
        Ok(Self {
            domain,
            authority: Authority::new(domain)?,
            zone: Zone::new(),
            targets: Vec::new(),
            strict_targets: Vec::new(),
            skipped: Vec::new(),
            log: Arc::default(),
            tasks: JoinSet::new(),
            held: Held::default(),
        })
    }

    /// A host name from a case's id: what a name may not hold becomes a hyphen, and no two are the same.
    fn host(&self, id: &str, number: usize) -> String {
        let label: String = id
            .to_ascii_lowercase()
            .chars()
            .map(|it| if it.is_ascii_alphanumeric() { it } else { '-' })
            .take(50)
            .collect();
        let label = label.trim_matches('-');
        let host = format!("{label}.{}", self.domain);
        if label.is_empty() || self.zone.contains_key(&host) {
            return format!("case-{number}.{}", self.domain);
        }
        host
    }

    fn open(&mut self, listener: TcpListener, opening: Opening, door: Door, sites: Sites) {
        let entrance = Arc::new(Entrance {
            opening,
            door,
            sites,
            log: Arc::clone(&self.log),
        });
        self.tasks.spawn(accept(listener, move |stream| {
            admit(stream, Arc::clone(&entrance))
        }));
    }

    /// Lists a server, and has its name resolve to loopback.
    fn live(&mut self, spot: &Spot, port: Option<u16>) {
        self.dead(
            spot,
            port,
            Says::Addresses(vec![Ipv4Addr::LOCALHOST.into()]),
        );
    }

    /// Lists a server whose name resolves to something else.
    fn dead(&mut self, spot: &Spot, port: Option<u16>, says: Says) {
        self.zone.insert(spot.host.clone(), says);
        let url = format!("{}{}", spot.base(port), spot.path);
        self.targets.push(spot.offered(url));
    }

    fn skip(&mut self, spot: &Spot, why: &str) {
        self.skipped.push(format!("{}: {why}", spot.name));
    }

    /// Sets up a server that fails below HTTP.
    async fn place(&mut self, spot: &Spot, transport: &Transport) -> anyhow::Result<()> {
        const UNKNOWN: &str = "nothing here can fail like that";
        match transport {
            Transport::Connect(word) => match word.as_str() {
                "refused" => {
                    // Bound and not listening: refused, and nobody else can come to listen there.
                    let socket = TcpSocket::new_v4()?;
                    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
                    self.live(spot, Some(socket.local_addr()?.port()));
                    self.held.bound.push(socket);
                }
                "blackhole" => match blackhole().await? {
                    Some((listener, waiting)) => {
                        self.live(spot, Some(listener.local_addr()?.port()));
                        self.held.full.push((listener, waiting));
                    }
                    None => self.skip(spot, "this system does not let an accept queue overflow"),
                },
                _ => self.skip(spot, UNKNOWN),
            },
            Transport::Tls(word) => match self.authority.opening(word)? {
                Some(opening) => self.behind(spot, opening).await?,
                None => self.skip(spot, UNKNOWN),
            },
            Transport::H2(word) => match self.authority.http2(word)? {
                Some(opening) => self.behind(spot, opening).await?,
                None => self.skip(spot, UNKNOWN),
            },
            Transport::Dns(word) => match word.as_str() {
                "nxdomain" => self.dead(spot, None, Says::NxDomain),
                "servfail" => self.dead(spot, None, Says::ServFail),
                "nodata" => self.dead(spot, None, Says::Addresses(Vec::new())),
                "timeout" => self.dead(spot, None, Says::Nothing),
                _ => match word.strip_prefix("answer:") {
                    Some(answer) => self.resolving(spot, answer).await?,
                    None => self.skip(spot, UNKNOWN),
                },
            },
        }
        Ok(())
    }

    /// Sets up a server whose name resolves as the case says.
    async fn resolving(&mut self, spot: &Spot, answer: &str) -> anyhow::Result<()> {
        let address = answer.parse::<IpAddr>().ok();
        if answer.split(',').any(|it| it == "[ok4]") {
            let port = self.working(spot, Opening::Plain).await?;
            let addresses = vec![
                std::net::Ipv6Addr::LOCALHOST.into(),
                Ipv4Addr::LOCALHOST.into(),
            ];
            self.dead(spot, Some(port), Says::Addresses(addresses));
        } else if let Some(address) = address.filter(|it| !is_public(*it)) {
            // A server listens there where it can, so that a request that should not come is seen.
            let port = self.working(spot, Opening::Plain).await?;
            let says = Says::Addresses(vec![address]);
            self.zone.insert(spot.host.clone(), says);
            let url = format!("{}{}", spot.base(Some(port)), spot.path);
            self.strict_targets.push(spot.offered(url));
        } else {
            self.skip(spot, "it needs a route off this machine");
        }
        Ok(())
    }

    /// Lists a server that would answer `initialize` as it should, behind such an opening.
    async fn behind(&mut self, spot: &Spot, opening: Opening) -> anyhow::Result<()> {
        let spot = Spot {
            scheme: "https",
            ..spot.clone()
        };
        let port = self.working(&spot, opening).await?;
        self.live(&spot, Some(port));
        Ok(())
    }

    /// Starts a server that answers `initialize` as it should; gives its port.
    async fn working(&mut self, spot: &Spot, opening: Opening) -> anyhow::Result<u16> {
        let (listener, port) = listener().await?;
        let base = spot.base(Some(port));
        let site = Arc::new(spot.site(Script::working(), &base, &base));
        self.open(listener, opening, Door::Own, Sites::One(site));
        Ok(port)
    }

    async fn done(mut self) -> anyhow::Result<World> {
        let dns = dns::serve(self.zone, &mut self.tasks)
            .await
            .context("no name server on 127.0.0.1")?;
        Ok(World {
            targets: self.targets,
            strict_targets: self.strict_targets,
            skipped: self.skipped,
            dns,
            ca_pem: self.authority.pem().to_owned(),
            log: self.log,
            _tasks: self.tasks,
            _held: self.held,
        })
    }
}

async fn listener() -> anyhow::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .context("no listener on 127.0.0.1: raise the limit of open files (ulimit -n)")?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// A listener whose accept queue is full, so that what else connects hears nothing; `None` where
/// the queue takes all, or overflows into refusals.
async fn blackhole() -> anyhow::Result<Option<(TcpListener, Vec<TcpStream>)>> {
    const MOST: usize = 16;
    const UNHEARD: Duration = Duration::from_millis(200);
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let listener = socket.listen(1)?;
    let address = listener.local_addr()?;
    let mut waiting = Vec::new();
    while waiting.len() < MOST {
        match timeout(UNHEARD, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => waiting.push(stream),
            Ok(Err(_)) => return Ok(None),
            Err(_) => return Ok(Some((listener, waiting))),
        }
    }
    Ok(None)
}
