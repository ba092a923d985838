//! A listed address -> an endpoint that can be asked, or why it cannot; its identity, its host, its site.
//! Addresses that a name resolves to are `resolve`'s affair.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::exclude::Exclusions;
use crate::finding::{Check, Finding};
use crate::outcome::{Transport, Unprobeable};

/// What will be asked: the identity of an endpoint is the request that would be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The endpoint's number in the frozen list.
    pub endpoint: u32,
    /// Scheme, lower-case IDNA host, port unless the default, path, query; no fragment.
    pub url: Url,
    /// The transport the list declares.
    pub declared: Option<Transport>,
}

/// An address that can be asked, and what was odd about its listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The address in its canonical form.
    pub url: Url,
    /// What was noticed about the listing.
    pub findings: Vec<Finding>,
}

/// Reads a listed address.
///
/// Placeholders are looked for in the raw text: a URL parser accepts `https://{host}/mcp`.
///
/// # Errors
/// When it names nothing that can be asked over the public network.
pub fn address(raw: &str) -> Result<Address, Unprobeable> {
    let text = raw.trim();
    if text.is_empty() {
        return Err(Unprobeable::Empty);
    }
    if placeholder(text).is_some() {
        return Err(Unprobeable::Template);
    }
    let mut url = Url::parse(text).map_err(|_| {
        if has_scheme(text) {
            Unprobeable::InvalidUrl
        } else {
            Unprobeable::Scheme
        }
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Unprobeable::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Unprobeable::Userinfo);
    }
    let mut findings = Vec::new();
    if text.len() != raw.len() {
        findings.push(Check::WhitespaceInUrl.into());
    }
    if url.fragment().is_some() {
        findings.push(Check::FragmentInUrl.into());
        url.set_fragment(None);
    }
    if let Some(Host::Domain(name)) = url.host()
        && name.ends_with('.')
    {
        let name = name.trim_end_matches('.').to_owned();
        url.set_host(Some(&name))
            .map_err(|_| Unprobeable::InvalidUrl)?;
    }
    if url.scheme() == "http" {
        findings.push(Check::PlainHttp.into());
    }
    Ok(Address { url, findings })
}

fn has_scheme(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it))
    })
}

/// The first placeholder left in a listed address: `{x}`, `${x}`, `%7Bx%7D`, `<your-x>`, `[YOUR_X]`, `YOUR_X`.
#[must_use]
pub fn placeholder(raw: &str) -> Option<&str> {
    let between = |open: &str, close: &str| {
        let start = raw.find(open)?;
        let end = raw[start..].find(close)? + start + close.len();
        Some(&raw[start..end])
    };
    let bracketed = || {
        let found = between("[", "]")?;
        // `[::1]` is an address.
        found[1..found.len() - 1]
            .parse::<std::net::Ipv6Addr>()
            .is_err()
            .then_some(found)
    };
    let percent = || between("%7B", "%7D").or_else(|| between("%7b", "%7d"));
    let shouted = || {
        let start = raw.find("YOUR_").or_else(|| raw.find("YOUR-"))?;
        let end = raw[start..]
            .find(|it: char| !it.is_ascii_alphanumeric() && it != '_' && it != '-')
            .map_or(raw.len(), |at| start + at);
        Some(&raw[start..end])
    };
    between("{", "}")
        .or_else(percent)
        .or_else(|| between("<", ">"))
        .or_else(bracketed)
        .or_else(shouted)
}

/// Every placeholder left in a listed address.
pub fn placeholders(raw: &str) -> impl Iterator<Item = &str> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let found = placeholder(rest)?;
        // One is longer than nothing, so the walk comes to an end.
        rest = &rest[rest.find(found)? + found.len()..];
        Some(found)
    })
}

/// Fills `{name}` from what the listing gives as defaults. What has no default stays as it is.
#[must_use]
pub fn fill<'a>(raw: &str, default: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut filled = String::new();
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((name, tail)) = after.split_once('}') else {
            filled.push('{');
            rest = after;
            continue;
        };
        if let Some(value) = default(name) {
            filled.push_str(value);
        } else {
            filled.push('{');
            filled.push_str(name);
            filled.push('}');
        }
        rest = tail;
    }
    filled + rest
}

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

/// The values in a target's query that may be keys, so that they can be kept out of what is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    pairs: Vec<(String, String)>,
}

/// What stands for a secret.
const REDACTED: &str = "REDACTED";

impl Secrets {
    /// The values of a URL's query.
    #[must_use]
    pub fn of(url: &Url) -> Self {
        let pairs = url.query().into_iter().flat_map(|query| query.split('&'));
        let pairs = pairs
            .filter_map(|pair| pair.split_once('='))
            .filter(|(_, value)| !value.is_empty());
        Self {
            pairs: pairs
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    /// These, and the values of headers that are sent beside our own. Of `Bearer x`, `x` is hidden wherever it stands.
    #[must_use]
    pub fn and_headers(mut self, headers: &[(String, String)]) -> Self {
        for (name, value) in headers {
            self.pairs.push((name.clone(), value.clone()));
            let words = value.split_whitespace().filter(|word| *word != value);
            // `Bearer`, `Basic` and `Token` are no secrets, and every challenge has them.
            self.pairs
                .extend(words.skip(1).map(|word| (name.clone(), word.to_owned())));
        }
        self
    }

    /// Whether there is nothing to hide.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The text without them. A value shorter than four characters is hidden only beside its key.
    #[must_use]
    pub fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (key, value) in &self.pairs {
            text = text.replace(&format!("{key}={value}"), &format!("{key}={REDACTED}"));
            if value.len() >= 4 {
                text = text.replace(value, REDACTED);
            }
        }
        text
    }

    /// A hidden URL as it was.
    #[must_use]
    pub fn restore(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (key, value) in &self.pairs {
            text = text.replace(&format!("{key}={REDACTED}"), &format!("{key}={value}"));
        }
        text
    }
}

/// A URL with whatever may be a secret taken out of it: the user, and every value of its query.
#[must_use]
pub fn redacted(url: &Url) -> String {
    if url.query().is_none() && url.username().is_empty() && url.password().is_none() {
        return url.to_string();
    }
    let mut shown = url.clone();
    if !url.username().is_empty() || url.password().is_some() {
        // Both only fail for a URL without a host, which has no user either.
        let _ = shown.set_username(REDACTED);
        let _ = shown.set_password(None);
    }
    if let Some(query) = url.query() {
        let kept: Vec<String> = query.split('&').map(redacted_pair).collect();
        shown.set_query(Some(&kept.join("&")));
    }
    shown.to_string()
}

fn redacted_pair(pair: &str) -> String {
    match pair.split_once('=') {
        Some((key, value)) if !value.is_empty() => format!("{key}={REDACTED}"),
        // A bare word may be the key itself.
        None if pair.len() > 16 => REDACTED.to_owned(),
        Some(_) | None => pair.to_owned(),
    }
}

/// What can be shown of a listed address that may not even be a URL.
#[must_use]
pub fn redacted_raw(raw: &str) -> String {
    match Url::parse(raw.trim()) {
        Ok(url) if placeholder(raw).is_none() => {
            let shown = redacted(&url);
            if shown == url.to_string() {
                raw.trim().to_owned()
            } else {
                shown
            }
        }
        _ => {
            let text = raw.trim();
            let (before, query) = text
                .split_once('?')
                .map_or((text, None), |(before, query)| (before, Some(query)));
            let before = match before.split_once("://") {
                Some((scheme, rest))
                    if rest
                        .split('/')
                        .next()
                        .is_some_and(|authority| authority.contains('@')) =>
                {
                    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
                    format!("{scheme}://{REDACTED}@{host}")
                }
                _ => before.to_owned(),
            };
            match query {
                Some(query) => {
                    let kept: Vec<String> = query
                        .split('&')
                        .map(|pair| {
                            if placeholder(pair).is_some() {
                                pair.to_owned()
                            } else {
                                redacted_pair(pair)
                            }
                        })
                        .collect();
                    format!("{before}?{}", kept.join("&"))
                }
                None => before,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn asks(raw: &str, url: &str, findings: &[&str]) {
        let address = address(raw).unwrap();
        let names: Vec<String> = address.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            (address.url.as_str(), names),
            (url, findings.iter().map(ToString::to_string).collect()),
            "{raw}"
        );
    }

    #[test]
    fn an_endpoint_is_the_request_that_would_be_sent() {
        asks(
            "HTTPS://MCP.Example.Test:443/mcp",
            "https://mcp.example.test/mcp",
            &[],
        );
        asks(
            " https://mcp.example.test/mcp\n",
            "https://mcp.example.test/mcp",
            &["whitespace_in_url"],
        );
        asks(
            "https://docs.example.test/guide#mcp",
            "https://docs.example.test/guide",
            &["fragment_in_url"],
        );
        asks(
            "http://mcp.example.test",
            "http://mcp.example.test/",
            &["plain_http"],
        );
        asks(
            "https://mcp.example.test./A/b/?Q=1",
            "https://mcp.example.test/A/b/?Q=1",
            &[],
        );
        asks(
            "https://bücher.example/mcp",
            "https://xn--bcher-kva.example/mcp",
            &[],
        );
        asks(
            "https://[2001:db8::1]/mcp",
            "https://[2001:db8::1]/mcp",
            &[],
        );
    }

    #[test]
    fn a_listing_that_names_nothing_to_ask_says_why() {
        for (raw, why) in [
            ("https://{tenant}.example.test/mcp", Unprobeable::Template),
            (
                "https://research.example.test/mcp?key={api_key}",
                Unprobeable::Template,
            ),
            ("{baseUrl}/mcp", Unprobeable::Template),
            ("https://${HOST}/mcp", Unprobeable::Template),
            ("https://a.example/%7Btoken%7D/mcp", Unprobeable::Template),
            ("https://<your-host>/mcp", Unprobeable::Template),
            (
                "https://a.example/mcp?key=[YOUR_KEY]",
                Unprobeable::Template,
            ),
            (
                "https://a.example/mcp?key=YOUR_API_KEY",
                Unprobeable::Template,
            ),
            (
                "https://user:secret@mcp.example.test/mcp",
                Unprobeable::Userinfo,
            ),
            ("wss://mcp.example.test/mcp", Unprobeable::Scheme),
            ("mcp.example.test/mcp", Unprobeable::Scheme),
            ("stdio", Unprobeable::Scheme),
            ("  ", Unprobeable::Empty),
            (
                "https://mcp.example.test:99999/mcp",
                Unprobeable::InvalidUrl,
            ),
            ("https://", Unprobeable::InvalidUrl),
        ] {
            assert_eq!(address(raw).map(|it| it.url), Err(why), "{raw}");
        }
    }

    #[test]
    fn a_template_is_filled_from_its_defaults() {
        let default = |name: &str| (name == "region").then_some("eu");
        assert_eq!(
            fill("https://{region}.example.test/{tenant}/mcp", default),
            "https://eu.example.test/{tenant}/mcp"
        );
        assert_eq!(fill("https://a/{open", default), "https://a/{open");
    }

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

    #[test]
    fn a_secret_is_hidden_wherever_it_comes_back_and_can_be_restored() {
        let secrets = Secrets::of(&Url::parse("https://a.example/mcp?key=s3cret&n=1").unwrap());
        let hidden = secrets.hide("go to https://a.example/mcp/?key=s3cret&n=1, s3cret");
        assert_eq!(
            hidden,
            "go to https://a.example/mcp/?key=REDACTED&n=REDACTED, REDACTED"
        );
        assert_eq!(
            secrets.restore("https://a.example/mcp/?key=REDACTED&n=REDACTED"),
            "https://a.example/mcp/?key=s3cret&n=1"
        );
    }

    #[test]
    fn secrets_do_not_leave_in_what_is_written() {
        let shown = |url: &str| redacted(&Url::parse(url).unwrap());
        assert_eq!(
            shown("https://a.example/mcp?key=s3cret&flag"),
            "https://a.example/mcp?key=REDACTED&flag"
        );
        assert_eq!(shown("https://a.example/mcp"), "https://a.example/mcp");
        assert_eq!(
            redacted_raw("https://user:s3cret@a.example/mcp"),
            "https://REDACTED@a.example/mcp"
        );
        assert_eq!(
            redacted_raw("ftp://user:s3cret@a b/mcp?key=s3cret"),
            "ftp://REDACTED@a b/mcp?key=REDACTED"
        );
        assert_eq!(
            redacted_raw("https://{h}/mcp?key={key}&t=s3cret"),
            "https://{h}/mcp?key={key}&t=REDACTED"
        );
    }
}
