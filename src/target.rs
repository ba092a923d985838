//! A listed address -> an endpoint that can be asked, or why it cannot: its identity. In its parts: whether
//! it may be connected to (`policy`), whose it is (`site`), and what of it is not written (`secret`).
//! Addresses that a name resolves to are `resolve`'s affair.

mod policy;
mod secret;
mod site;

use url::{Host, Url};

use crate::finding::{Check, Finding};
use crate::outcome::{Transport, Unprobeable};

pub use policy::{AddressPolicy, is_private_name, is_public};
pub use secret::{Secrets, redacted, redacted_raw};
pub(crate) use site::scatter;
pub use site::{Shard, Suffixes};

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
}
