//! Who asked to be left alone: hosts, each with its subdomains, and ranges of addresses. Files are read by `cli`;
//! what a name resolves to is held against it by `resolve`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;
use url::{Host, Url};

/// Hosts and addresses that are not asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exclusions {
    hosts: BTreeSet<String>,
    ranges: Vec<IpNet>,
}

/// A line that excludes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: {text:?} is no host and no range; write example.com, 192.0.2.7 or 2001:db8::/32"
)]
pub struct BadLine {
    line: usize,
    text: String,
}

impl Exclusions {
    /// Reads a text of one host, address or range a line; `#` starts a comment.
    ///
    /// # Errors
    /// At the first line that is none: whoever wrote it wanted something left alone.
    pub fn read(text: &str) -> Result<Self, BadLine> {
        let mut read = Self::default();
        for (number, line) in text.lines().enumerate() {
            let word = line.split('#').next().unwrap_or_default().trim();
            let word = word.trim_start_matches('\u{feff}');
            if !word.is_empty() && !read.add(word) {
                return Err(BadLine {
                    line: number + 1,
                    text: word.to_owned(),
                });
            }
        }
        Ok(read)
    }

    fn add(&mut self, word: &str) -> bool {
        let bare = word.trim_start_matches('[').trim_end_matches(']');
        let range = bare
            .parse::<IpNet>()
            .or_else(|_| bare.parse::<IpAddr>().map(IpNet::from));
        if let Ok(range) = range {
            self.ranges.push(range.trunc());
            return true;
        }
        let name = word
            .trim_start_matches("*.")
            .trim_start_matches('.')
            .trim_end_matches('.');
        match Host::parse(name) {
            Ok(Host::Domain(name)) => {
                self.hosts.insert(name);
                true
            }
            Ok(Host::Ipv4(address)) => {
                self.ranges.push(IpNet::from(IpAddr::from(address)));
                true
            }
            Ok(Host::Ipv6(_)) | Err(_) => false,
        }
    }

    /// Adds what another text says.
    pub fn extend(&mut self, other: Self) {
        self.hosts.extend(other.hosts);
        for range in other.ranges {
            if !self.ranges.contains(&range) {
                self.ranges.push(range);
            }
        }
    }

    /// The hosts and ranges, as a text has them: for the manifest, so that a resumed run keeps to them.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let ranges = self.ranges.iter().map(ToString::to_string);
        self.hosts.iter().cloned().chain(ranges).collect()
    }

    /// Whether the host of a URL asked to be left alone, by name or as the address it is.
    #[must_use]
    pub fn covers(&self, url: &Url) -> bool {
        match url.host() {
            Some(Host::Domain(name)) => self.covers_name(name),
            Some(Host::Ipv4(address)) => self.covers_address(address.into()),
            Some(Host::Ipv6(address)) => self.covers_address(address.into()),
            None => false,
        }
    }

    fn covers_name(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.');
        let parents = name.match_indices('.').map(|(at, _)| &name[at + 1..]);
        !self.hosts.is_empty()
            && std::iter::once(name)
                .chain(parents)
                .any(|it| self.hosts.contains(it))
    }

    /// Whether an address lies in a range that is to be left alone.
    #[must_use]
    pub fn covers_address(&self, address: IpAddr) -> bool {
        // `::ffff:192.0.2.7` leads to the same machine as 192.0.2.7.
        let address = address.to_canonical();
        self.ranges.iter().any(|range| range.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_covers_its_subdomains_and_a_range_its_addresses() {
        let text = "\u{feff}# left out\nExample.com # all of it\n*.b\u{fc}cher.example\n\n192.0.2.0/24\n198.51.100.7\n2001:db8::/32\n[2001:db9::1]\n";
        let excluded = Exclusions::read(text).unwrap();
        let covers = |url: &str| excluded.covers(&Url::parse(url).unwrap());
        for url in [
            "https://example.com/mcp",
            "https://a.b.example.com./mcp",
            "https://xn--bcher-kva.example/",
            "https://192.0.2.200/",
            "https://198.51.100.7:8443/",
            "https://[2001:db8:1::7]/",
            "https://[2001:db9::1]/",
            "https://[::ffff:192.0.2.1]/",
        ] {
            assert!(covers(url), "{url}");
        }
        for url in [
            "https://notexample.com/",
            "https://example.com.test/",
            "https://com/",
            "https://192.0.3.1/",
            "https://198.51.100.8/",
            "https://[2001:db9::2]/",
        ] {
            assert!(!covers(url), "{url}");
        }
        assert_eq!(
            Exclusions::read(&excluded.lines().join("\n")),
            Ok(excluded),
            "a resumed run keeps to them"
        );
    }

    #[test]
    fn a_line_that_excludes_nothing_is_an_error() {
        for (text, line) in [
            ("a.example\nnot a host", 2),
            ("192.0.2.0/33", 1),
            ("https://a.example/", 1),
        ] {
            assert_eq!(Exclusions::read(text).unwrap_err().line, line, "{text}");
        }
    }
}
