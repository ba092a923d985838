//! One endpoint's exchanges -> the whole story of it on a screen: what was sent, what came back, what was
//! concluded, and a `curl` line to see it for oneself. Pure text; whatever a server said is inert in it.

mod checks;

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::catalogue::Checked;
use crate::coding;
use crate::exchange::{Answer, BodyEnd, Exchange, Fault, Leg, Reply, Request, Timing};
use crate::explain;
use crate::finding::{Check, Finding};
use crate::row::Row;
use crate::unseen;
use crate::wrap::{end_of, wrap};

pub use checks::change_first;

/// How wide a story is, in columns.
const WIDTH: usize = 80;

/// How much of the body that decided is shown, in characters.
const BODY_SHOWN: usize = 1200;

/// How much of any other body is shown, in characters.
const OTHER_BODY_SHOWN: usize = 240;

/// How much of a header's value is shown, in characters.
const VALUE_SHOWN: usize = 160;

/// Everything there is to tell of one endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Its line of the results.
    pub row: &'a Row,
    /// What was exchanged with it, in order, secrets taken out.
    pub exchanges: &'a [Exchange],
    /// Which of them decided, where one did.
    pub decided_by: Option<usize>,
    /// What was noticed beside the outcome.
    pub findings: &'a [Finding],
    /// What became of the checks; empty where nothing was measured.
    pub checked: &'a [Checked],
}

/// Tells the story.
#[must_use]
pub fn story(known: &Known<'_>) -> String {
    let mut out = String::new();
    for (number, exchange) in known.exchanges.iter().enumerate() {
        let shown = if known.decided_by == Some(number) {
            BODY_SHOWN
        } else {
            OTHER_BODY_SHOWN
        };
        told(
            &mut out,
            number,
            exchange,
            &known.exchanges[..number],
            shown,
        );
    }
    if known.exchanges.len() > 1 {
        out.push_str("Headers that were said before in the same words are left out.\n\n");
    }
    concluded(&mut out, known);
    out.push_str(&checks::told(known.checked));
    let change = change_first(known.row, known.checked);
    let _ = writeln!(out, "\n{}", labelled("change", &inert(&change)));
    if let Some(request) = reproduced(known) {
        let _ = writeln!(out, "\n{}", curl(request));
    }
    out
}

/// The story for programs: the row, what decided, every exchange and every check.
#[must_use]
pub fn json(known: &Known<'_>) -> Value {
    json!({
        "row": known.row,
        "findings": known.findings,
        "decided_by": known.decided_by,
        "rule": explain::rule(known.row.outcome),
        "checks": known.checked.iter().map(checks::json).collect::<Vec<_>>(),
        "change_first": change_first(known.row, known.checked),
        "curl": reproduced(known).map(curl),
        "exchanges": known.exchanges,
    })
}

/// What was concluded, and by which rule.
fn concluded(out: &mut String, known: &Known<'_>) {
    let row = known.row;
    let endpoint = row.endpoint.as_deref().unwrap_or(&row.url);
    let _ = writeln!(out, "{}", inert(endpoint));
    let detail = explain::detail(row.outcome, &row.detail);
    let said = format!("{} {}", row.outcome.about(), detail);
    let outcome = format!("{} ({}): {said}", row.outcome, inert(&row.detail));
    let by = known
        .decided_by
        .map(|it| format!(" Decided by exchange {}.", it + 1))
        .unwrap_or_default();
    let rule = format!("{}{by}", explain::rule(row.outcome));
    let verdict = format!("{}: {}", row.verdict, row.verdict.about());
    let mut lines = vec![("outcome", outcome), ("rule", rule), ("verdict", verdict)];
    if let Some(hint) = row.hint {
        lines.push(("hint", format!("{hint}: {}", hint.about())));
    }
    lines.push(("era", format!("{}: {}", row.era, row.era.about())));
    let server: Vec<&str> = (row.server_name.iter())
        .chain(&row.server_version)
        .map(String::as_str)
        .collect();
    if let Some(version) = &row.protocol_version {
        lines.push(("version", inert(version)));
    }
    if !server.is_empty() {
        lines.push(("server", inert(&server.join(" "))));
    }
    for finding in known.findings {
        let about = Check::about(finding.check);
        lines.push(("finding", inert(&format!("{finding}: {about}"))));
    }
    for (label, text) in lines {
        let _ = writeln!(out, "{}", labelled(label, &text));
    }
}

/// A label and a paragraph beside it.
fn labelled(label: &str, text: &str) -> String {
    const COLUMN: usize = 10;
    let text = wrap(text, WIDTH, &" ".repeat(COLUMN));
    format!("{label:<COLUMN$}{}", text.get(COLUMN..).unwrap_or_default())
}

/// The request that shows the outcome again. A message to an older transport's endpoint needs its stream.
fn reproduced<'a>(known: &Known<'a>) -> Option<&'a Request> {
    let decided = known.decided_by.and_then(|it| known.exchanges.get(it));
    let whole = decided.filter(|it| it.leg != Leg::SseMessage);
    whole.or(known.exchanges.first()).map(|it| &it.request)
}

/// One exchange. Headers that those before it had are not said again.
fn told(out: &mut String, number: usize, exchange: &Exchange, before: &[Exchange], shown: usize) {
    let again = match exchange.attempt {
        0 => String::new(),
        more => format!(" Attempt {}.", more + 1),
    };
    let head = format!("{}. {}{again}", number + 1, exchange.leg.about());
    let _ = writeln!(out, "{}", wrap(&head, WIDTH, ""));
    let request = &exchange.request;
    line(out, '>', &format!("{} {}", request.method, request.url));
    for header in &request.headers {
        if !before.iter().any(|it| it.request.headers.contains(header)) {
            line(out, '>', &format!("{}: {}", header.0, header.1));
        }
    }
    if !request.body.is_empty() {
        line(out, '>', &cut(&request.body, shown));
    }
    match &exchange.reply {
        Reply::Answer(answer) => came(out, answer, before, shown),
        Reply::Fault(fault) => line(out, '<', &words(*fault)),
    }
    let peer = exchange
        .connection
        .peer
        .map(|peer| format!("; {peer}"))
        .unwrap_or_default();
    let shared = if exchange.connection.shared {
        "; asked for another endpoint of the run"
    } else {
        ""
    };
    let _ = writeln!(out, "  {}{peer}{shared}\n", phases(exchange.timing));
}

/// How long each phase took, where it happened.
fn phases(timing: Timing) -> String {
    let phases = [
        ("dns", timing.dns_ms),
        ("connect", timing.connect_ms),
        ("tls", timing.tls_ms),
        ("first byte", timing.first_byte_ms),
        ("total", timing.total_ms),
    ];
    let took: Vec<String> = phases
        .iter()
        .filter_map(|(name, ms)| ms.map(|ms| format!("{name} {ms:.1} ms")))
        .collect();
    took.join(", ")
}

/// A line of a message, broken where the screen ends.
fn line(out: &mut String, mark: char, text: &str) {
    let text: Vec<char> = inert(text).chars().collect();
    let mut lead = format!("  {mark} ");
    for piece in text.chunks(WIDTH - 6) {
        let piece: String = piece.iter().collect();
        let _ = writeln!(out, "{lead}{}", piece.trim_end());
        lead = format!("  {mark}   ");
    }
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
    let [before, after] = around_address(request);
    [before, quoted(&request.url), after].concat()
}

/// What stands in that command before the address and after it: the same for every request that differs in that alone.
pub(crate) fn around_address(request: &Request) -> [String; 2] {
    let before = format!("curl -i -X {} ", request.method);
    let mut after = String::new();
    for (name, value) in &request.headers {
        after.push_str(" \\\n  -H ");
        after.push_str(&quoted(&format!("{name}: {value}")));
    }
    if !request.body.is_empty() {
        after.push_str(" \\\n  --data-raw ");
        after.push_str(&quoted(&request.body));
    }
    [before, after]
}

/// A word of a POSIX shell, whatever is in it.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn came(out: &mut String, answer: &Answer, before: &[Exchange], shown: usize) {
    line(out, '<', &format!("{} {}", answer.version, answer.status));
    let said = |header| {
        let mut answers = before.iter().filter_map(Exchange::answer);
        answers.any(|it| it.headers.contains(header))
    };
    for header in answer.headers.iter().filter(|it| !said(it)) {
        line(
            out,
            '<',
            &format!("{}: {}", header.0, cut(&header.1, VALUE_SHOWN)),
        );
    }
    let label = answer
        .all("content-encoding")
        .collect::<Vec<_>>()
        .join(", ");
    let body = coding::decode(&label, &answer.body.0, false).bytes;
    let text = String::from_utf8_lossy(&body);
    for said in cut(text.trim_end(), shown).lines() {
        line(out, '<', said);
    }
    match answer.end {
        BodyEnd::Complete => {}
        BodyEnd::Left => line(out, '<', "(we left: what we came for had arrived)"),
        BodyEnd::Page => line(out, '<', "(we left: it is a web page)"),
        BodyEnd::OverLimit => line(out, '<', "(we left: it is larger than we read)"),
        BodyEnd::Broken(fault) => line(out, '<', &format!("({})", words(fault))),
    }
}

fn cut(text: &str, most: usize) -> String {
    match end_of(text, most) {
        Some(end) => format!("{}... ({} bytes in all)", &text[..end], text.len()),
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
