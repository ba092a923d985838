//! JSON, taken apart while it is read: members and elements one at a time, in bounded memory, with the
//! comments and trailing commas that people leave in configuration. What they mean is left to `document`.

use std::io::{self, BufRead};

use serde_json::{Map, Value};

use super::input::LONGEST;
use crate::json;

/// Why a text cannot be taken apart any further.
#[derive(Debug)]
pub(super) enum Broken {
    /// The bytes could not be had.
    Read(io::Error),
    /// It is no JSON.
    Syntax(&'static str),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

const ENDS_EARLY: Broken = Broken::Syntax("the JSON ends too early: a part of it is missing");

/// Walks over a text. It tells where values end, and leaves their grammar to whoever reads them.
pub(super) struct Scan<R> {
    input: R,
    line: u64,
}

/// Where in a value the walk is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Value,
    String,
    Escape,
    Slash,
    LineComment,
    BlockComment,
    BlockCommentStar,
}

impl Inside {
    /// Where it is after the next byte. A value's own brackets and ends are the caller's.
    const fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::String, b'\\') => Self::Escape,
            (Self::Value | Self::Slash, b'"') | (Self::Escape, _) => Self::String,
            (Self::Value, b'/') => Self::Slash,
            (Self::Slash, b'/') => Self::LineComment,
            (Self::Slash, b'*') | (Self::BlockCommentStar, 0..=b')' | b'+'..=b'.' | b'0'..) => {
                Self::BlockComment
            }
            (Self::BlockComment, b'*') => Self::BlockCommentStar,
            (Self::String, b'"')
            | (Self::LineComment, b'\n')
            | (Self::BlockCommentStar, b'/')
            | (Self::Slash, _) => Self::Value,
            _ => self,
        }
    }
}

impl<R: BufRead> Scan<R> {
    pub(super) const fn new(input: R) -> Self {
        Self { input, line: 1 }
    }

    /// The line that the walk has come to.
    pub(super) const fn line(&self) -> u64 {
        self.line
    }

    fn peek(&mut self) -> Result<Option<u8>, Broken> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    /// Passes over the byte that was looked at.
    fn pass(&mut self, byte: u8) {
        self.line += u64::from(byte == b'\n');
        self.input.consume(1);
    }

    /// The first byte of what comes next, white space and comments passed over.
    pub(super) fn ahead(&mut self) -> Result<Option<u8>, Broken> {
        let mut inside = Inside::Value;
        while let Some(byte) = self.peek()? {
            if inside == Inside::Value && !matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'/') {
                return Ok(Some(byte));
            }
            inside = inside.after(byte);
            if inside == Inside::Value && !byte.is_ascii_whitespace() && byte != b'/' {
                return Err(Broken::Syntax("a lone '/' is no JSON"));
            }
            self.pass(byte);
        }
        if matches!(inside, Inside::Value | Inside::LineComment) {
            Ok(None)
        } else {
            Err(ENDS_EARLY)
        }
    }

    /// Enters an object or an array that is ahead.
    pub(super) fn enter(&mut self) {
        self.input.consume(1);
    }

    /// Enters the next member of an object and gives its name; `None` at the object's end.
    pub(super) fn member(&mut self) -> Result<Option<String>, Broken> {
        if !self.more(b'}')? {
            return Ok(None);
        }
        let Some(Value::String(name)) = self.value(LONGEST)?.as_deref().and_then(parse) else {
            return Err(Broken::Syntax(
                "the JSON has something else than a string before a ':'",
            ));
        };
        if self.ahead()? != Some(b':') {
            return Err(Broken::Syntax("the JSON lacks a ':' after a name"));
        }
        self.input.consume(1);
        Ok(Some(name))
    }

    /// Whether an element comes before the array's end, which is passed.
    pub(super) fn element(&mut self) -> Result<bool, Broken> {
        self.more(b']')
    }

    fn more(&mut self, end: u8) -> Result<bool, Broken> {
        loop {
            match self.ahead()?.ok_or(ENDS_EARLY)? {
                b',' => self.input.consume(1),
                byte if byte == end => {
                    self.input.consume(1);
                    return Ok(false);
                }
                b']' | b'}' => {
                    return Err(Broken::Syntax("the JSON closes what it has not opened"));
                }
                _ => return Ok(true),
            }
        }
    }

    /// The text of the value that is ahead; `None` where it is longer than `limit`, and passed over.
    pub(super) fn value(&mut self, limit: usize) -> Result<Option<Vec<u8>>, Broken> {
        let first = self.ahead()?.ok_or(ENDS_EARLY)?;
        let is_scalar = !matches!(first, b'{' | b'[' | b'"');
        let mut text = Vec::new();
        let mut length = 0;
        let mut inside = Inside::Value;
        let mut depth = 0_usize;
        let mut done = false;
        while !done {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                if is_scalar {
                    break;
                }
                return Err(ENDS_EARLY);
            }
            let mut used = 0;
            for &byte in buffer {
                if is_scalar
                    && (matches!(byte, b',' | b':' | b'[' | b']' | b'{' | b'}')
                        || byte.is_ascii_whitespace())
                {
                    done = true;
                    break;
                }
                used += 1;
                self.line += u64::from(byte == b'\n');
                if is_scalar {
                    continue;
                }
                let before = inside;
                inside = inside.after(byte);
                match (before, byte) {
                    (Inside::Value | Inside::Slash, b'{' | b'[') => depth += 1,
                    (Inside::Value | Inside::Slash, b'}' | b']') => depth = depth.saturating_sub(1),
                    _ => {}
                }
                // The value ends with the bracket or the quote that closes it.
                done = depth == 0 && inside == Inside::Value && matches!(byte, b'}' | b']' | b'"');
                if done {
                    break;
                }
            }
            length += used;
            if length <= limit {
                text.extend_from_slice(&buffer[..used]);
            }
            self.input.consume(used);
        }
        if length == 0 {
            return Err(Broken::Syntax("the JSON lacks a value"));
        }
        Ok((length <= limit).then_some(text))
    }
}

/// Reads a value, with comments and trailing commas where it has any. What is not UTF-8 becomes U+FFFD.
pub(super) fn parse(text: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(text);
    if let Ok(json) = json::read(&text) {
        return Some(json.value);
    }
    json::read(&plain(&text)).map(|json| json.value).ok()
}

/// An object's members in the order of the text, and each as often as it stands there.
pub(super) fn members(text: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut members = Vec::new();
    let mut scan = Scan::new(text);
    if matches!(scan.ahead(), Ok(Some(b'{'))) {
        scan.enter();
        while let Ok(Some(name)) = scan.member() {
            let Ok(Some(value)) = scan.value(usize::MAX) else {
                break;
            };
            members.push((name, value));
        }
    }
    members
}

/// An array's elements.
pub(super) fn elements(text: &[u8]) -> Vec<Vec<u8>> {
    let mut elements = Vec::new();
    let mut scan = Scan::new(text);
    if matches!(scan.ahead(), Ok(Some(b'['))) {
        scan.enter();
        while let Ok(true) = scan.element() {
            let Ok(Some(value)) = scan.value(usize::MAX) else {
                break;
            };
            elements.push(value);
        }
    }
    elements
}

/// JSON with comments -> JSON, byte for byte in its place: comments and trailing commas become spaces.
fn plain(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut inside = Inside::Value;
    let mut comment = 0;
    let mut comma = None;
    for at in 0..bytes.len() {
        let byte = bytes[at];
        let before = inside;
        inside = inside.after(byte);
        match (before, inside) {
            (Inside::Value, Inside::Slash) => comment = at,
            (Inside::Slash, Inside::LineComment | Inside::BlockComment) => {
                bytes[comment..=at].fill(b' ');
            }
            (Inside::LineComment | Inside::BlockComment | Inside::BlockCommentStar, _) => {
                if !matches!(byte, b'\n' | b'\r') {
                    bytes[at] = b' ';
                }
            }
            (Inside::Value, Inside::Value) => match byte {
                b',' => comma = Some(at),
                b'}' | b']' => {
                    if let Some(at) = comma.take() {
                        bytes[at] = b' ';
                    }
                }
                byte if byte.is_ascii_whitespace() => {}
                _ => comma = None,
            },
            _ => comma = None,
        }
    }
    String::from_utf8(bytes).expect("only whole comments and commas became spaces")
}

/// The string under the first of these keys that is there.
pub(super) fn string<'a>(object: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| object.get(*key)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_become_spaces_in_place() {
        for (text, want) in [
            ("{\"a\":1,}", "{\"a\":1 }"),
            ("[1, 2 ,\n]", "[1, 2  \n]"),
            (
                "// x\n{\"a\": \"//b,}\" /* , */ , }",
                "    \n{\"a\": \"//b,}\"           }",
            ),
            (
                "{\"a\":\"\\\"/*\",/*é*/\"b\":2}",
                "{\"a\":\"\\\"/*\",      \"b\":2}",
            ),
            ("{\"a\":1, // last,\n}", "{\"a\":1          \n}"),
            ("[/**/1/***/]", "[    1     ]"),
            ("[1,2]", "[1,2]"),
        ] {
            assert_eq!(plain(text), want);
            assert_eq!(plain(text).len(), text.len());
        }
    }

    #[test]
    fn a_value_ends_where_it_closes() {
        for (text, want) in [
            ("{\"a\":[1,{\"b\":\"]}\"}]} x", "{\"a\":[1,{\"b\":\"]}\"}]}"),
            ("\"a\\\"b\" x", "\"a\\\"b\""),
            ("[\"a\", \"b\"], x", "[\"a\", \"b\"]"),
            (" /* { */ {/*}*/} x", "{/*}*/}"),
            ("{// }\n} x", "{// }\n}"),
            ("12, x", "12"),
            ("null", "null"),
            ("bare words", "bare"),
        ] {
            for buffer in [1, 3, 8192] {
                let input = std::io::BufReader::with_capacity(buffer, text.as_bytes());
                let got = Scan::new(input).value(100).unwrap().unwrap();
                assert_eq!(String::from_utf8(got).unwrap(), want);
            }
        }
    }

    #[test]
    fn members_keep_their_order_and_their_number() {
        let names: Vec<String> = members(br#"{"b":1,"a":{"x":[]}, /**/ "b":"2",}"#)
            .into_iter()
            .map(|(name, value)| name + "=" + &String::from_utf8(value).unwrap())
            .collect();
        assert_eq!(names, ["b=1", "a={\"x\":[]}", "b=\"2\""]);
        assert_eq!(elements(b"[1,[2],\"3\",]").len(), 3);
    }

    #[test]
    fn a_value_over_the_limit_is_passed_over() {
        let text = format!("[\"{}\", 1]", "x".repeat(100));
        let mut scan = Scan::new(text.as_bytes());
        assert_eq!(scan.ahead().unwrap(), Some(b'['));
        scan.enter();
        assert!(scan.element().unwrap());
        assert_eq!(scan.value(50).unwrap(), None);
        assert!(scan.element().unwrap());
        assert_eq!(scan.value(50).unwrap().unwrap(), b"1");
        assert!(!scan.element().unwrap());
    }

    #[test]
    fn what_is_cut_off_is_no_shorter_list() {
        for text in ["{\"a\":[1", "{\"a", "{", "{\"a\":", "[1", "/* x"] {
            let mut scan = Scan::new(text.as_bytes());
            assert!(matches!(scan.value(100), Err(Broken::Syntax(_))), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_comes_to_an_end(text in r#"[\[\]{}",:0-9a-c/* \n\\]{0,60}"#) {
            let _ = (parse(text.as_bytes()), members(text.as_bytes()), elements(text.as_bytes()));
            let mut scan = Scan::new(text.as_bytes());
            while let Ok(Some(_)) = scan.ahead() {
                if scan.value(20).is_err() {
                    break;
                }
            }
        }

        #[test]
        fn strict_json_is_left_as_it_is(
            text in proptest::collection::vec("[\"/,*a\\\\]{0,8}", 0..4)
        ) {
            let json = serde_json::to_string(&text).unwrap();
            proptest::prop_assert_eq!(plain(&json), json);
        }
    }
}
