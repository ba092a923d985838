//! Which addresses may be connected to: what is public, what was opened, and who asked to be left alone.

use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

use crate::exclude::Exclusions;

/// Names that stand for this machine or a private network (RFC 6761, RFC 6762, RFC 8375, ICANN's `.internal`).
#[must_use]
pub fn is_private_name(name: &str) -> bool {
    const PRIVATE: [&str; 6] = [
        "localhost",
        "localdomain",
        "local",
        "internal",
        "home.arpa",
        "lan",
    ];
    PRIVATE.iter().any(|suffix| {
        name.strip_suffix(suffix)
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// Whether an address can be reached over the public network (IANA special-purpose registries, RFC 6890).
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            !(v4.is_unspecified()
                || v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_documentation()
                || a == 0
                || a >= 240
                || (a == 100 && (64..128).contains(&b))
                || (a == 192 && b == 0 && c == 0)
                || (a == 192 && b == 88 && c == 99)
                || (a == 198 && (b == 18 || b == 19)))
        }
        IpAddr::V6(v6) => {
            if let Some(v4) = v6.to_ipv4_mapped() {
                return is_public(v4.into());
            }
            match v6.segments() {
                // NAT64 (RFC 6052) and 6to4 (RFC 3056) carry an IPv4 address.
                [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
                    let [a, b] = high.to_be_bytes();
                    let [c, d] = low.to_be_bytes();
                    is_public(IpAddr::from([a, b, c, d]))
                }
                [0x2001, second, ..] if second < 0x200 => false,
                [0x2001, 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
                // Global unicast is 2000::/3, and nothing else is (RFC 4291 §2.4).
                [first, ..] => (0x2000..0x4000).contains(&first),
            }
        }
    }
}

/// Which addresses may be connected to: public ones, and the ranges that were opened; and which hosts and
/// addresses asked to be left alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    opened: Vec<IpNet>,
    excluded: Exclusions,
}

impl AddressPolicy {
    /// A policy that opens these ranges beside the public addresses.
    #[must_use]
    pub fn opening(opened: Vec<IpNet>) -> Self {
        Self {
            opened,
            excluded: Exclusions::default(),
        }
    }

    /// The policy, with these left alone.
    #[must_use]
    pub fn excluding(self, excluded: Exclusions) -> Self {
        Self { excluded, ..self }
    }

    /// What asked to be left alone.
    #[must_use]
    pub const fn excluded(&self) -> &Exclusions {
        &self.excluded
    }

    /// Whether an address may be connected to.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        is_public(address) || self.opened.iter().any(|range| range.contains(&address))
    }

    /// Whether a URL is refused before any name is resolved: it has a literal address, or a name that stands
    /// for this machine or a private network.
    #[must_use]
    pub fn refuses(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Ipv4(address)) => !self.allows(address.into()),
            Some(Host::Ipv6(address)) => !self.allows(address.into()),
            Some(Host::Domain(name)) => is_private_name(name) && self.opened.is_empty(),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_unicast_is_public() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.2.1",
            "198.18.0.1",
            "203.0.113.5",
            "240.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:10.0.0.1",
            "2001:db8::1",
            "64:ff9b::a00:1",
            "2002:7f00:1::",
            "2001::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn private_names_are_known_by_their_last_labels() {
        for name in [
            "localhost",
            "a.localhost",
            "host.docker.internal",
            "printer.local",
            "nas.home.arpa",
        ] {
            assert!(is_private_name(name), "{name}");
        }
        for name in [
            "localhost.example.com",
            "internal.example.com",
            "notlocal",
            "example.test",
        ] {
            assert!(!is_private_name(name), "{name}");
        }
    }
}
