//! Bytes -> server-sent events, to the letter of WHATWG HTML §9.2.6, at any chunking.
//! What an event's data means is left to `classify`.

/// One dispatched event.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// The `event` field; empty means `message`.
    pub name: String,
    /// The `data` lines, joined by line feeds. Not every server sends UTF-8; what is not becomes U+FFFD.
    pub data: String,
    /// The last event id when it was dispatched.
    pub id: String,
}

/// Reads a stream incrementally. Its memory is the event being read; the caller bounds the stream.
#[derive(Debug, Clone, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The last byte was a CR: an LF now belongs to it.
    after_cr: bool,
    /// Bytes seen, up to three: a BOM can only stand at the very start.
    started: bool,
    event: Event,
    has_data: bool,
    last_id: String,
    retry: Option<u64>,
}

impl Parser {
    /// Takes the next bytes and gives the events they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' if self.after_cr => self.after_cr = false,
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    events.extend(self.end_line());
                }
                _ => {
                    self.after_cr = false;
                    self.line.push(byte);
                }
            }
        }
        events
    }

    /// The stream has ended. The event it broke off in, which a browser discards, where it has data.
    #[must_use]
    pub fn finish(mut self) -> Option<Event> {
        if !self.line.is_empty() {
            let dispatched = self.end_line();
            debug_assert!(dispatched.is_none(), "a line with text dispatches nothing");
        }
        self.dispatch().filter(|event| !event.data.is_empty())
    }

    /// The id to resume with (`Last-Event-ID`); empty where the stream gave none.
    #[must_use]
    pub fn last_id(&self) -> &str {
        &self.last_id
    }

    /// The server's reconnection time, in milliseconds.
    #[must_use]
    pub const fn retry(&self) -> Option<u64> {
        self.retry
    }

    fn end_line(&mut self) -> Option<Event> {
        let bytes = std::mem::take(&mut self.line);
        let mut bytes = bytes.as_slice();
        if !std::mem::replace(&mut self.started, true) {
            bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        }
        if bytes.is_empty() {
            return self.dispatch();
        }
        let (field, value) = match bytes.iter().position(|&byte| byte == b':') {
            Some(0) => return None,
            Some(colon) => {
                let value = &bytes[colon + 1..];
                (&bytes[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (bytes, &[][..]),
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(&String::from_utf8_lossy(value));
            }
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => {
                self.last_id = String::from_utf8_lossy(value).into_owned();
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.retry = std::str::from_utf8(value)
                    .ok()
                    .and_then(|digits| digits.parse().ok());
            }
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let mut event = std::mem::take(&mut self.event);
        event.id.clone_from(&self.last_id);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str, id: &str) -> Event {
        Event {
            name: name.into(),
            data: data.into(),
            id: id.into(),
        }
    }

    #[track_caller]
    fn check(stream: &str, want: &[Event]) {
        assert_eq!(
            Parser::default().push(stream.as_bytes()),
            want,
            "{stream:?}"
        );
    }

    #[test]
    fn every_line_end_ends_a_line() {
        for end in ["\n", "\r\n", "\r"] {
            check(
                &format!("event: message{end}data: a{end}data: b{end}{end}"),
                &[event("message", "a\nb", "")],
            );
        }
    }

    #[test]
    fn comments_and_foreign_fields_are_passed_over() {
        check(
            ": ping\n\n:\nfoo: bar\nid: 7\n\ndata:x\n\n",
            &[event("", "x", "7")],
        );
    }

    #[test]
    fn a_priming_event_has_an_id_and_empty_data() {
        check("id: 0_1\ndata: \n\n", &[event("", "", "0_1")]);
        check("id: 0_1\ndata\n\n", &[event("", "", "0_1")]);
        check("retry: 3000\n\n", &[]);
    }

    #[test]
    fn a_byte_order_mark_counts_only_at_the_start() {
        check("\u{feff}data: x\n\n", &[event("", "x", "")]);
        check("data: x\n\n\u{feff}data: y\n\n", &[event("", "x", "")]);
    }

    #[test]
    fn what_a_stream_breaks_off_in_is_told_apart() {
        let mut parser = Parser::default();
        assert_eq!(parser.push(b"id: 3\nretry: 50\ndata: half"), []);
        assert_eq!((parser.last_id(), parser.retry()), ("3", Some(50)));
        assert_eq!(parser.finish(), Some(event("", "half", "3")));
        assert_eq!(Parser::default().finish(), None);
    }

    proptest::proptest! {
        #[test]
        fn chunking_changes_nothing(
            stream in r"(data|event|id|retry|:|: |a|\r|\n|\r\n|\x{feff}){0,60}",
            cuts in proptest::collection::vec(1usize..7, 1..40),
        ) {
            let mut whole = Parser::default();
            let want = whole.push(stream.as_bytes());
            let (mut parser, mut got, mut rest) = (Parser::default(), Vec::new(), stream.as_bytes());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                got.extend(parser.push(now));
                rest = later;
            }
            proptest::prop_assert_eq!(got, want);
            proptest::prop_assert_eq!(parser.finish(), whole.finish());
        }
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let mut parser = Parser::default();
            let _ = parser.push(&bytes);
            let _ = parser.finish();
        }
    }
}
