//! Content codings undone (RFC 9110 §8.4.1), incrementally and bounded. Pure: bytes in, bytes out.
//! Which coding a body should have is the caller's to say.

use std::io::{self, Write};

/// What we read of a body at most, in bytes, as sent and decoded.
pub const BODY_LIMIT: usize = 4 << 20;

/// A body read through its content codings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// The bytes, up to the first flaw.
    pub bytes: Vec<u8>,
    /// What went wrong.
    pub flaw: Option<CodingFlaw>,
}

/// Why a body could not be decoded to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodingFlaw {
    /// The bytes are not in that coding, or the coding is unknown.
    Wrong,
    /// They are, and end too early.
    Truncated,
    /// They decode to more than the limit.
    OverLimit,
}

/// Undoes the codings of a body as it arrives.
pub struct Decoder(Box<dyn Stage>);

/// Every coding that is registered (IANA HTTP Content Coding Registry). Servers also write `utf-8` or `binary`
/// there, which change no byte.
const REGISTERED: [&str; 10] = [
    "aes128gcm",
    "br",
    "compress",
    "dcb",
    "dcz",
    "deflate",
    "exi",
    "gzip",
    "pack200-gzip",
    "zstd",
];

/// The codings that a Content-Encoding names, in the order they were applied.
fn codings(value: &str) -> impl DoubleEndedIterator<Item = String> {
    let names = value
        .split(',')
        .map(|coding| coding.trim().to_ascii_lowercase());
    names
        .map(|name| name.strip_prefix("x-").map(str::to_owned).unwrap_or(name))
        .filter(|name| REGISTERED.contains(&name.as_str()))
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Decoder").finish()
    }
}

impl Decoder {
    /// Whether a Content-Encoding names any coding.
    #[must_use]
    pub fn is_needed(content_encoding: &str) -> bool {
        codings(content_encoding).next().is_some()
    }

    /// A decoder for the value of Content-Encoding, as joined from all its lines. `None` where we cannot undo a coding.
    #[must_use]
    pub fn new(content_encoding: &str) -> Option<Self> {
        let mut stage: Box<dyn Stage> = Box::new(Sink(Vec::new()));
        for coding in codings(content_encoding) {
            stage = match coding.as_str() {
                "gzip" => Box::new(flate2::write::MultiGzDecoder::new(stage)),
                "deflate" => Box::new(Deflate::Unknown(Some(stage))),
                "br" => Box::new(brotli::DecompressorWriter::new(stage, 4096)),
                _ => return None,
            };
        }
        Some(Self(stage))
    }

    /// Takes the next bytes; gives what has been decoded since.
    ///
    /// # Errors
    /// When the bytes are not in the coding, or decode to more than [`BODY_LIMIT`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<u8>, CodingFlaw> {
        let pushed = self.0.write_all(bytes).and_then(|()| self.0.flush());
        let out = std::mem::take(self.0.sink());
        match pushed {
            Ok(()) => Ok(out),
            Err(error)
                if error.get_ref().is_some_and(
                    <dyn std::error::Error + std::marker::Send + std::marker::Sync + 'static>::is::<
                        Full,
                    >,
                ) =>
            {
                Err(CodingFlaw::OverLimit)
            }
            Err(_) => Err(CodingFlaw::Wrong),
        }
    }
}

/// Undoes the codings of a whole body. `complete` says that no more of it will come.
#[must_use]
pub fn decode(content_encoding: &str, body: &[u8], complete: bool) -> Decoded {
    if !Decoder::is_needed(content_encoding) {
        return Decoded {
            bytes: body.to_vec(),
            flaw: None,
        };
    }
    let Some(Decoder(mut stage)) = Decoder::new(content_encoding) else {
        return Decoded {
            bytes: Vec::new(),
            flaw: Some(CodingFlaw::Wrong),
        };
    };
    // In pieces, so that what precedes a flaw is kept.
    let mut flaw = None;
    for piece in body.chunks(4096) {
        if let Err(error) = stage.write_all(piece).and_then(|()| stage.flush()) {
            flaw = Some(
                if error.get_ref().is_some_and(
                    <dyn std::error::Error + std::marker::Send + std::marker::Sync + 'static>::is::<
                        Full,
                    >,
                ) {
                    CodingFlaw::OverLimit
                } else {
                    CodingFlaw::Wrong
                },
            );
            break;
        }
    }
    if flaw.is_none() && complete && !body.is_empty() && stage.end().is_err() {
        flaw = Some(CodingFlaw::Truncated);
    }
    let bytes = std::mem::take(stage.sink());
    Decoded { bytes, flaw }
}

/// A step of the chain; the innermost holds what came out.
trait Stage: Write + Send {
    fn sink(&mut self) -> &mut Vec<u8>;
    /// The input has ended: is this a whole body?
    fn end(&mut self) -> io::Result<()>;
}

/// What came out, up to the limit.
struct Sink(Vec<u8>);

/// The limit was passed.
#[derive(Debug, thiserror::Error)]
#[error("decodes to more than {BODY_LIMIT} bytes")]
struct Full;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > BODY_LIMIT {
            return Err(io::Error::other(Full));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stage for Sink {
    fn sink(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stage for Box<dyn Stage> {
    fn sink(&mut self) -> &mut Vec<u8> {
        (**self).sink()
    }
    fn end(&mut self) -> io::Result<()> {
        (**self).end()
    }
}

impl Stage for flate2::write::MultiGzDecoder<Box<dyn Stage>> {
    fn sink(&mut self) -> &mut Vec<u8> {
        self.get_mut().sink()
    }
    fn end(&mut self) -> io::Result<()> {
        self.try_finish()?;
        self.get_mut().end()
    }
}

impl Stage for brotli::DecompressorWriter<Box<dyn Stage>> {
    fn sink(&mut self) -> &mut Vec<u8> {
        self.get_mut().sink()
    }
    fn end(&mut self) -> io::Result<()> {
        self.close()?;
        self.get_mut().end()
    }
}

/// `deflate` is zlib by the book (RFC 9110 §8.4.1.2) and raw deflate in the field; the first byte tells.
enum Deflate {
    Unknown(Option<Box<dyn Stage>>),
    Zlib(flate2::write::ZlibDecoder<Box<dyn Stage>>),
    Raw(flate2::write::DeflateDecoder<Box<dyn Stage>>),
}

impl Write for Deflate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let (Self::Unknown(stage), Some(first)) = (&mut *self, bytes.first())
            && let Some(stage) = stage.take()
        {
            *self = if first & 0x0F == 8 {
                Self::Zlib(flate2::write::ZlibDecoder::new(stage))
            } else {
                Self::Raw(flate2::write::DeflateDecoder::new(stage))
            };
        }
        match self {
            Self::Unknown(_) => Ok(0),
            Self::Zlib(inner) => inner.write(bytes),
            Self::Raw(inner) => inner.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Unknown(_) => Ok(()),
            Self::Zlib(inner) => inner.flush(),
            Self::Raw(inner) => inner.flush(),
        }
    }
}

impl Stage for Deflate {
    fn sink(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Unknown(stage) => stage
                .as_mut()
                .expect("taken only when the variant changes")
                .sink(),
            Self::Zlib(inner) => inner.get_mut().sink(),
            Self::Raw(inner) => inner.get_mut().sink(),
        }
    }
    fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Unknown(_) => Err(io::ErrorKind::UnexpectedEof.into()),
            Self::Zlib(inner) => inner.try_finish().and_then(|()| inner.get_mut().end()),
            Self::Raw(inner) => inner.try_finish().and_then(|()| inner.get_mut().end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_was_coded_is_decoded() {
        assert_eq!(
            decode("gzip", &gzip(b"hello"), true),
            Decoded {
                bytes: b"hello".into(),
                flaw: None
            }
        );
        for label in ["identity", "utf-8", "none", ""] {
            assert_eq!(
                decode(label, b"hello", true),
                Decoded {
                    bytes: b"hello".into(),
                    flaw: None
                }
            );
        }
        assert_eq!(decode("X-GZIP", &gzip(b"hello"), true).bytes, b"hello");
        assert_eq!(
            decode("gzip, gzip", &gzip(&gzip(b"hello")), true),
            Decoded {
                bytes: b"hello".into(),
                flaw: None
            }
        );
        let mut br = Vec::new();
        brotli::CompressorWriter::new(&mut br, 4096, 5, 20)
            .write_all(b"hello")
            .unwrap();
        assert_eq!(
            decode("br", &br, true),
            Decoded {
                bytes: b"hello".into(),
                flaw: None
            }
        );
        for zlib in [true, false] {
            let mut out = Vec::new();
            if zlib {
                flate2::write::ZlibEncoder::new(&mut out, Compression::fast())
                    .write_all(b"hello")
                    .unwrap();
            } else {
                flate2::write::DeflateEncoder::new(&mut out, Compression::fast())
                    .write_all(b"hello")
                    .unwrap();
            }
            assert_eq!(
                decode("deflate", &out, true),
                Decoded {
                    bytes: b"hello".into(),
                    flaw: None
                }
            );
        }
    }

    #[test]
    fn a_wrong_coding_is_told_from_a_short_body_and_from_a_bomb() {
        assert_eq!(
            decode("gzip", b"{\"jsonrpc\"", true).flaw,
            Some(CodingFlaw::Wrong)
        );
        assert_eq!(decode("zstd", b"x", true).flaw, Some(CodingFlaw::Wrong));
        let whole = gzip(b"hello");
        assert_eq!(
            decode("gzip", &whole[..whole.len() - 4], true).flaw,
            Some(CodingFlaw::Truncated)
        );
        assert_eq!(decode("gzip", &whole[..whole.len() - 4], false).flaw, None);
        let bomb = gzip(&vec![b' '; BODY_LIMIT + 1]);
        assert_eq!(
            decode("gzip", &bomb, true).flaw,
            Some(CodingFlaw::OverLimit)
        );
    }

    #[test]
    fn events_come_out_as_they_arrive() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"data: x\n\n").unwrap();
        encoder.flush().unwrap();
        let mut decoder = Decoder::new("gzip").unwrap();
        assert_eq!(decoder.push(encoder.get_ref()).unwrap(), b"data: x\n\n");
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_under_any_label(bytes: Vec<u8>, label in "(gzip|br|deflate|,|identity|zstd){0,3}") {
            let _ = decode(&label, &bytes, true);
        }
    }
}
