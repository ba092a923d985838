//! Bytes -> JSON, with what is odd about it. RFC 8259's grammar is read without recursion, so depth
//! costs nothing, and a text that a stricter reader would refuse for a lone surrogate is still read.
//! What the JSON means is left to `jsonrpc`.

use serde_json::Value;

/// Deeper than this, a value is read as `null`. No message of the protocol nests as deep.
const DEPTH: usize = 100;

/// JSON, and what was odd about its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Json {
    /// The value; anything nested deeper than a hundred levels is `null` in it.
    pub value: Value,
    /// A member stands twice in one object; the last one counts.
    pub duplicate_key: bool,
    /// A string holds half a surrogate pair; it is U+FFFD in the value.
    pub lone_surrogate: bool,
}

/// Why a text is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// It breaks the grammar, or ends too early.
    Syntax,
    /// The first value ends here, in bytes, and something follows it.
    Trailing(usize),
}

/// Reads one JSON value and nothing else.
///
/// # Errors
/// When the text is no JSON, or is more than one value.
pub fn read(text: &str) -> Result<Json, Flaw> {
    let mut scan = Scan::new(text.as_bytes());
    scan.value()?;
    let end = scan.at;
    scan.space();
    if scan.at < text.len() {
        return Err(Flaw::Trailing(end));
    }
    let (duplicate_key, lone_surrogate) = (scan.duplicate_key, scan.lone_surrogate);
    let value = match scan.mended {
        None => serde_json::from_str(text),
        Some(mended) => serde_json::from_slice(&mended),
    };
    value
        .map(|value| Json {
            value,
            duplicate_key,
            lone_surrogate,
        })
        .map_err(|_| Flaw::Syntax)
}

/// A walk over the text. It copies what it passes into `mended` from the first oddity on.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    mended: Option<Vec<u8>>,
    /// What `mended` holds of the text: everything before this.
    copied: usize,
    duplicate_key: bool,
    lone_surrogate: bool,
}

/// An open container: an array, or an object with the keys it has so far.
enum Open<'a> {
    Array,
    Object(Vec<&'a [u8]>),
}

/// Whether a key stands twice among those of an object.
fn has_twin(keys: &mut [&[u8]]) -> bool {
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

impl<'a> Scan<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            mended: None,
            copied: 0,
            duplicate_key: false,
            lone_surrogate: false,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Flaw> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(Flaw::Syntax)
    }

    /// Replaces the text from `from` to here with `with` in the mended copy.
    fn mend(&mut self, from: usize, with: &[u8]) {
        let mended = self.mended.get_or_insert_default();
        mended.extend_from_slice(&self.text[self.copied..from]);
        mended.extend_from_slice(with);
        self.copied = self.at;
    }

    fn value(&mut self) -> Result<(), Flaw> {
        let mut open: Vec<Open<'a>> = Vec::new();
        let mut too_deep = 0;
        loop {
            self.space();
            // A value starts here.
            match self.peek().ok_or(Flaw::Syntax)? {
                b'[' => {
                    if open.len() == DEPTH {
                        too_deep = self.at;
                    }
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(b']') {
                        open.push(Open::Array);
                        continue;
                    }
                    self.at += 1;
                    if open.len() == DEPTH {
                        self.mend(too_deep, b"null");
                    }
                }
                b'{' => {
                    if open.len() == DEPTH {
                        too_deep = self.at;
                    }
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(b'}') {
                        open.push(Open::Object(Vec::new()));
                        self.key(&mut open)?;
                        continue;
                    }
                    self.at += 1;
                    if open.len() == DEPTH {
                        self.mend(too_deep, b"null");
                    }
                }
                b'"' => self.string(open.len() < DEPTH)?,
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => return Err(Flaw::Syntax),
            }
            // A value has ended: close what it closes.
            loop {
                let Some(innermost) = open.last_mut() else {
                    if let Some(mended) = &mut self.mended {
                        mended.extend_from_slice(&self.text[self.copied..self.at]);
                        self.copied = self.at;
                    }
                    return Ok(());
                };
                let closer = if matches!(innermost, Open::Array) {
                    b']'
                } else {
                    b'}'
                };
                self.space();
                match self.peek().ok_or(Flaw::Syntax)? {
                    b',' => {
                        self.at += 1;
                        if closer == b'}' {
                            self.key(&mut open)?;
                        }
                        break;
                    }
                    byte if byte == closer => {
                        self.at += 1;
                        if let Open::Object(keys) = innermost {
                            self.duplicate_key |= has_twin(keys);
                        }
                        open.pop();
                        if open.len() == DEPTH {
                            self.mend(too_deep, b"null");
                        }
                    }
                    _ => return Err(Flaw::Syntax),
                }
            }
        }
    }

    /// A member's name and its colon.
    fn key(&mut self, open: &mut [Open<'a>]) -> Result<(), Flaw> {
        self.space();
        let start = self.at;
        self.string(open.len() <= DEPTH)?;
        let name = &self.text[start..self.at];
        if let Some(Open::Object(keys)) = open.last_mut() {
            keys.push(name);
        }
        self.space();
        self.expect(b':')
    }

    /// A string. `kept`: it is part of what is read, and not of what is too deep.
    fn string(&mut self, kept: bool) -> Result<(), Flaw> {
        self.expect(b'"')?;
        loop {
            // Most of a text is in strings, and most of those is plain.
            let mut rest = self.text[self.at..].iter();
            let plain = rest.position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            self.at += plain.ok_or(Flaw::Syntax)?;
            match self.peek().ok_or(Flaw::Syntax)? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    let start = self.at;
                    self.at += 1;
                    match self.peek().ok_or(Flaw::Syntax)? {
                        b'u' => {
                            self.at += 1;
                            let unit = self.hex()?;
                            let paired = (0xD800..0xDC00).contains(&unit) && self.low_surrogate();
                            if (0xD800..0xE000).contains(&unit) && !paired {
                                self.lone_surrogate = true;
                                if kept {
                                    self.mend(start, b"\\ufffd");
                                }
                            }
                        }
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        _ => return Err(Flaw::Syntax),
                    }
                }
                _ => return Err(Flaw::Syntax),
            }
        }
    }

    /// Passes over the second half of a surrogate pair, where there is one.
    fn low_surrogate(&mut self) -> bool {
        let start = self.at;
        let found = self.text[self.at..].starts_with(b"\\u") && {
            self.at += 2;
            self.hex()
                .is_ok_and(|unit| (0xDC00..0xE000).contains(&unit))
        };
        if !found {
            self.at = start;
        }
        found
    }

    fn hex(&mut self) -> Result<u32, Flaw> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(Flaw::Syntax)?;
        let mut unit = 0;
        for &digit in digits {
            unit = unit * 16 + char::from(digit).to_digit(16).ok_or(Flaw::Syntax)?;
        }
        self.at += 4;
        Ok(unit)
    }

    fn digits(&mut self) -> Result<(), Flaw> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            Err(Flaw::Syntax)
        } else {
            Ok(())
        }
    }

    fn number(&mut self) -> Result<(), Flaw> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Flaw> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        Err(Flaw::Syntax)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, want: &Result<Value, Flaw>) {
        assert_eq!(read(text).map(|json| json.value), *want, "{text:.60}");
    }

    #[test]
    fn what_the_grammar_allows_is_read() {
        check(
            " {\"a\" : [1, -2.5e3, true, null, \"x\\n\\u00e9\"]} \n",
            &Ok(json!({"a": [1, -2500.0, true, null, "x\né"]})),
        );
        check("[]", &Ok(json!([])));
        check("{}", &Ok(json!({})));
        check("\"s\"", &Ok(json!("s")));
    }

    #[test]
    fn what_it_does_not_allow_is_not() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\":NaN}",
            "{'a':1}",
            "{\"a\":1,}",
            "01",
            "1.",
            "\"\t\"",
            "\"\\x\"",
            "tru",
            "[1 2]",
        ] {
            assert!(
                matches!(read(text), Err(Flaw::Syntax | Flaw::Trailing(_))),
                "{text}"
            );
        }
        check("{} {}", &Err(Flaw::Trailing(2)));
    }

    #[test]
    fn depth_costs_nothing() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let inside = format!("{{\"a\":{deep},\"b\":{{\"c\":1}}}}");
        assert!(read(&deep).unwrap().value.is_array());
        assert_eq!(read(&inside).unwrap().value["b"]["c"], 1);
        assert_eq!(read(&"[".repeat(100_000)), Err(Flaw::Syntax));
        let object = "{\"k\":".repeat(500) + "1" + &"}".repeat(500);
        assert!(read(&object).unwrap().value["k"]["k"].is_object());
    }

    #[test]
    fn oddities_are_noticed_and_read_over() {
        let twice = read(r#"{"a":1,"b":{"a":2},"a":3}"#).unwrap();
        assert!(twice.duplicate_key && twice.value["a"] == 3);
        assert!(!read(r#"[{"a":1},{"a":1}]"#).unwrap().duplicate_key);
        let lone = read(r#"{"x":"a\ud83db","y":"\ud83d\ude00"}"#).unwrap();
        assert!(lone.lone_surrogate && lone.value == json!({"x": "a\u{fffd}b", "y": "😀"}));
    }

    proptest::proptest! {
        #[test]
        fn it_agrees_with_serde_json(text in r#"[\[\]{}",:0-9a-cetrufalsn\\ .-]{0,40}"#) {
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                proptest::prop_assert_eq!(read(&text).unwrap().value, value);
            }
        }
        #[test]
        fn any_text_has_a_reading(text: String) {
            let _ = read(&text);
        }
    }
}
