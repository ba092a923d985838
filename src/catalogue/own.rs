//! Which servers are one's own: only those are asked what is wrong on purpose.

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

/// The servers that the operator of a run calls his own.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Own {
    /// Address ranges. A server is in one where it is listed by its address: what a name resolves to can change.
    pub nets: Vec<IpNet>,
    /// Hosts, by name or address, in lower case.
    pub hosts: Vec<String>,
}

impl Own {
    /// Whether an address is one of theirs.
    #[must_use]
    pub fn covers(&self, url: &Url) -> bool {
        let address: Option<IpAddr> = match url.host() {
            Some(Host::Ipv4(address)) => Some(address.into()),
            Some(Host::Ipv6(address)) => Some(address.into()),
            Some(Host::Domain(_)) | None => None,
        };
        let is_inside = address.is_some_and(|it| self.nets.iter().any(|net| net.contains(&it)));
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        is_inside || self.hosts.iter().any(|it| it == host || it == bare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_ones_own_by_its_address_or_where_it_is_named() {
        let own = Own {
            nets: vec!["127.0.0.0/8".parse().unwrap()],
            hosts: vec!["mcp.example".into(), "::1".into()],
        };
        let covers = |url: &str| own.covers(&Url::parse(url).unwrap());
        assert!(covers("http://127.0.0.9:81/mcp"));
        assert!(covers("https://MCP.example/x"));
        assert!(covers("http://[::1]:7000/"));
        for strange in [
            "https://a.mcp.example/",
            "http://localhost/",
            "http://10.0.0.1/",
        ] {
            assert!(!covers(strange), "{strange}");
        }
    }
}
