//! Bytes as they lie on a disk -> text: gzip undone, byte order marks and UTF-16 read over, lines bounded.
//! What is not UTF-8 is left as it is; each reader makes the best of it.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

/// No line, row or entry of a list is longer, in bytes.
pub(super) const LONGEST: usize = 1 << 20;

/// What is read in one piece is no larger, in bytes.
pub(super) const WHOLE: usize = 64 << 20;

/// A format is told by this much of the text at most, in bytes.
const HEAD: usize = 64 << 10;

/// The text of a list, and the start of it to tell its format by.
pub(super) struct Input<'a> {
    /// The start of the text.
    pub(super) head: Vec<u8>,
    /// All of the text, the start included.
    pub(super) text: Box<dyn BufRead + 'a>,
}

impl<'a> Input<'a> {
    pub(super) fn open(input: impl BufRead + 'a) -> io::Result<Self> {
        let (magic, mut text) = peeked(Box::new(input), 2)?;
        if magic == [0x1f, 0x8b] {
            text = Box::new(BufReader::new(MultiGzDecoder::new(text)));
        }
        let (mark, mut text) = peeked(text, 3)?;
        match *mark {
            [0xef, 0xbb, 0xbf] => text.consume(3),
            [0xff, 0xfe, ..] => text = utf16(text, u16::from_le_bytes)?,
            [0xfe, 0xff, ..] => text = utf16(text, u16::from_be_bytes)?,
            _ => {}
        }
        let (head, text) = peeked(text, HEAD)?;
        Ok(Self { head, text })
    }

    /// Whether the start is all there is.
    pub(super) fn is_short(&self) -> bool {
        self.head.len() < HEAD
    }

    /// The text line by line.
    pub(super) fn lines(self) -> Lines<Box<dyn BufRead + 'a>> {
        // Spreadsheets on a Mac have ended lines with a CR alone.
        let lone_cr = self.head.contains(&b'\r') && !self.head.contains(&b'\n');
        Lines {
            input: self.text,
            end: if lone_cr { b'\r' } else { b'\n' },
            number: 0,
        }
    }

    /// The text in one piece.
    pub(super) fn whole(self) -> io::Result<String> {
        whole(self.text).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The first bytes of the input, which stay part of it.
fn peeked<'a>(
    mut input: Box<dyn BufRead + 'a>,
    bytes: usize,
) -> io::Result<(Vec<u8>, Box<dyn BufRead + 'a>)> {
    let mut head = Vec::new();
    let limit = u64::try_from(bytes).expect("the heads we look at are small");
    input.by_ref().take(limit).read_to_end(&mut head)?;
    Ok((head.clone(), Box::new(Cursor::new(head).chain(input))))
}

fn whole(input: impl BufRead) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(WHOLE).expect("the limit is no more than 64 bits");
    input.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() > WHOLE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// UTF-16 is what a spreadsheet saves as "Unicode text": small enough to be read in one piece.
fn utf16<'a>(input: impl BufRead, unit: fn([u8; 2]) -> u16) -> io::Result<Box<dyn BufRead + 'a>> {
    let bytes = whole(input)?;
    let units = bytes[2..]
        .chunks_exact(2)
        .map(|pair| unit([pair[0], pair[1]]));
    let text: String = char::decode_utf16(units)
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    Ok(Box::new(Cursor::new(text.into_bytes())))
}

/// Lines, numbered from 1.
pub(super) struct Lines<R> {
    input: R,
    end: u8,
    number: u64,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Which, from 1.
    pub(super) number: u64,
    /// Its bytes without its end, or `None` where it is longer than [`LONGEST`].
    pub(super) bytes: Option<Vec<u8>>,
}

impl Line {
    /// The line as text; what is not UTF-8 becomes U+FFFD. `None` where it is too long.
    pub(super) fn text(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.bytes
            .as_deref()
            .map(|bytes| String::from_utf8_lossy(bytes))
    }
}

impl<R: BufRead> Lines<R> {
    /// The number of the last line that was given.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// The next line; `None` at the end.
    pub(super) fn line(&mut self) -> io::Result<Option<Line>> {
        let mut bytes = Vec::new();
        let mut too_long = false;
        let mut any = false;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            any = true;
            let end = buffer.iter().position(|&byte| byte == self.end);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            too_long |= bytes.len() + part.len() > LONGEST;
            if !too_long {
                bytes.extend_from_slice(part);
            }
            let used = end.map_or(buffer.len(), |end| end + 1);
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        self.number += 1;
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        Ok(Some(Line {
            number: self.number,
            bytes: (!too_long).then_some(bytes),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[track_caller]
    fn check(bytes: &[u8], want: &[&str]) {
        let mut lines = Input::open(bytes).unwrap().lines();
        let mut got = Vec::new();
        while let Some(line) = lines.line().unwrap() {
            got.push(line.text().unwrap().into_owned());
        }
        assert_eq!(got, want, "{bytes:x?}");
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn text_is_text_in_any_wrapping() {
        check(b"a\nb\n", &["a", "b"]);
        check(b"a\r\n\r\nb", &["a", "", "b"]);
        check(b"a\rb\r", &["a", "b"]);
        check(b"\xef\xbb\xbfa\n", &["a"]);
        check(b"\xff\xfea\0\r\0\n\0\xe9\0", &["a", "é"]);
        check(b"\xfe\xff\0a\0\n\xd8\x3d\xde\x00", &["a", "😀"]);
        check(b"caf\xe9\n", &["caf\u{fffd}"]);
        check(b"", &[]);
        check(&gzip(b"\xef\xbb\xbfa\nb"), &["a", "b"]);
        check(&[gzip(b"a\n"), gzip(b"b\n")].concat(), &["a", "b"]);
    }

    #[test]
    fn a_line_is_bounded_and_the_next_one_is_read() {
        let long = [vec![b'x'; LONGEST + 1], b"\nb\n".to_vec()].concat();
        let mut lines = Input::open(long.as_slice()).unwrap().lines();
        assert_eq!(lines.line().unwrap().unwrap().bytes, None);
        let next = lines.line().unwrap().unwrap();
        assert_eq!((next.number, next.text().unwrap().as_ref()), (2, "b"));
    }

    #[test]
    fn a_cut_gzip_is_an_error() {
        let mut cut = gzip(&b"https://mcp.example.test/mcp\n".repeat(10_000));
        cut.truncate(cut.len() - 12);
        let outcome = Input::open(cut.as_slice()).and_then(Input::whole);
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
