//! A response's bytes -> what they are: nothing, JSON, an event stream, a web page, or something else.
//! Bytes decide and labels break ties. What the content says is `classify`'s affair.

use std::borrow::Cow;

use crate::coding::{self, CodingFlaw};
use crate::exchange::{Answer, BodyEnd};
use crate::finding::{Check, Finding};
use crate::json::{self, Flaw, Json};
use crate::outcome::{BodyKind, NotJson};
use crate::sse::{Event, Parser};

/// The media type of an event stream.
pub const EVENT_STREAM: &str = "text/event-stream";

/// The content codings a request of ours would accept: none is asked for, and gzip, which servers
/// send all the same, is common enough not to be worth a finding.
const USUAL_CODINGS: [&str; 3] = ["", "identity", "gzip"];

/// What the bytes are.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// No byte, or white space only.
    Empty,
    /// One JSON value.
    Json(Json),
    /// An event stream.
    Events(Stream),
    /// A web page.
    Html,
    /// None of these.
    Not(NotJson),
    /// More than we read, as sent or decoded.
    OverLimit,
    /// The content coding broke off before its trailer.
    Truncated,
}

/// The events of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stream {
    /// Those it completed.
    pub events: Vec<Event>,
    /// The one it broke off in.
    pub unterminated: Option<Event>,
    /// The id to resume with; empty where it gave none.
    pub last_id: String,
    /// The server's reconnection time, milliseconds.
    pub retry: Option<u64>,
}

/// A body read.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// What it is.
    pub content: Content,
    /// What kind of thing that is.
    pub kind: BodyKind,
    /// Its text, where it is text.
    pub text: String,
    /// What was noticed about labels and encodings.
    pub findings: Vec<Finding>,
}

/// Reads the body of an answer. Total: any bytes are something.
#[must_use]
pub fn read(answer: &Answer) -> Body {
    let mut findings = Vec::new();
    let raw = &answer.body.0;
    let label = answer
        .all("content-encoding")
        .collect::<Vec<_>>()
        .join(", ")
        .to_ascii_lowercase();
    for coding in label.split(',').map(str::trim) {
        if coding == "identity" {
            findings.push(Check::ContentEncodingIdentity.into());
        } else if !USUAL_CODINGS.contains(&coding) {
            findings.push(Check::UnsolicitedEncoding.of(coding));
        }
    }
    let complete = matches!(answer.end, BodyEnd::Complete);
    let decoded = coding::decode(&label, raw, complete);
    let over_limit =
        decoded.flaw == Some(CodingFlaw::OverLimit) || answer.end == BodyEnd::OverLimit;
    if decoded.flaw == Some(CodingFlaw::Wrong) {
        findings.push(Check::ContentEncodingMismatch.into());
        return Body {
            content: Content::Not(NotJson::ContentEncoding),
            kind: BodyKind::Binary,
            text: String::new(),
            findings,
        };
    }
    let truncated = decoded.flaw == Some(CodingFlaw::Truncated);
    if truncated {
        findings.push(Check::ContentEncodingTruncated.into());
    }
    let media = answer.media_type();
    let mut body = sniff(&decoded.bytes, &media, findings);
    if over_limit && !matches!(body.content, Content::Events(_) | Content::Html) {
        body.content = Content::OverLimit;
    }
    // A whole JSON text stands for itself, trailer or not.
    if truncated && matches!(body.content, Content::Not(_) | Content::Empty) {
        body.content = Content::Truncated;
    }
    label_findings(&mut body, &media, raw.is_empty());
    body
}

fn sniff(bytes: &[u8], media: &str, mut findings: Vec<Finding>) -> Body {
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        findings.push(Check::NotUtf8Encoding.into());
        return Body {
            content: Content::Not(NotJson::NotUtf8),
            kind: BodyKind::Text,
            text: String::new(),
            findings,
        };
    }
    let (bytes, marked) = bytes
        .strip_prefix(b"\xEF\xBB\xBF")
        .map_or((bytes, false), |rest| (rest, true));
    let whole = std::str::from_utf8(bytes);
    let text = whole.map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    let trimmed = text.trim();
    let is_stream = media == EVENT_STREAM;
    let of = |content, kind, text: &str, findings| Body {
        content,
        kind,
        text: text.to_owned(),
        findings,
    };

    if trimmed.is_empty() {
        let content = if is_stream {
            Content::Events(events(bytes))
        } else {
            Content::Empty
        };
        return of(content, BodyKind::Empty, "", findings);
    }
    if is_html(trimmed)
        || (media == "text/html" && trimmed.starts_with('<') && !has_json_tail(trimmed))
    {
        return of(Content::Html, BodyKind::Html, trimmed, findings);
    }
    if let (Ok(_), Ok(json)) = (&whole, json::read(trimmed)) {
        if marked {
            findings.push(Check::Utf8Bom.into());
        }
        if json.duplicate_key {
            findings.push(Check::DuplicateKey.into());
        }
        if json.lone_surrogate {
            findings.push(Check::LoneSurrogate.into());
        }
        return of(Content::Json(json), BodyKind::Json, trimmed, findings);
    }
    if is_stream || looks_like_events(trimmed) {
        return of(
            Content::Events(events(bytes)),
            BodyKind::Sse,
            &text,
            findings,
        );
    }
    let why = if whole.is_err() {
        undecodable(bytes, &mut findings)
    } else {
        not_json(trimmed, &mut findings)
    };
    let kind = match why {
        NotJson::Binary => BodyKind::Binary,
        NotJson::Xml => BodyKind::Xml,
        NotJson::Syntax | NotJson::TrailingGarbage | NotJson::LeadingGarbage => BodyKind::Json,
        NotJson::PlainText | NotJson::NotUtf8 | NotJson::SseData | NotJson::ContentEncoding => {
            BodyKind::Text
        }
    };
    of(Content::Not(why), kind, trimmed, findings)
}

fn events(bytes: &[u8]) -> Stream {
    let mut parser = Parser::default();
    let events = parser.push(bytes);
    let (last_id, retry) = (parser.last_id().to_owned(), parser.retry());
    Stream {
        events,
        unterminated: parser.finish(),
        last_id,
        retry,
    }
}

/// Whether an unlabelled text is an event stream: its first lines are fields, and one of them is `data`.
fn looks_like_events(text: &str) -> bool {
    const FIELDS: [&str; 4] = ["data", "event", "id", "retry"];
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(4)
        .peekable();
    if lines.peek().is_none() {
        return false;
    }
    let mut has_data = false;
    let all = lines.all(|line| {
        let field = line.split(':').next().unwrap_or_default();
        has_data |= field == "data";
        line.starts_with(':') || (line.contains(':') && FIELDS.contains(&field)) || has_data
    });
    all && has_data
}

/// Whether a text is a web page, by its first tag, past comments and an XML declaration.
#[must_use]
pub fn is_html(text: &str) -> bool {
    const OPENERS: [&str; 10] = [
        "<!doctype html",
        "<html",
        "<head",
        "<body",
        "<title",
        "<meta",
        "<script",
        "<style",
        "<link",
        "<noscript",
    ];
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    for _ in 0..20 {
        let after = if rest.starts_with("<!--") {
            rest.split_once("-->")
        } else if rest.starts_with("<?xml") {
            rest.split_once("?>")
        } else {
            break;
        };
        let Some((_, after)) = after else {
            return false;
        };
        rest = after.trim_start();
    }
    OPENERS.iter().any(|opener| {
        rest.get(..opener.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(opener))
            && rest[opener.len()..]
                .chars()
                .next()
                .is_none_or(|it| !it.is_ascii_alphanumeric() && it != '-')
    })
}

/// Whether JSON stands at the end of a text: a warning printed before the answer.
fn has_json_tail(text: &str) -> bool {
    text.match_indices(['{', '['])
        .take(16)
        .any(|(at, _)| at > 0 && json::read(text[at..].trim_end()).is_ok())
}

/// Why bytes are no text.
fn undecodable(bytes: &[u8], findings: &mut Vec<Finding>) -> NotJson {
    if bytes.starts_with(b"\x1F\x8B") {
        findings.push(Check::ContentEncodingUnlabelled.into());
        return NotJson::Binary;
    }
    // Text in another encoding has few control characters; anything else is no text.
    let controls = bytes
        .iter()
        .filter(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace())
        .count();
    if controls * 20 > bytes.len() {
        NotJson::Binary
    } else {
        NotJson::NotUtf8
    }
}

/// Why a text is no JSON.
fn not_json(text: &str, findings: &mut Vec<Finding>) -> NotJson {
    if text.starts_with(['{', '[', '"']) {
        let Err(Flaw::Trailing(end)) = json::read(text) else {
            return if text.starts_with('[') && !text.contains(['"', '{', ',']) {
                NotJson::PlainText
            } else {
                NotJson::Syntax
            };
        };
        if text[end..]
            .trim()
            .lines()
            .all(|line| line.trim().is_empty() || json::read(line.trim()).is_ok())
        {
            findings.push(Check::Ndjson.into());
        }
        return NotJson::TrailingGarbage;
    }
    if has_json_tail(text) {
        return NotJson::LeadingGarbage;
    }
    if text.starts_with("<?xml") || (text.starts_with('<') && text.ends_with('>')) {
        return NotJson::Xml;
    }
    let controls = text
        .chars()
        .filter(|it| it.is_control() && !it.is_whitespace())
        .count();
    if controls * 20 > text.len() {
        NotJson::Binary
    } else {
        NotJson::PlainText
    }
}

fn label_findings(body: &mut Body, media: &str, no_bytes: bool) {
    if media.is_empty() {
        if !no_bytes {
            body.findings.push(Check::ContentTypeMissing.into());
        }
        return;
    }
    let is_json_label = media == "application/json" || media.ends_with("+json");
    let finding = match &body.content {
        Content::Json(_) if media == EVENT_STREAM => {
            Check::ContentTypeMismatch.of("sse_label_json_body")
        }
        Content::Json(_) if !is_json_label => Check::ContentTypeWrong.of(media),
        Content::Events(_) if is_json_label => Check::ContentTypeMismatch.of("json_label_sse_body"),
        Content::Events(_) if media != EVENT_STREAM => Check::ContentTypeWrong.of(media),
        Content::Html if is_json_label => Check::ContentTypeMismatch.of("json_label_html_body"),
        Content::Html if media == EVENT_STREAM => {
            Check::ContentTypeMismatch.of("sse_label_html_body")
        }
        _ => return,
    };
    body.findings.push(finding);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange;

    #[track_caller]
    fn check(media: &str, bytes: &[u8], want: &str) {
        let headers = if media.is_empty() {
            vec![]
        } else {
            vec![("content-type".to_owned(), media.to_owned())]
        };
        let answer = Answer {
            version: "HTTP/1.1".into(),
            status: 200,
            headers,
            body: exchange::Body(bytes.into()),
            end: BodyEnd::Complete,
        };
        let body = read(&answer);
        let content = match body.content {
            Content::Empty => "empty".to_owned(),
            Content::Json(_) => "json".to_owned(),
            Content::Events(stream) => format!("events {}", stream.events.len()),
            Content::Html => "html".to_owned(),
            Content::Not(why) => why.name().to_owned(),
            Content::OverLimit => "over limit".to_owned(),
            Content::Truncated => "truncated".to_owned(),
        };
        let findings: Vec<String> = body.findings.iter().map(ToString::to_string).collect();
        assert_eq!(
            [vec![content], findings].concat().join(" "),
            want,
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }

    const JSON: &str = "application/json";

    #[test]
    fn bytes_beat_labels() {
        check(
            "text/html; charset=UTF-8",
            b"{}",
            "json content_type_wrong:text/html",
        );
        check(
            JSON,
            b"data: {}\n\n",
            "events 1 content_type_mismatch:json_label_sse_body",
        );
        check(
            EVENT_STREAM,
            b"{}",
            "json content_type_mismatch:sse_label_json_body",
        );
        check(
            JSON,
            b"<!doctype html><html></html>",
            "html content_type_mismatch:json_label_html_body",
        );
        check("", b"{}", "json content_type_missing");
        check(
            "TEXT/Event-Stream;charset=UTF-8",
            b"data: {}\n\n",
            "events 1",
        );
        check("application/problem+json", b"{}", "json");
    }

    #[test]
    fn a_web_page_is_known_by_its_first_tag() {
        check(
            "",
            b"\xEF\xBB\xBF\n<!-- build 123 -->\n<html><head></head></html>",
            "html content_type_missing",
        );
        check(
            "application/xhtml+xml",
            b"<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"x\">\n<html/>",
            "html",
        );
        check("text/html", b"<div>hi</div>", "html");
        check(
            "application/xml",
            b"<?xml version=\"1.0\"?><urlset></urlset>",
            "xml",
        );
        check("application/xml", b"<header>x</header>", "xml");
    }

    #[test]
    fn what_is_no_json_says_why() {
        check(JSON, b"{\"jsonrpc\":\"2.0\",\"id\":1", "syntax");
        check(JSON, b"{'a': 1}", "syntax");
        check(JSON, b"{\"a\":NaN}", "syntax");
        check(JSON, b"{}\n{}\n", "trailing_garbage ndjson");
        check(JSON, b"{} extra", "trailing_garbage");
        check(
            JSON,
            b"<br />\n<b>Warning</b>: x in <b>/srv</b><br />\n{\"a\":1}",
            "leading_garbage",
        );
        check(
            "text/html",
            b"<br />\n<b>Warning</b>: x<br />\n{\"a\":1}",
            "leading_garbage",
        );
        check(
            "text/plain",
            b"MCP server is running. POST JSON-RPC here.",
            "plain_text",
        );
        check("text/plain", b"404 page not found", "plain_text");
        check(JSON, b"{\"name\":\"caf\xE9\"}", "not_utf8");
        check(JSON, b"\xFF\xFE{\0}\0", "not_utf8 utf16_body");
        check(
            JSON,
            b"\x1F\x8B\x08\x00\x00",
            "binary content_encoding_unlabelled",
        );
        check(JSON, b"\x00\x01\x02\x89PNG\xFF\x00\x00", "binary");
    }

    #[test]
    fn nothing_is_nothing() {
        check("text/html", b"", "empty");
        check("", b"", "empty");
        check(JSON, b" \r\n", "empty");
        check(EVENT_STREAM, b"", "events 0");
        check(EVENT_STREAM, b": ping\n\n", "events 0");
    }
}
