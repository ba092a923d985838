//! A URL -> its site: what one operator runs, and the parts of a list that keep sites whole.

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Public suffixes: the list's, with its private section, and any that the caller adds.
#[derive(Debug, Clone, Default)]
pub struct Suffixes {
    added: Vec<String>,
}

impl Suffixes {
    /// Adds a suffix under which every name is a site of its own.
    #[must_use]
    pub fn with(mut self, suffix: &str) -> Self {
        self.added.push(suffix.to_owned());
        self
    }

    /// The site of a URL: the registrable domain by the public suffix list with its private section,
    /// the address itself for a host that is one.
    #[must_use]
    pub fn site(&self, url: &Url) -> String {
        match url.host() {
            Some(Host::Domain(name)) => self.domain_site(name).to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => String::new(),
        }
    }

    fn domain_site<'a>(&self, name: &'a str) -> &'a str {
        for suffix in &self.added {
            if let Some(tenant) = name
                .strip_suffix(suffix.as_str())
                .and_then(|before| before.strip_suffix('.'))
            {
                let label = tenant.rfind('.').map_or(0, |dot| dot + 1);
                return &name[label..];
            }
        }
        // A name that is itself a public suffix has no registrable domain: it is its own site.
        psl::domain_str(name).unwrap_or(name)
    }
}

/// One part of a list, by site, so that a site's pace holds wherever its part is scanned. It is written `1/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// Which part, from 1.
    pub part: u64,
    /// Of how many.
    pub of: u64,
}

impl Shard {
    /// Whether a site belongs to this part. The same on every machine and in every release.
    #[must_use]
    pub fn holds(self, site: &str) -> bool {
        scatter(site, 0) % self.of == self.part - 1
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text
            .split_once('/')
            .and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match parts {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Self { part, of }),
            _ => Err("write it as 1/16, 2/16 and so on to 16/16".to_owned()),
        }
    }
}

/// FNV-1a: the same on every machine and in every release.
pub(crate) fn scatter(text: &str, seed: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ seed;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_what_one_operator_runs() {
        let site = |url: &str| {
            Suffixes::default()
                .with("demo.test")
                .site(&Url::parse(url).unwrap())
        };
        for (url, want) in [
            ("https://mcp.example.com/", "example.com"),
            ("https://a.b.example.co.uk/", "example.co.uk"),
            ("https://tenant.vercel.app/", "tenant.vercel.app"),
            ("https://x.tenant.workers.dev/", "tenant.workers.dev"),
            ("https://notes.mctx.ai/", "mctx.ai"),
            ("https://vercel.app/", "vercel.app"),
            ("https://127.0.0.1:8080/", "127.0.0.1"),
            ("https://[::1]/", "::1"),
            ("https://localhost/", "localhost"),
            ("https://mcp.acme.demo.test/", "acme.demo.test"),
        ] {
            assert_eq!(site(url), want, "{url}");
        }
    }

    #[test]
    fn the_parts_of_a_list_are_disjoint_and_cover_it() {
        for site in 0..500 {
            let site = format!("site-{site}.example");
            let held = (1..=16)
                .filter(|&part| Shard { part, of: 16 }.holds(&site))
                .count();
            assert_eq!(held, 1, "{site}");
        }
        assert!(
            ["0/4", "5/4", "1", "a/b", "1/0"]
                .iter()
                .all(|text| text.parse::<Shard>().is_err())
        );
        assert_eq!("3/4".parse(), Ok(Shard { part: 3, of: 4 }));
    }
}
