//! A response as it comes in: its head, and its body chunk by chunk, no further than it tells anything.

use reqwest::Response;

use crate::body;
use crate::coding::{BODY_LIMIT, CodingFlaw, Decoder};
use crate::exchange::{Answer, Body, BodyEnd};

/// What is read of a web page: its title and its words stand at the start, in bytes.
const PAGE_LIMIT: usize = 16 << 10;

/// What is kept of a body that passed the limit, in bytes.
const OVER_LIMIT_KEPT: usize = 64 << 10;

/// A body being read.
#[derive(Default)]
pub(super) struct Reading {
    raw: Vec<u8>,
    /// Decoded so far; what a decision to stop rests on.
    decoded: usize,
    decoder: Option<Decoder>,
    start: Vec<u8>,
}

impl Reading {
    pub(super) fn new(answer: &Answer) -> Self {
        let label = answer
            .all("content-encoding")
            .collect::<Vec<_>>()
            .join(", ");
        Self {
            decoder: if Decoder::is_needed(&label) {
                Decoder::new(&label)
            } else {
                None
            },
            ..Self::default()
        }
    }

    /// Takes a chunk; gives what it decodes to, or how the body ends with it.
    pub(super) fn take(&mut self, chunk: &[u8]) -> Result<Vec<u8>, BodyEnd> {
        if self.raw.len() + chunk.len() > BODY_LIMIT {
            self.raw
                .extend_from_slice(&chunk[..BODY_LIMIT - self.raw.len()]);
            return Err(BodyEnd::OverLimit);
        }
        self.raw.extend_from_slice(chunk);
        let fresh = match &mut self.decoder {
            // A wrong coding is for `body` to find; the bytes are read to their end all the same.
            Some(decoder) => match decoder.push(chunk) {
                Ok(fresh) => fresh,
                Err(CodingFlaw::OverLimit) => return Err(BodyEnd::OverLimit),
                Err(_) => Vec::new(),
            },
            None => chunk.to_vec(),
        };
        self.decoded += fresh.len();
        if self.decoded > BODY_LIMIT {
            return Err(BodyEnd::OverLimit);
        }
        let room = 1024usize.saturating_sub(self.start.len()).min(fresh.len());
        self.start.extend_from_slice(&fresh[..room]);
        Ok(fresh)
    }

    pub(super) fn is_page(&self) -> bool {
        self.decoded >= PAGE_LIMIT && body::is_html(&String::from_utf8_lossy(&self.start))
    }

    pub(super) fn kept(mut self, end: BodyEnd) -> Body {
        if end == BodyEnd::OverLimit {
            self.raw.truncate(OVER_LIMIT_KEPT);
        }
        Body(self.raw)
    }
}

/// The status line and headers of a response.
pub(super) fn head(response: &Response) -> Answer {
    let headers = response.headers().iter().map(|(name, value)| {
        let value = std::str::from_utf8(value.as_bytes()).map_or_else(
            |_| {
                value
                    .as_bytes()
                    .iter()
                    .map(|&byte| char::from(byte))
                    .collect()
            },
            str::to_owned,
        );
        (name.as_str().to_owned(), value)
    });
    Answer {
        version: format!("{:?}", response.version()),
        status: response.status().as_u16(),
        headers: headers.collect(),
        body: Body::default(),
        end: BodyEnd::Complete,
    }
}
