//! Bytes -> JSON, with what is odd about it. Where `serde_json` refuses a text for its depth or for a lone surrogate,
//! RFC 8259's grammar allows both: the text is walked over without recursion, mended, and read again.
//! What the JSON means is left to `jsonrpc`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Deeper than this, a value is read as `null`. No message of the protocol nests as deep, and `serde_json` refuses
/// one level more.
const DEPTH: usize = 127;

/// JSON, and what was odd about its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Json {
    /// The value; anything nested deeper than 127 levels is `null` in it.
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
    if let Ok((value, duplicate_key)) = parse(text) {
        return Ok(Json {
            value,
            duplicate_key,
            lone_surrogate: false,
        });
    }
    let mut scan = Scan::new(text.as_bytes());
    scan.value()?;
    let end = scan.at;
    scan.space();
    if scan.at < text.len() {
        return Err(Flaw::Trailing(end));
    }
    // It is cut where ASCII stands, so it is text still.
    let mended = scan.mended.map(String::from_utf8).transpose();
    let mended = mended.map_err(|_| Flaw::Syntax)?;
    let (value, duplicate_key) =
        parse(mended.as_deref().unwrap_or(text)).map_err(|_| Flaw::Syntax)?;
    Ok(Json {
        value,
        duplicate_key,
        lone_surrogate: scan.lone_surrogate,
    })
}

/// Reads one value, and whether a member stands twice in an object of it.
fn parse(text: &str) -> serde_json::Result<(Value, bool)> {
    let mut twice = false;
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Noting(&mut twice).deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, twice))
}

/// Builds a value, and notes a member that stands twice.
struct Noting<'a>(&'a mut bool);

impl<'de> DeserializeSeed<'de> for Noting<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Noting<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(Value::Bool(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(Value::Number(it.into()))
    }

    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(Value::Number(it.into()))
    }

    fn visit_f64<E>(self, it: f64) -> Result<Value, E> {
        Ok(Number::from_f64(it).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(Value::String(it.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(it) = from.next_element_seed(Noting(self.0))? {
            all.push(it);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            let before = all.insert(name, from.next_value_seed(Noting(self.0))?);
            *self.0 |= before.is_some();
        }
        Ok(Value::Object(all))
    }
}

/// A walk over the text. It copies what it passes into `mended` from the first oddity on.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    mended: Option<Vec<u8>>,
    /// What `mended` holds of the text: everything before this.
    copied: usize,
    lone_surrogate: bool,
}

impl<'a> Scan<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            mended: None,
            copied: 0,
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
        // What closes each container that is open.
        let mut open: Vec<u8> = Vec::new();
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
                        open.push(b']');
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
                        open.push(b'}');
                        self.key(open.len())?;
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
                let Some(&closer) = open.last() else {
                    if let Some(mended) = &mut self.mended {
                        mended.extend_from_slice(&self.text[self.copied..self.at]);
                        self.copied = self.at;
                    }
                    return Ok(());
                };
                self.space();
                match self.peek().ok_or(Flaw::Syntax)? {
                    b',' => {
                        self.at += 1;
                        if closer == b'}' {
                            self.key(open.len())?;
                        }
                        break;
                    }
                    byte if byte == closer => {
                        self.at += 1;
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

    /// A member's name and its colon, so many containers deep.
    fn key(&mut self, depth: usize) -> Result<(), Flaw> {
        self.space();
        self.string(depth <= DEPTH)?;
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
        for levels in DEPTH - 1..DEPTH + 3 {
            let nested = "[".repeat(levels) + "1" + &"]".repeat(levels);
            let mut value = &read(&nested).unwrap().value;
            let mut depth = 0;
            while let Some(inner) = value.get(0) {
                (value, depth) = (inner, depth + 1);
            }
            assert_eq!(depth, levels.min(DEPTH));
            assert_eq!(value.is_null(), levels > DEPTH, "{levels} levels");
        }
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
