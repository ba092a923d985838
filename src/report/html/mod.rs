//! A census as one page for a browser: its figures drawn, its tables, and every row with what was exchanged. Strings
//! in, a string out. The page asks nobody for anything; `page.js` shows what strangers' servers said as text only.

pub(super) mod chart;
mod figures;
mod line;
mod told;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::grid::grid;
use super::{bounds, caveats, headline};
use crate::exchange::{Exchange, Leg};
use crate::explain;
use crate::finding::Check;
use crate::outcome::{Era, Hint, Outcome, Verdict};
use crate::row::Row;
use crate::tally::{Summary, Table};
use told::{Chunk, IN_BRIEF, LADDER};

pub(crate) use chart::Tone;
pub(crate) use line::{Curve, Plot, Point};
pub(crate) use told::visible;

pub(super) const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Rows whose exchanges are packed together, and unpacked together when one of them is unfolded.
const CHUNK: usize = 100;

/// The same in a page of thousands, whose rows are brief.
const LARGE_CHUNK: usize = 400;

/// A page of more rows than these is brief about servers that work: nobody contests them, and a browser would be slow
/// to open everything.
const LARGE: u64 = 5000;

/// What the exchanges of a row may come to on average, packed, in bytes: 1,100 rows stay under 2 MB.
const ROOM: usize = 1400;

/// A page under way. It keeps its rows packed, so it grows with what the page will be.
#[derive(Debug)]
pub struct Page {
    /// Buffered: each write to an encoder costs it as much as a large one.
    rows: BufWriter<DeflateEncoder<Vec<u8>>>,
    count: usize,
    is_large: bool,
    pending: Chunk,
    packer: Packer,
    chunks: Vec<String>,
    /// What each outcome's details mean.
    details: BTreeMap<Outcome, BTreeMap<String, String>>,
}

/// The members of a row on the page, in order; `page.js` finds them by these names.
const MEMBERS: [&str; 26] = [
    "name",
    "address",
    "listed",
    "site",
    "verdict",
    "outcome",
    "detail",
    "hint",
    "http_status",
    "rpc_code",
    "rpc_message",
    "era",
    "declared_transport",
    "transport",
    "protocol_version",
    "server_name",
    "server_version",
    "auth_scheme",
    "content_type",
    "final_url",
    "attempts",
    "flaky",
    "requests",
    "total_ms",
    "findings",
    "started_at",
];

/// The members of a row, written one after the other: a page has thousands of rows.
struct Line(Vec<u8>);

impl Line {
    fn put(&mut self, member: &impl Serialize) {
        if !self.0.ends_with(b"[") {
            self.0.push(b',');
        }
        // Strings, numbers and lists of them: there is nothing that JSON cannot say.
        let _ = serde_json::to_writer(&mut self.0, member);
    }

    fn end(mut self) -> Vec<u8> {
        self.0.push(b']');
        self.0
    }
}

impl Page {
    /// A page for so many rows.
    #[must_use]
    pub fn of(rows: u64) -> Self {
        let is_large = rows > LARGE;
        Self {
            rows: BufWriter::with_capacity(
                64 << 10,
                DeflateEncoder::new(Vec::new(), level(is_large)),
            ),
            count: 0,
            is_large,
            pending: Chunk::default(),
            packer: Packer::of(level(is_large)),
            chunks: Vec::new(),
            details: BTreeMap::new(),
        }
    }

    /// Adds a row and what was exchanged with its endpoint.
    pub fn add(&mut self, row: &Row, exchanges: &[Exchange]) {
        let said = |text: &Option<String>| text.as_deref().map(visible);
        let address = row.endpoint.as_ref().unwrap_or(&row.url);
        let findings: Vec<String> = row
            .findings
            .split(';')
            .filter(|it| !it.is_empty())
            .map(visible)
            .collect();
        let detail = visible(&row.detail);
        let opening = if self.count == 0 { "[[" } else { ",\n[" };
        let mut line = Line(opening.into());
        line.put(&visible(&row.name));
        line.put(&visible(address));
        line.put(&(row.url != *address).then(|| visible(&row.url)));
        line.put(&said(&row.site));
        line.put(&row.verdict);
        line.put(&row.outcome);
        line.put(&detail);
        line.put(&row.hint);
        line.put(&row.http_status);
        line.put(&row.rpc_code);
        line.put(&said(&row.rpc_message));
        line.put(&row.era);
        line.put(&row.declared_transport);
        line.put(&row.transport);
        line.put(&said(&row.protocol_version));
        line.put(&said(&row.server_name));
        line.put(&said(&row.server_version));
        line.put(&said(&row.auth_scheme));
        line.put(&said(&row.content_type));
        line.put(&said(&row.final_url));
        line.put(&row.attempts);
        line.put(&row.flaky);
        line.put(&row.requests);
        line.put(&row.total_ms);
        line.put(&findings);
        line.put(&row.started_at);
        // Memory takes every byte.
        let _ = self.rows.write_all(&line.end());
        self.count += 1;
        self.details
            .entry(row.outcome)
            .or_default()
            .entry(detail)
            .or_insert_with(|| explain::detail(row.outcome, &row.detail));
        // Only now is it known that nothing is added to the row before.
        if self.pending.len() == self.chunk() {
            self.pack_pending();
        }
        let given = if self.is_large && row.verdict == Verdict::Working {
            IN_BRIEF
        } else {
            LADDER[0]
        };
        self.pending.add(exchanges, given);
    }

    fn chunk(&self) -> usize {
        if self.is_large { LARGE_CHUNK } else { CHUNK }
    }

    /// Adds what another vantage exchanged with the endpoint of the row that was added last.
    pub fn add_elsewhere(&mut self, vantage: &str, exchanges: &[Exchange]) {
        self.pending.add_elsewhere(vantage, exchanges);
    }

    fn pack_pending(&mut self) {
        let room = ROOM * self.pending.len();
        let mut packed = self.packer.pack(&self.pending);
        for bounds in &LADDER[1..] {
            if packed.len() <= room {
                break;
            }
            packed = self.packer.pack(&self.pending.within(*bounds));
        }
        self.chunks.push(packed);
        self.pending = Chunk::default();
    }

    /// The page, with the summary of the rows that were added, and how many measured ones each site has.
    #[must_use]
    pub fn finish(mut self, summary: &Summary, sites: impl Iterator<Item = u64>) -> String {
        if self.pending.len() > 0 {
            self.pack_pending();
        }
        let end: &[u8] = if self.count == 0 { b"[]" } else { b"]" };
        let _ = self.rows.write_all(end);
        let chunk = self.chunk();
        let rows = self
            .rows
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(DeflateEncoder::finish);
        let rows = STANDARD.encode(rows.unwrap_or_default());
        let meanings = Packer::of(Compression::default()).pack(&json!({
            "members": MEMBERS,
            "chunk": chunk,
            "verdict": meanings(Verdict::ALL, Verdict::name, Verdict::about),
            "outcome": meanings(Outcome::ALL, Outcome::name, Outcome::about),
            "hint": meanings(Hint::ALL, Hint::name, Hint::about),
            "era": meanings(Era::ALL, Era::name, Era::about),
            "check": meanings(Check::ALL, Check::name, Check::about),
            "leg": meanings(Leg::ALL, Leg::name, Leg::about),
            "detail": self.details,
        }));
        let mut out = head(summary);
        out.push_str(&figures::verdicts(summary));
        out.push_str(&figures::all(summary, sites.collect()));
        out.push_str(ROWS);
        out.push_str(&tables(summary));
        out.push_str("</main>\n<footer><p>Made by ");
        out.push_str(&escaped(&summary.facts.tool));
        out.push_str(
            " from what came over the wire. The whole of it is in <code>evidence.ndjson</code>, the rows in \
             <code>results.csv</code>.</p></footer>\n",
        );
        embed(&mut out, "packed-words", &meanings);
        embed(&mut out, "packed-rows", &rows);
        for (number, chunk) in self.chunks.iter().enumerate() {
            embed(&mut out, &format!("packed-told-{number}"), chunk);
        }
        out.push_str("<script>");
        out.push_str(SCRIPT);
        out.push_str("</script>\n</body>\n</html>\n");
        out
    }
}

/// One table as a fragment of HTML.
pub(super) fn table(table: &Table) -> String {
    let mut out = format!("<p class=\"basis\">{}.</p>\n", escaped(&table.basis()));
    if table.lines.is_empty() {
        out.push_str("<p>None.</p>\n");
    } else {
        let grid = grid(table);
        out.push_str("<div class=\"scroll\"><table><thead><tr>");
        let side = |right: bool| if right { " class=\"right\"" } else { "" };
        for column in &grid.columns {
            let _ = write!(
                out,
                "<th scope=\"col\"{}>{}</th>",
                side(column.right),
                escaped(&column.heading)
            );
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in &grid.rows {
            out.push_str("<tr>");
            for (cell, column) in row.iter().zip(&grid.columns) {
                let _ = write!(
                    out,
                    "<td{}><bdi>{}</bdi></td>",
                    side(column.right),
                    escaped(cell)
                );
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }
    if let Some(left_out) = &table.not_measured {
        let _ = writeln!(out, "<p class=\"basis\">{}</p>", escaped(&bounds(left_out)));
    }
    out
}

fn meanings<T: Copy>(
    all: &[T],
    name: impl Fn(T) -> &'static str,
    about: impl Fn(T) -> &'static str,
) -> BTreeMap<&'static str, &'static str> {
    all.iter().map(|&it| (name(it), about(it))).collect()
}

/// Everything before the figures. What may run and what may be shown is fixed here: the page's own, by hash.
fn head(summary: &Summary) -> String {
    let share = summary
        .share
        .map_or("none".to_owned(), |it| super::percent(it.fraction));
    let mut said = String::new();
    for caveat in caveats(summary) {
        let _ = writeln!(said, "<p class=\"caveat\">{}</p>", escaped(&caveat));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; \
         style-src 'sha256-{}'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>MCP census: {share} work</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#rows\">To the rows</a>\n<header>\n<h1>MCP census</h1>\n\
         <p class=\"headline\"><strong>{share}</strong> <span>{}</span></p>\n<p class=\"open\">{}</p>\n{said}</header>\n\
         <main>\n",
        hash(SCRIPT),
        hash(STYLE),
        escaped(&headline(summary)),
        escaped(&bounds(&summary.not_measured)),
    )
}

/// A page without a script, in the same style and with more of its own. `body` is HTML.
pub(crate) fn still(title: &str, style: &str, body: &str) -> String {
    let style = format!("{STYLE}{style}");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        hash(&style),
        escaped(title),
    )
}

pub(super) fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// What `page.js` fills.
const ROWS: &str = "<section id=\"rows\" aria-labelledby=\"rows-title\">\n<h2 id=\"rows-title\">Every row</h2>\n\
    <noscript><p>The rows are shown by a script; they are in <code>results.csv</code> too.</p></noscript>\n\
    <form id=\"filters\" hidden>\n\
    <label>Search <input type=\"search\" id=\"search\" placeholder=\"name, address, words of an answer\"></label>\n\
    <label>Verdict <select id=\"by-verdict\"></select></label>\n\
    <label>Outcome <select id=\"by-outcome\"></select></label>\n\
    <label>Finding <select id=\"by-finding\"></select></label>\n\
    <label>Site <input id=\"by-site\" list=\"sites\" placeholder=\"any\" autocomplete=\"off\"></label>\n\
    <datalist id=\"sites\"></datalist>\n\
    <button type=\"reset\">Clear</button>\n</form>\n\
    <p id=\"shown\" role=\"status\"></p>\n<p id=\"printed\"></p>\n\
    <table id=\"results\" hidden><thead><tr></tr></thead><tbody></tbody></table>\n\
    <p><button type=\"button\" id=\"more\" hidden>Show more</button></p>\n</section>\n";

fn tables(summary: &Summary) -> String {
    let mut out = String::from(
        "<section aria-labelledby=\"tables-title\">\n<h2 id=\"tables-title\">Every table</h2>\n",
    );
    for of_table in &summary.tables {
        let _ = writeln!(
            out,
            "<details id=\"table-{}\"><summary>{}</summary>\n{}</details>",
            of_table.name,
            prose(&of_table.title),
            table(of_table)
        );
    }
    out.push_str("</section>\n");
    out
}

/// How hard to press. A page of thousands is made within the cost of the scan.
fn level(is_large: bool) -> Compression {
    if is_large {
        Compression::fast()
    } else {
        Compression::default()
    }
}

/// JSON, compressed, in an alphabet that can close no element. To set up a compressor takes as long as to use it on
/// a few rows, so there is one for all that is packed.
#[derive(Debug)]
struct Packer {
    plain: Vec<u8>,
    packed: DeflateEncoder<Vec<u8>>,
}

impl Packer {
    fn of(level: Compression) -> Self {
        Self {
            plain: Vec::new(),
            packed: DeflateEncoder::new(Vec::new(), level),
        }
    }

    fn pack(&mut self, value: &impl Serialize) -> String {
        self.plain.clear();
        // Plain data into memory: nothing of it can fail.
        let _ = serde_json::to_writer(&mut self.plain, value);
        let _ = self.packed.write_all(&self.plain);
        STANDARD.encode(self.packed.reset(Vec::new()).unwrap_or_default())
    }
}

fn embed(out: &mut String, id: &str, packed: &str) {
    let _ = writeln!(
        out,
        "<script type=\"application/octet-stream\" id=\"{id}\">{packed}</script>"
    );
}

/// Words of ours: what stands between backticks is code.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in escaped(text).split('`').enumerate() {
        out.push_str(match at {
            0 => "",
            at if at % 2 == 1 => "<code>",
            _ => "</code>",
        });
        out.push_str(part);
    }
    if text.matches('`').count() % 2 == 1 {
        out.push_str("</code>");
    }
    out
}

/// Text as it stands in HTML, between tags or in quotes.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(it),
        }
    }
    out
}
