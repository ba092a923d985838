//! `robots.txt` (RFC 9309): what a site lets our program ask. Fetching it is `scan`'s affair.

use std::cmp::Ordering;

/// The name under which a site can speak to us.
pub const TOKEN: &str = env!("CARGO_PKG_NAME");

/// What is read of a file: the specification asks for 500 KiB (RFC 9309 §2.5).
const READ: usize = 512 << 10;

/// A rule: a pattern, and whether what it matches may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    is_allowed: bool,
    /// The pattern in its comparable form.
    pattern: Vec<u8>,
    /// As it was written.
    written: String,
}

/// The rules for us.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Reads a file: the groups that name us, or else those for everyone.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(READ)]);
        let (mut ours, mut everyones) = (Vec::new(), Vec::new());
        let (mut named_us, mut has_ours) = (false, false);
        let mut for_everyone = false;
        // The lines that name agents open a group, and the first rule ends them.
        let mut opening = false;
        for line in text
            .trim_start_matches('\u{feff}')
            .split(['\r', '\n'])
            .map(|line| line.split('#').next().unwrap_or_default())
        {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "user-agent" => {
                    if !opening {
                        (named_us, for_everyone) = (false, false);
                    }
                    opening = true;
                    if is_us(value) {
                        (named_us, has_ours) = (true, true);
                    }
                    for_everyone |= value == "*";
                }
                key @ ("allow" | "disallow") => {
                    opening = false;
                    // An empty rule says nothing.
                    if value.is_empty() {
                        continue;
                    }
                    let rule = Rule {
                        is_allowed: key == "allow",
                        pattern: comparable(value),
                        written: format!("{}: {value}", key[..1].to_ascii_uppercase() + &key[1..]),
                    };
                    if named_us {
                        ours.push(rule.clone());
                    }
                    if for_everyone {
                        everyones.push(rule);
                    }
                }
                _ => {}
            }
        }
        Self(if has_ours { ours } else { everyones })
    }

    /// The rule that forbids a path with its query; `None` where it may be asked. The longest match decides,
    /// and of two as long the one that allows (RFC 9309 §2.2.2).
    #[must_use]
    pub fn forbids(&self, path: &str) -> Option<&str> {
        if path == "/robots.txt" {
            return None;
        }
        let path = comparable(path);
        self.0
            .iter()
            .filter(|rule| matches(&rule.pattern, &path))
            .max_by(|a, b| match a.pattern.len().cmp(&b.pattern.len()) {
                Ordering::Equal => a.is_allowed.cmp(&b.is_allowed),
                longer => longer,
            })
            .filter(|rule| !rule.is_allowed)
            .map(|rule| rule.written.as_str())
    }
}

/// Whether a product token is ours. What a site writes after the name, such as a version, is no part of it.
fn is_us(agent: &str) -> bool {
    let end = agent
        .find(|it: char| !it.is_ascii_alphabetic() && it != '-' && it != '_')
        .unwrap_or(agent.len());
    agent[..end].eq_ignore_ascii_case(TOKEN)
}

/// A path in the form in which octets are compared: what needs no escape has none, and what needs one has it in
/// capitals (RFC 9309 §2.2.2).
fn comparable(path: &str) -> Vec<u8> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let escape = |out: &mut Vec<u8>, byte: u8| {
        out.extend([
            b'%',
            HEX[usize::from(byte >> 4)],
            HEX[usize::from(byte & 15)],
        ]);
    };
    let digit = |at: usize| {
        let it = char::from(*bytes.get(at)?).to_digit(16)?;
        u8::try_from(it).ok()
    };
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b'%'
            && let (Some(high), Some(low)) = (digit(at + 1), digit(at + 2))
        {
            let meant = high << 4 | low;
            if meant.is_ascii_alphanumeric() || b"-._~".contains(&meant) {
                out.push(meant);
            } else {
                escape(&mut out, meant);
            }
            at += 3;
            continue;
        }
        if byte.is_ascii() && byte > b' ' {
            out.push(byte);
        } else {
            escape(&mut out, byte);
        }
        at += 1;
    }
    out
}

/// Whether a pattern matches the start of a path: `*` stands for anything, and `$` at its end for the path's.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, is_anchored) = match pattern.split_last() {
        Some((b'$', before)) => (before, true),
        _ => (pattern, false),
    };
    let (mut at, mut met) = (0, 0);
    // Where the last star stands, and how far it has reached: there is never a need to go back further.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if at == pattern.len() && (!is_anchored || met == path.len()) {
            return true;
        }
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, met));
            at += 1;
        } else if met < path.len() && pattern.get(at) == Some(&path[met]) {
            at += 1;
            met += 1;
        } else if let Some((stands, reached)) = star.filter(|(_, reached)| *reached < path.len()) {
            star = Some((stands, reached + 1));
            at = stands + 1;
            met = reached + 1;
        } else {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, path: &str, forbidden_by: Option<&str>) {
        let rules = Rules::read(text.as_bytes());
        assert_eq!(rules.forbids(path), forbidden_by, "{text:?} {path}");
    }

    #[test]
    fn the_group_that_names_us_speaks_for_us_and_else_everyones() {
        let everyone = "User-agent: *\nDisallow: /\n";
        check(everyone, "/mcp", Some("Disallow: /"));
        check(everyone, "/robots.txt", None);
        check("", "/mcp", None);
        check("<html>no such file</html>", "/mcp", None);
        let ours = "User-agent: other\nUser-Agent: MCP-Census/1.0 # us\nDisallow: /private\n\nuser-agent: *\nDisallow: /\n";
        check(ours, "/mcp", None);
        check(ours, "/private/mcp", Some("Disallow: /private"));
        check(
            "User-agent: mcp-census\nAllow: /\nUser-agent: *\nDisallow: /",
            "/mcp",
            None,
        );
        check(
            "User-agent: mcp-census-two\nDisallow: /\nUser-agent: mcp-census\nDisallow:\n",
            "/mcp",
            None,
        );
        check(
            "User-agent: mcp-census\nDisallow: /a\nUser-agent: x\nDisallow: /b\nUser-agent: mcp-census\nDisallow: /c",
            "/c",
            Some("Disallow: /c"),
        );
    }

    #[test]
    fn the_longest_match_decides_and_of_two_the_one_that_allows() {
        let text = "User-agent: *\r\nDisallow: /\r\nAllow: /mcp\r\nDisallow: /mcp/admin\r\nDisallow: /same\r\nAllow: /same\r\n";
        check(text, "/mcp", None);
        check(text, "/mcp/admin/x", Some("Disallow: /mcp/admin"));
        check(text, "/same", None);
        check(text, "/other", Some("Disallow: /"));
    }

    #[test]
    fn stars_and_ends_are_understood_and_escapes_compared_by_what_they_mean() {
        for (pattern, path, is_match) in [
            ("/*/mcp$", "/a/b/mcp", true),
            ("/*/mcp$", "/a/mcp/x", false),
            ("/mcp$", "/mcp", true),
            ("/mcp$", "/mcp?x", false),
            ("*sse", "/a/sse", true),
            ("/a%3cd", "/a%3Cd", true),
            ("/a/%62", "/a/b", true),
            ("/\u{e9}", "/%C3%A9", true),
            ("/a*b*c", "/axxbyyc", true),
            ("/a*b*c", "/axxcyy", false),
            ("/mcp?key=", "/mcp?key=1", true),
            ("/*$", "/x", true),
        ] {
            assert_eq!(
                matches(&comparable(pattern), &comparable(path)),
                is_match,
                "{pattern} {path}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_file_is_read(bytes in proptest::collection::vec(0u8.., 0..200), path in "/[*$a%/]{0,20}") {
            let _ = Rules::read(&bytes).forbids(&path);
            let text = format!("user-agent:*\ndisallow:{path}");
            let _ = Rules::read(text.as_bytes()).forbids(&path);
        }
    }
}
