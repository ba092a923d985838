//! Names -> addresses, with typed failures, and the address policy: what is not public is refused after
//! resolution, and the addresses that were checked are the ones that are connected to.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
    ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::exchange::{DnsFault, Fault, LocalFault};
use crate::fault::Carried;
use crate::target::AddressPolicy;

/// Times a question is put to the name servers.
const ATTEMPTS: u32 = 2;

/// Answers kept: a census asks each name a few times within minutes.
const CACHE: u64 = 4096;

/// Names being looked up at once, where file descriptors allow it: a name that nobody answers for is waited for as
/// long as a connection, and holds up nobody else.
pub const QUESTIONS: usize = 1024;

/// Sockets that a question holds while it is open, one for each family.
pub const QUESTION_SOCKETS: usize = 2;

/// What a name resolved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// IPv6 first where this machine has a route there, then IPv4.
    pub addresses: Vec<IpAddr>,
}

/// A resolver under an address policy.
#[derive(Clone)]
pub struct Resolver {
    inner: TokioResolver,
    policy: Arc<AddressPolicy>,
    /// Each question holds sockets while it is open.
    open: Arc<Semaphore>,
    pulse: Arc<Pulse>,
}

/// Whether the name servers answer at all. A name that they have no answer for is dead; where they are silent to
/// everything, the silence is ours.
struct Pulse {
    /// The same name servers, and no memory of what they said.
    inner: TokioResolver,
    answered: StdMutex<Answered>,
    /// One asks at a time, for all that want to know.
    asking: Mutex<()>,
}

/// The last sign of life.
struct Answered {
    at: Instant,
    /// A name that there was an answer for, whatever it was.
    name: Option<String>,
    /// When it was last found that there is none.
    silent: Option<Instant>,
}

impl Pulse {
    fn beat(&self, name: &str) {
        let mut answered = self.answered();
        answered.at = Instant::now();
        let last = answered.name.get_or_insert_default();
        last.clear();
        last.push_str(name);
    }

    fn answered(&self) -> MutexGuard<'_, Answered> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the name servers have answered anything since a moment, or answer now.
    async fn is_felt(&self, since: Instant) -> bool {
        let _asking = self.asking.lock().await;
        let known = {
            let answered = self.answered();
            if answered.at >= since {
                return true;
            }
            // Found by another that waited for the same silence.
            if answered.silent.is_some_and(|it| it >= since) {
                return false;
            }
            answered.name.clone()
        };
        // Who has answered for a name does so again. Whoever resolves names knows the root's name servers (RFC 1034
        // §4.3.2, RFC 8109), though not everyone who serves only some.
        for (name, kind) in known
            .map(|name| (name, RecordType::A))
            .into_iter()
            .chain([(String::from("."), RecordType::NS)])
        {
            if matches!(
                self.inner.lookup(name.as_str(), kind).await,
                Ok(_) | Err(NetError::Dns(_))
            ) {
                self.answered().at = Instant::now();
                return true;
            }
        }
        self.answered().silent = Some(Instant::now());
        false
    }
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl Resolver {
    /// A resolver that asks `server`, or the system's name servers, `questions` names at a time; a name is given up
    /// after `patience`.
    ///
    /// # Errors
    /// When the system's configuration cannot be read: there is no fallback to a stranger's resolver.
    pub fn new(
        server: Option<SocketAddr>,
        patience: Duration,
        questions: usize,
        policy: Arc<AddressPolicy>,
    ) -> anyhow::Result<Self> {
        use anyhow::Context as _;
        let config = if let Some(address) = server {
            let [mut udp, mut tcp] = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
            udp.port = address.port();
            tcp.port = address.port();
            let mut server = NameServerConfig::udp_and_tcp(address.ip());
            server.connections = vec![udp, tcp];
            ResolverConfig::from_parts(None, Vec::new(), vec![server])
        } else {
            let (system, _) = hickory_resolver::system_conf::read_system_conf().context(
                "cannot read the system's resolver configuration; name a server with --dns-server",
            )?;
            ResolverConfig::from_parts(None, Vec::new(), system.name_servers().to_vec())
        };
        let mut options = ResolverOpts::default();
        options.timeout = patience / ATTEMPTS;
        options.attempts = ATTEMPTS as usize - 1;
        options.ip_strategy = LookupIpStrategy::Ipv6AndIpv4;
        options.cache_size = CACHE;
        options.use_hosts_file = ResolveHosts::Never;
        options.max_active_requests = 4096;
        options.try_tcp_on_error = false;
        let asking = |options| {
            TokioResolver::builder_with_config(config.clone(), TokioRuntimeProvider::default())
                .with_options(options)
                .build()
                .context("cannot set up the resolver")
        };
        let inner = asking(options.clone())?;
        options.cache_size = 0;
        Ok(Self {
            inner,
            policy,
            open: Arc::new(Semaphore::new(questions)),
            pulse: Arc::new(Pulse {
                inner: asking(options)?,
                answered: StdMutex::new(Answered {
                    at: Instant::now(),
                    name: None,
                    silent: None,
                }),
                asking: Mutex::default(),
            }),
        })
    }

    /// The addresses of a name.
    ///
    /// # Errors
    /// The fault: why there are none, or that one of them is not public.
    pub async fn lookup(&self, name: &str) -> Result<Resolved, Fault> {
        let open = self.open.acquire().await;
        let began = Instant::now();
        // The root's dot: no search list of this machine's may complete a stranger's name.
        let name = format!("{}.", name.trim_end_matches('.'));
        let found = self.inner.lookup_ip(name.as_str()).await;
        drop(open);
        let found = match found.map_err(|error| fault(&error)) {
            Err(Fault::Dns(DnsFault::Timeout)) if !self.pulse.is_felt(began).await => {
                return Err(Fault::Local(LocalFault::NoNetwork));
            }
            Err(fault) => {
                if matches!(fault, Fault::Dns(it) if it != DnsFault::Timeout) {
                    self.pulse.beat(&name);
                }
                return Err(fault);
            }
            Ok(found) => {
                self.pulse.beat(&name);
                found
            }
        };
        let addresses: Vec<IpAddr> = found.iter().collect();
        if addresses
            .iter()
            .any(|it| self.policy.excluded().covers_address(*it))
        {
            return Err(Fault::Excluded);
        }
        if let Some(private) = addresses
            .iter()
            .find(|address| !self.policy.allows(**address))
        {
            return Err(Fault::PrivateAddress(*private));
        }
        let (v6, v4): (Vec<IpAddr>, Vec<IpAddr>) = addresses.into_iter().partition(IpAddr::is_ipv6);
        let mut addresses: Vec<IpAddr> = v6
            .into_iter()
            .filter(|address| v4.is_empty() || has_route(*address))
            .collect();
        addresses.extend(v4);
        if addresses.is_empty() {
            return Err(Fault::Dns(DnsFault::NoData));
        }
        Ok(Resolved { addresses })
    }
}

/// Whether this machine has a route to an address. Connecting a datagram socket asks the routing table and sends
/// nothing. Where no socket is left to ask with, it may have one.
pub(crate) fn has_route(address: IpAddr) -> bool {
    let any: SocketAddr = if address.is_ipv6() {
        ([0u16; 8], 0).into()
    } else {
        ([0u8; 4], 0).into()
    };
    match UdpSocket::bind(any) {
        Ok(socket) => socket.connect((address, 9)).is_ok(),
        Err(error) => {
            error.kind() != ErrorKind::AddrNotAvailable && crate::fault::is_exhaustion(&error)
        }
    }
}

/// Whether this machine has a route to anywhere public, going by addresses that are nobody's (RFC 5737, RFC 3849).
pub(crate) fn has_network() -> bool {
    has_route([192, 0, 2, 1].into()) || has_route([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into())
}

fn fault(error: &NetError) -> Fault {
    Fault::Dns(match error {
        NetError::Timeout => DnsFault::Timeout,
        NetError::Dns(DnsError::NoRecordsFound(none)) => match none.response_code {
            ResponseCode::NXDomain => DnsFault::NxDomain,
            ResponseCode::NoError => DnsFault::NoData,
            _ => DnsFault::ServFail,
        },
        NetError::Dns(DnsError::ResponseCode(ResponseCode::NXDomain)) => DnsFault::NxDomain,
        NetError::Io(io) => match io.kind() {
            ErrorKind::TimedOut => DnsFault::Timeout,
            // The name server does not answer us, or we have nothing left to ask it with: that is no name's fault.
            _ => {
                return Fault::Local(if crate::fault::is_exhaustion(io) {
                    LocalFault::Exhausted
                } else {
                    LocalFault::NoNetwork
                });
            }
        },
        NetError::NoConnections | NetError::Busy => return Fault::Local(LocalFault::NoNetwork),
        _ => DnsFault::ServFail,
    })
}

/// For the HTTP client: the fault travels as the error and comes back out of the chain.
#[must_use]
pub fn carried(fault: Fault) -> Box<dyn std::error::Error + Send + Sync> {
    Box::new(Carried(fault))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::task::JoinSet;

    /// A name server that answers a query with what it is told to, or not at all.
    fn server(answers: impl Fn(&[u8]) -> bool + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let at = socket.local_addr().unwrap();
        // It ends with the test's process.
        std::thread::spawn(move || {
            let mut datagram = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut datagram) {
                if answers(&datagram[..length]) {
                    // A response that refuses (RFC 1035 §4.1.1): its QR bit is set, and its code is 5.
                    datagram[2] |= 0x80;
                    datagram[3] = 5;
                    let _ = socket.send_to(&datagram[..length], from);
                }
            }
        });
        at
    }

    async fn looked_up(server: SocketAddr) -> Fault {
        let policy = Arc::new(AddressPolicy::default());
        let resolver = Resolver::new(Some(server), Duration::from_millis(200), 4, policy).unwrap();
        resolver.lookup("a.example").await.unwrap_err()
    }

    #[tokio::test]
    async fn a_name_that_gets_no_answer_is_dead() {
        let names_the_root = |query: &[u8]| query[12] == 0;
        assert_eq!(
            looked_up(server(names_the_root)).await,
            Fault::Dns(DnsFault::Timeout)
        );
    }

    #[tokio::test]
    async fn who_has_answered_for_a_name_is_not_silent_though_it_knows_no_root() {
        let names_a = |query: &[u8]| query[12..].starts_with(b"\x01a");
        let policy = Arc::new(AddressPolicy::default());
        let resolver =
            Resolver::new(Some(server(names_a)), Duration::from_millis(200), 4, policy).unwrap();
        for (name, said) in [("a", DnsFault::ServFail), ("b", DnsFault::Timeout)] {
            let fault = resolver.lookup(&format!("{name}.example")).await;
            assert_eq!(fault.unwrap_err(), Fault::Dns(said), "{name}");
        }
    }

    #[tokio::test]
    async fn that_nobody_answers_is_found_once_for_all_that_wait() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let silent = server(move |query| {
            count.fetch_add(usize::from(query[12] == 0), Ordering::Relaxed);
            false
        });
        let policy = Arc::new(AddressPolicy::default());
        let resolver = Resolver::new(Some(silent), Duration::from_millis(200), 50, policy).unwrap();
        let mut questions = JoinSet::new();
        for number in 0..50 {
            let resolver = resolver.clone();
            questions.spawn(async move { resolver.lookup(&format!("{number}.example")).await });
        }
        for said in questions.join_all().await {
            assert_eq!(said, Err(Fault::Local(LocalFault::NoNetwork)));
        }
        let asked = asked.load(Ordering::Relaxed);
        assert!(asked < 10, "the root was asked for {asked} times");
    }

    #[tokio::test]
    async fn a_name_server_that_answers_nothing_at_all_is_our_own_trouble() {
        assert_eq!(
            looked_up(server(|_| false)).await,
            Fault::Local(LocalFault::NoNetwork)
        );
    }
}
