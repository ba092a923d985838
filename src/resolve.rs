//! Names -> addresses, with typed failures, and the address policy: what is not public is refused after
//! resolution, and the addresses that were checked are the ones that are connected to.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
    ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;

use tokio::sync::Semaphore;

use crate::exchange::{DnsFault, Fault, LocalFault};
use crate::fault::Carried;
use crate::target::AddressPolicy;

/// Times a question is put to the name servers.
const ATTEMPTS: u32 = 2;

/// Answers kept: a census asks each name a few times within minutes.
const CACHE: u64 = 4096;

/// Names being looked up at once.
pub const QUESTIONS: usize = 128;

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
    /// Each question holds a socket while it is open.
    open: Arc<Semaphore>,
}

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolver")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl Resolver {
    /// A resolver that asks `server`, or the system's name servers; a name is given up after `patience`.
    ///
    /// # Errors
    /// When the system's configuration cannot be read: there is no fallback to a stranger's resolver.
    pub fn new(
        server: Option<SocketAddr>,
        patience: Duration,
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
        let inner = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            .with_options(options)
            .build()
            .context("cannot set up the resolver")?;
        Ok(Self {
            inner,
            policy,
            open: Arc::new(Semaphore::new(QUESTIONS)),
        })
    }

    /// The addresses of a name.
    ///
    /// # Errors
    /// The fault: why there are none, or that one of them is not public.
    pub async fn lookup(&self, name: &str) -> Result<Resolved, Fault> {
        let _open = self.open.acquire().await;
        // The root's dot: no search list of this machine's may complete a stranger's name.
        let found = self
            .inner
            .lookup_ip(format!("{}.", name.trim_end_matches('.')))
            .await
            .map_err(|error| fault(&error))?;
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

/// Whether this machine has a route to an address. Connecting a datagram socket asks the routing table and sends nothing.
fn has_route(address: IpAddr) -> bool {
    let any: SocketAddr = if address.is_ipv6() {
        ([0u16; 8], 0).into()
    } else {
        ([0u8; 4], 0).into()
    };
    UdpSocket::bind(any)
        .and_then(|socket| socket.connect((address, 9)))
        .is_ok()
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
