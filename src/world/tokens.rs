//! The tokens in a scripted text, `@@ID@@` and the like, and what they stand for. Pure.

/// What the tokens stand for, at the moment a text is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens<'a> {
    /// The request's id, as JSON.
    pub(super) id: &'a str,
    /// The protocol version that was asked for.
    pub(super) version: &'a str,
    /// The request's body.
    pub(super) request_body: &'a [u8],
    /// Scheme, host and port of the server.
    pub(super) base: &'a str,
    /// Those of its other address.
    pub(super) other_base: &'a str,
    /// Its host.
    pub(super) hostname: &'a str,
    /// A session that nobody else was given.
    pub(super) session: &'a str,
    /// The number that the path of a redirect chain carries.
    pub(super) hop: Option<u64>,
}

/// A repeated token makes no more than this many bytes.
const REPEAT_LIMIT: usize = 64 << 20;

/// The longest name between two `@@`.
const NAME_LIMIT: usize = 24;

impl Tokens<'_> {
    /// The text with its tokens filled; what is no token stays as it is.
    pub(super) fn fill(&self, text: &[u8]) -> Vec<u8> {
        let mut filled = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = find(rest, b"@@") {
            filled.extend_from_slice(&rest[..start]);
            let after = &rest[start + 2..];
            let window = &after[..after.len().min(NAME_LIMIT + 2)];
            let name = find(window, b"@@").and_then(|end| std::str::from_utf8(&window[..end]).ok());
            if let Some(name) = name
                && self.one(name, &mut filled)
            {
                rest = &after[name.len() + 2..];
            } else {
                filled.push(b'@');
                rest = &rest[start + 1..];
            }
        }
        filled.extend_from_slice(rest);
        filled
    }

    /// The same for text that is a string, a header's value say.
    pub(super) fn fill_str(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.fill(text.as_bytes())).into_owned()
    }

    /// Writes what a token stands for; false where there is no such token.
    fn one(&self, name: &str, to: &mut Vec<u8>) -> bool {
        if let Some((name, count)) = name.split_once(':') {
            let Ok(count) = count.parse::<usize>() else {
                return false;
            };
            let mut repeat = |byte| to.resize(to.len() + count.min(REPEAT_LIMIT), byte);
            match name {
                "PAD" => repeat(b'x'),
                "SPACES" => repeat(b' '),
                "NEST" => {
                    repeat(b'[');
                    repeat(b']');
                }
                _ => return false,
            }
            return true;
        }
        let next_hop;
        let value = match name {
            "ID" => self.id.as_bytes(),
            "PV" => self.version.as_bytes(),
            "REQUEST_BODY" => self.request_body,
            "BASE" => self.base.as_bytes(),
            "OTHER_BASE" => self.other_base.as_bytes(),
            "HOSTNAME" => self.hostname.as_bytes(),
            "LABEL" => self
                .hostname
                .split('.')
                .next()
                .unwrap_or_default()
                .as_bytes(),
            "SESSION" => self.session.as_bytes(),
            "N+1" => match self.hop {
                Some(hop) => {
                    next_hop = hop.saturating_add(1).to_string();
                    next_hop.as_bytes()
                }
                None => return false,
            },
            _ => return false,
        };
        to.extend_from_slice(value);
        true
    }
}

/// Fills `@@CL@@`: the length of what follows the last blank line.
pub(super) fn fill_length(text: &[u8]) -> Vec<u8> {
    const TOKEN: &[u8] = b"@@CL@@";
    let mut body = text;
    while let Some(end) = find(body, b"\r\n\r\n") {
        body = &body[end + 4..];
    }
    let length = body.len().to_string();
    let mut filled = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = find(rest, TOKEN) {
        filled.extend_from_slice(&rest[..start]);
        filled.extend_from_slice(length.as_bytes());
        rest = &rest[start + TOKEN.len()..];
    }
    filled.extend_from_slice(rest);
    filled
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|it| it == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: Tokens<'_> = Tokens {
        id: "7",
        version: "2025-11-25",
        request_body: b"{}",
        base: "http://a.demo.test:1",
        other_base: "http://a.demo.test:2",
        hostname: "a.demo.test",
        session: "s-1",
        hop: Some(4),
    };

    #[test]
    fn a_token_gives_what_it_stands_for_and_anything_else_stays() {
        for (text, filled) in [
            (
                r#"{"id":@@ID@@,"v":"@@PV@@"}"#,
                r#"{"id":7,"v":"2025-11-25"}"#,
            ),
            (
                "@@BASE@@/x @@OTHER_BASE@@/y",
                "http://a.demo.test:1/x http://a.demo.test:2/y",
            ),
            ("@@HOSTNAME@@ @@LABEL@@ @@SESSION@@", "a.demo.test a s-1"),
            ("@@REQUEST_BODY@@", "{}"),
            ("/hop/@@N+1@@", "/hop/5"),
            ("@@PAD:3@@@@SPACES:2@@.", "xxx  ."),
            ("@@NEST:2@@", "[[]]"),
            ("a@@b@@ID@@", "a@@b7"),
            ("@@@ID@@@", "@7@"),
            ("@@NOPE@@ @@PAD:x@@ @@", "@@NOPE@@ @@PAD:x@@ @@"),
            ("@@ID", "@@ID"),
            ("", ""),
        ] {
            assert_eq!(TOKENS.fill_str(text), filled, "{text}");
        }
        let no_hop = Tokens {
            hop: None,
            ..TOKENS
        };
        assert_eq!(no_hop.fill_str("@@N+1@@"), "@@N+1@@");
    }

    #[test]
    fn bytes_that_are_no_text_pass_through() {
        assert_eq!(TOKENS.fill(b"\xff@@ID@@\xed\xa0\x80"), b"\xff7\xed\xa0\x80");
    }

    #[test]
    fn the_length_is_that_of_what_follows_the_last_blank_line() {
        assert_eq!(
            fill_length(b"Length: @@CL@@\r\n\r\n12345"),
            b"Length: 5\r\n\r\n12345"
        );
    }
}
