//! What was exchanged with one endpoint, as much of it as a page has room for. The evidence file has all of it.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Serialize, Serializer};

use crate::coding;
use crate::exchange::{Answer, BodyEnd, Exchange, Leg, Reply, Request};
use crate::story;
use crate::unseen;
use crate::wrap::end_of;

/// How much of a row's exchanges is told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    exchanges: usize,
    /// The requests are told in full, beside the command that sends the first of them again.
    requests: bool,
    /// Of an answer.
    headers: usize,
    /// Of a header's value, in characters.
    value: usize,
    /// Of all bodies of the row together, in characters.
    body: usize,
}

/// From what a row is given to what it is left where a page would grow too large.
pub(super) const LADDER: [Bounds; 4] = [
    Bounds {
        exchanges: 6,
        requests: true,
        headers: 24,
        value: 200,
        body: 2048,
    },
    Bounds {
        exchanges: 6,
        requests: true,
        headers: 16,
        value: 120,
        body: 512,
    },
    Bounds {
        exchanges: 4,
        requests: true,
        headers: 12,
        value: 80,
        body: 128,
    },
    Bounds {
        exchanges: 2,
        requests: true,
        headers: 4,
        value: 40,
        body: 0,
    },
];

/// What the row of a server that works is given in a page of thousands: enough to see what it answered with.
pub(super) const IN_BRIEF: Bounds = Bounds {
    exchanges: 1,
    requests: false,
    headers: 4,
    value: 40,
    body: 300,
};

/// What is told of some rows that are packed together.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Chunk {
    /// A request of each kind, for the command that sends it again: what stands there before and after the address.
    #[serde(rename = "commands", serialize_with = "commands")]
    requests: Vec<Request>,
    stories: Vec<Told>,
}

fn commands<S: Serializer>(requests: &[Request], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(requests.iter().map(story::around_address))
}

impl Chunk {
    /// Tells of a row as much as the bounds let through.
    pub(super) fn add(&mut self, exchanges: &[Exchange], given: Bounds) {
        let mut told = Told {
            command: exchanges.first().map(|it| self.command(&it.request)),
            exchanges: Vec::new(),
            more: 0,
            given,
        };
        told.take(exchanges);
        self.stories.push(told);
    }

    /// A command that sends a request again: which one, and for what address.
    fn command(&mut self, request: &Request) -> (usize, String) {
        let alike = |it: &Request| {
            it.method == request.method && it.body == request.body && it.headers == request.headers
        };
        let number = self.requests.iter().position(alike).unwrap_or_else(|| {
            self.requests.push(request.clone());
            self.requests.len() - 1
        });
        (number, story::quoted(&request.url))
    }

    /// Adds what was exchanged from another vantage with the endpoint of the last row.
    pub(super) fn add_elsewhere(&mut self, vantage: &str, exchanges: &[Exchange]) {
        if let Some(told) = self.stories.last_mut() {
            told.add_from(vantage, exchanges);
        }
    }

    /// How many rows it tells of.
    pub(super) fn len(&self) -> usize {
        self.stories.len()
    }

    /// What of it closer bounds let through.
    pub(super) fn within(&self, bounds: Bounds) -> Self {
        Self {
            requests: self.requests.clone(),
            stories: self.stories.iter().map(|it| it.within(bounds)).collect(),
        }
    }
}

/// A row's exchanges.
#[derive(Debug, Clone, Serialize)]
struct Told {
    /// The command that sends the first request again, and the address in it; none where nothing was sent.
    command: Option<(usize, String)>,
    exchanges: Vec<Sent>,
    /// Exchanges that are not told.
    more: usize,
    /// What the row is given.
    #[serde(skip)]
    given: Bounds,
}

/// One exchange.
#[derive(Debug, Clone, Serialize)]
struct Sent {
    /// What it was for; the page has words for each.
    leg: Leg,
    attempt: u32,
    at: String,
    /// Where the command is not all that is told of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Said>,
    reply: Said,
    timing: String,
}

/// A message: its first line, its headers, its body, and what is to be said of it.
#[derive(Debug, Clone, Serialize)]
struct Said {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
    note: String,
}

impl Told {
    /// Adds what was exchanged from another vantage, as far as there is room.
    fn add_from(&mut self, vantage: &str, exchanges: &[Exchange]) {
        let before = self.exchanges.len();
        self.take(exchanges);
        for it in &mut self.exchanges[before..] {
            it.timing = format!("Asked from {}", visible(vantage));
        }
    }

    /// Takes in as many of these exchanges, and as much of each, as there is room for.
    fn take(&mut self, exchanges: &[Exchange]) {
        let room = self.given.exchanges.saturating_sub(self.exchanges.len());
        self.more += exchanges.len().saturating_sub(room);
        let length = |told: &Sent| told.reply.body.chars().count();
        let before: usize = self.exchanges.iter().map(length).sum();
        let mut left = Bounds {
            body: self.given.body.saturating_sub(before),
            ..self.given
        };
        for exchange in exchanges.iter().take(room) {
            let told = sent(exchange, left);
            left.body = left.body.saturating_sub(length(&told));
            self.exchanges.push(told);
        }
    }

    fn within(&self, bounds: Bounds) -> Self {
        let mut told = self.clone();
        told.more += told.exchanges.len().saturating_sub(bounds.exchanges);
        told.exchanges.truncate(bounds.exchanges);
        let mut room = bounds.body;
        for said in told.exchanges.iter_mut().map(|it| &mut it.reply) {
            if said.headers.len() > bounds.headers {
                let more = said.headers.len() - bounds.headers;
                said.headers.truncate(bounds.headers);
                add(&mut said.note, &further(more));
            }
            cut_pairs(&mut said.headers, bounds.value);
            let length = said.body.len();
            if cut(&mut said.body, room) {
                add(&mut said.note, &cut_from(length));
            }
            room -= said.body.chars().count().min(room);
        }
        told
    }
}

/// What is said of a body of so many bytes that is not told in full.
fn cut_from(length: usize) -> String {
    format!("cut: {length} bytes here, more in evidence.ndjson")
}

/// What is said of so many headers that are not told.
fn further(more: usize) -> String {
    format!("{more} further headers")
}

fn sent(exchange: &Exchange, given: Bounds) -> Sent {
    let timing = &exchange.timing;
    let mut times = String::new();
    for (name, ms) in [
        ("dns", timing.dns_ms),
        ("connect", timing.connect_ms),
        ("tls", timing.tls_ms),
        ("first byte", timing.first_byte_ms),
        ("total", timing.total_ms),
    ] {
        if let Some(ms) = ms {
            let _ = write!(times, "{name} {} ms, ", tenths(ms));
        }
    }
    if let Some(peer) = exchange.connection.peer {
        let _ = write!(times, "from {peer}");
    }
    Sent {
        leg: exchange.leg,
        attempt: u32::from(exchange.attempt) + 1,
        at: exchange.started_at.to_string(),
        request: given.requests.then(|| asked(&exchange.request)),
        reply: match &exchange.reply {
            Reply::Answer(answer) => came(answer, given),
            Reply::Fault(fault) => Said {
                line: String::new(),
                headers: Vec::new(),
                body: String::new(),
                note: story::words(*fault),
            },
        },
        timing: times.trim_end_matches(", ").to_owned(),
    }
}

/// A time to a tenth.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time is far below 2^63 tenths, and below nothing only where the file says so"
)]
fn tenths(ms: f64) -> String {
    let tenths = (ms * 10.0).round() as u64;
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn asked(request: &Request) -> Said {
    Said {
        line: visible(&format!("{} {}", request.method, request.url)),
        headers: pairs(&request.headers),
        body: visible_lines(&request.body),
        note: String::new(),
    }
}

fn came(answer: &Answer, given: Bounds) -> Said {
    let label = answer
        .all("content-encoding")
        .collect::<Vec<_>>()
        .join(", ");
    let body = coding::decode(&label, &answer.body.0, false).bytes;
    // Four bytes is the most that a character takes; one character more shows that there was more.
    let most = (given.body + 1) * 4;
    let start = &body[..body.len().min(most)];
    // What is text throughout is found to be so many times faster than by the lossy reading.
    let text =
        std::str::from_utf8(start).map_or_else(|_| String::from_utf8_lossy(start), Cow::Borrowed);
    let text = text.trim_end();
    let end = end_of(text, given.body + 1).unwrap_or(text.len());
    let mut shown = visible_lines(&text[..end]);
    let (headers, more) = answer
        .headers
        .split_at(answer.headers.len().min(given.headers));
    let mut headers = pairs(headers);
    cut_pairs(&mut headers, given.value);
    let mut note = String::new();
    if !more.is_empty() {
        add(&mut note, &further(more.len()));
    }
    if cut(&mut shown, given.body) {
        add(&mut note, &cut_from(body.len()));
    }
    match answer.end {
        BodyEnd::Complete => {}
        BodyEnd::Left => add(&mut note, "we left: what we came for had arrived"),
        BodyEnd::Page => add(&mut note, "we left: it is a web page"),
        BodyEnd::OverLimit => add(&mut note, "we left: it is larger than we read"),
        BodyEnd::Broken(fault) => add(&mut note, &story::words(fault)),
    }
    Said {
        line: visible(&format!("{} {}", answer.version, answer.status)),
        headers,
        body: shown,
        note,
    }
}

fn pairs(headers: &[(String, String)]) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| (visible(name), visible(value)))
        .collect()
}

fn cut_pairs(headers: &mut [(String, String)], most: usize) {
    for (name, value) in headers {
        cut(name, most);
        cut(value, most);
    }
}

fn add(note: &mut String, said: &str) {
    if !note.is_empty() {
        note.push_str("; ");
    }
    note.push_str(said);
}

/// Cuts a text after so many characters; whether there was something to cut.
fn cut(text: &mut String, most: usize) -> bool {
    match end_of(text, most) {
        Some(end) => {
            text.truncate(end);
            text.push_str("...");
            true
        }
        None => false,
    }
}

/// A stranger's text with what would act or hide in it written out: `⟨U+202E⟩`.
pub(crate) fn visible(text: &str) -> String {
    shown(text, false)
}

/// The same, of several lines.
fn visible_lines(text: &str) -> String {
    if text.contains('\r') {
        shown(&text.replace("\r\n", "\n"), true)
    } else {
        shown(text, true)
    }
}

/// `lines`: what breaks lines and aligns them stays.
fn shown(text: &str, lines: bool) -> String {
    // Most texts have nothing to hide. To look at every byte is quicker than to stop at the first that may.
    let may_act = text.bytes().fold(false, |may, it| {
        may | !(matches!(it, b' '..=b'~') | (lines & matches!(it, b'\n' | b'\t')))
    });
    if !may_act {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for it in text.chars() {
        let stays = lines && matches!(it, '\n' | '\t');
        if (unseen::hides(it) || unseen::acts(it)) && !stays {
            let _ = write!(shown, "\u{27e8}U+{:04X}\u{27e9}", u32::from(it));
        } else {
            shown.push(it);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_in_brief_still_unfolds_to_what_was_said() {
        let exchange = Exchange {
            endpoint: 0,
            attempt: 0,
            leg: Leg::Initialize,
            started_at: "2026-11-30T12:00:00Z".parse().unwrap(),
            request: crate::exchange::Request {
                method: "POST".into(),
                url: "https://a.example/mcp".into(),
                headers: Vec::new(),
                body: "{}".into(),
            },
            reply: Reply::Answer(crate::exchange::Answer {
                version: "HTTP/1.1".into(),
                status: 200,
                headers: Vec::new(),
                body: crate::exchange::Body("x".repeat(1000).into_bytes()),
                end: crate::exchange::BodyEnd::Complete,
            }),
            timing: crate::exchange::Timing::default(),
            connection: crate::exchange::Connection::default(),
        };
        let mut chunk = Chunk::default();
        chunk.add(&[exchange.clone(), exchange.clone()], IN_BRIEF);
        chunk.add(&[exchange], IN_BRIEF);
        let told = &chunk.stories[0];
        assert_eq!((told.exchanges.len(), told.more), (1, 1));
        let reply = &told.exchanges[0].reply;
        assert!(reply.line.contains("200") && reply.body.starts_with("xxx"));
        assert!(reply.body.len() < 310 && reply.note.contains("1000"));
        let chunk = serde_json::to_value(&chunk).unwrap();
        let [before, after] = [0, 1].map(|it| chunk["commands"][0][it].as_str().unwrap());
        assert!(
            before.contains("POST") && after.contains("{}"),
            "what was sent is in the command"
        );
        assert_eq!(
            chunk["commands"].as_array().unwrap().len(),
            1,
            "which both rows share"
        );
    }

    #[test]
    fn what_would_hide_is_written_out() {
        assert_eq!(
            visible("a\u{202e}b\x1b[2J\n"),
            "a⟨U+202E⟩b⟨U+001B⟩[2J⟨U+000A⟩"
        );
        assert_eq!(visible_lines("a\r\n\tb\0"), "a\n\tb⟨U+0000⟩");
    }

    #[test]
    fn a_cut_falls_between_characters() {
        let mut text = "äöü".to_owned();
        assert!(cut(&mut text, 2));
        assert_eq!(text, "äö...");
        assert!(!cut(&mut "äö".to_owned(), 2));
    }
}
