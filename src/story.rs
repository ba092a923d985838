//! One endpoint's exchanges -> the whole story of it on a screen: what was sent, what came back, what was
//! concluded, and a `curl` line to see it for oneself. Pure text; whatever a server said is inert in it.

use std::fmt::Write as _;

use crate::coding;
use crate::exchange::{Answer, BodyEnd, Exchange, Fault, Reply, Request};
use crate::finding::{Check, Finding};
use crate::row::Row;
use crate::unseen;

/// How much of a body is shown, in characters.
const BODY_SHOWN: usize = 1200;

/// How much of a header's value is shown, in characters.
const VALUE_SHOWN: usize = 160;

/// Tells the story.
#[must_use]
pub fn story(row: &Row, exchanges: &[Exchange], findings: &[Finding]) -> String {
    let mut out = String::new();
    for (number, exchange) in exchanges.iter().enumerate() {
        let _ = writeln!(
            out,
            "{}. {} (attempt {})",
            number + 1,
            exchange.leg.about(),
            exchange.attempt + 1
        );
        sent(&mut out, &exchange.request);
        match &exchange.reply {
            Reply::Answer(answer) => came(&mut out, answer),
            Reply::Fault(fault) => {
                let _ = writeln!(out, "   < {}", words(*fault));
            }
        }
        let timing = [
            ("dns", exchange.timing.dns_ms),
            ("connect", exchange.timing.connect_ms),
            ("tls", exchange.timing.tls_ms),
            ("first byte", exchange.timing.first_byte_ms),
            ("total", exchange.timing.total_ms),
        ];
        let timing: Vec<String> = timing
            .iter()
            .filter_map(|(name, ms)| ms.map(|ms| format!("{name} {ms:.1} ms")))
            .collect();
        let peer = exchange
            .connection
            .peer
            .map(|peer| format!(" from {peer}"))
            .unwrap_or_default();
        let _ = writeln!(out, "   {}{peer}\n", timing.join(", "));
    }
    let _ = writeln!(
        out,
        "{}",
        inert(row.endpoint.as_deref().unwrap_or(&row.url))
    );
    let _ = writeln!(
        out,
        "outcome   {} ({}): {}",
        row.outcome,
        inert(&row.detail),
        row.outcome.about()
    );
    let _ = writeln!(out, "verdict   {}: {}", row.verdict, row.verdict.about());
    if let Some(hint) = row.hint {
        let _ = writeln!(out, "hint      {hint}: {}", hint.about());
    }
    let _ = writeln!(out, "era       {}: {}", row.era, row.era.about());
    for (name, value) in [
        ("version", &row.protocol_version),
        ("server", &row.server_name),
    ] {
        if let Some(value) = value {
            let _ = writeln!(out, "{name:<9} {}", inert(value));
        }
    }
    for finding in findings {
        let about = finding
            .about
            .as_deref()
            .map(|about| format!(" [{}]", inert(about)))
            .unwrap_or_default();
        let _ = writeln!(
            out,
            "finding   {}{about}: {}",
            finding.check,
            Check::about(finding.check)
        );
    }
    if let Some(exchange) = exchanges.first() {
        let _ = writeln!(out, "\n{}", curl(&exchange.request));
    }
    out
}

/// What a fault is, in words.
#[must_use]
pub fn words(fault: Fault) -> String {
    match fault {
        Fault::Dns(it) => it.about().to_owned(),
        Fault::PrivateAddress(address) => {
            format!("{address} is not a public address; --allow-net opens a range")
        }
        Fault::Excluded => "On the exclusion list: nothing was sent.".to_owned(),
        Fault::Connect(it) => it.about().to_owned(),
        Fault::Tls(it) => it.about().to_owned(),
        Fault::Deadline(stage) => {
            format!("The deadline passed while we waited for: {}", stage.about())
        }
        Fault::Dropped(it) => it.about().to_owned(),
        Fault::Local(it) => it.about().to_owned(),
    }
}

/// A command that sends the same request.
#[must_use]
pub fn curl(request: &Request) -> String {
    let mut line = format!("curl -i -X {} {}", request.method, quoted(&request.url));
    for (name, value) in &request.headers {
        let _ = write!(line, " \\\n  -H {}", quoted(&format!("{name}: {value}")));
    }
    if !request.body.is_empty() {
        let _ = write!(line, " \\\n  --data-raw {}", quoted(&request.body));
    }
    line
}

/// A word of a POSIX shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn sent(out: &mut String, request: &Request) {
    let _ = writeln!(out, "   > {} {}", request.method, inert(&request.url));
    for (name, value) in &request.headers {
        let _ = writeln!(out, "   > {name}: {}", inert(value));
    }
    if !request.body.is_empty() {
        let _ = writeln!(out, "   > {}", inert(&request.body));
    }
}

fn came(out: &mut String, answer: &Answer) {
    let _ = writeln!(out, "   < {} {}", answer.version, answer.status);
    for (name, value) in &answer.headers {
        let _ = writeln!(out, "   < {name}: {}", cut(&inert(value), VALUE_SHOWN));
    }
    let label = answer
        .all("content-encoding")
        .collect::<Vec<_>>()
        .join(", ");
    let body = coding::decode(&label, &answer.body.0, false).bytes;
    let text = String::from_utf8_lossy(&body);
    for line in cut(text.trim_end(), BODY_SHOWN).lines() {
        let _ = writeln!(out, "   < {}", inert(line));
    }
    match answer.end {
        BodyEnd::Complete => {}
        BodyEnd::Left => out.push_str("   < (we left: what we came for had arrived)\n"),
        BodyEnd::Page => out.push_str("   < (we left: it is a web page)\n"),
        BodyEnd::OverLimit => out.push_str("   < (we left: it is larger than we read)\n"),
        BodyEnd::Broken(fault) => {
            let _ = writeln!(out, "   < ({})", words(fault));
        }
    }
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}... ({} bytes in all)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

/// Text that moves no cursor and reorders nothing.
fn inert(text: &str) -> String {
    text.chars()
        .map(|it| {
            if unseen::acts(it) || unseen::hides(it) {
                '\u{fffd}'
            } else {
                it
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{ASKED_VERSION, Identity};

    #[test]
    fn a_curl_line_survives_a_quote() {
        let url = url::Url::parse("https://a.example/it's?a=1&b=2").unwrap();
        let line = curl(&Identity { contact: None }.initialize(&url, ASKED_VERSION));
        assert!(line.starts_with("curl -i -X POST 'https://a.example/it'\\''s?a=1&b=2' \\\n  -H 'User-Agent: mcp-census/"), "{line}");
    }

    #[test]
    fn what_a_server_said_moves_no_cursor() {
        assert_eq!(inert("a\x1b[2Jb\u{202e}c"), "a\u{fffd}[2Jb\u{fffd}c");
    }
}
