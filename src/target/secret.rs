//! What may be a key in an address, kept out of what is written.

use url::Url;

use super::placeholder;

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
        return url.as_str().to_owned();
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
    // Neither a query nor a user: most addresses.
    if !raw.contains(['?', '@']) {
        return raw.trim().to_owned();
    }
    match Url::parse(raw.trim()) {
        Ok(url) if placeholder(raw).is_none() => {
            let shown = redacted(&url);
            if shown == url.as_str() {
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
