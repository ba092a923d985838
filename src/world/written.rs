//! A case and its scripted responses as they are written in JSON -> what they can be.
//! What the fields mean stands where those things are declared, in `case`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, de};

use super::case::{
    Body, Case, Chunk, Close, Coding, Content, Dribble, Expect, Http, Raw, RequestHint, Response,
    Script, Text, Then, Transport,
};

/// A case as it is written in JSON, which may say only what is other about it than about another.
#[derive(Deserialize)]
pub(super) struct WrittenCase {
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    why: String,
    request_hint: Option<RequestHint>,
    /// The case that it is like, earlier in the same file.
    like: Option<String>,
    response: Option<Script>,
    /// Responses that come before those of the case that it is like.
    #[serde(default)]
    then: Vec<Then>,
    #[serde(default)]
    expect: WrittenExpect,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WrittenExpect {
    category: Option<String>,
    detail: Option<String>,
    findings: Vec<String>,
    hint: Option<String>,
    also_ok: Vec<String>,
    checks: Option<BTreeMap<String, String>>,
}

impl WrittenCase {
    /// The case, given those before it.
    ///
    /// # Errors
    /// When it is like none of them, or says too little.
    pub(super) fn after(self, cases: &[Case]) -> anyhow::Result<Case> {
        let Self {
            id,
            title,
            why,
            request_hint,
            like,
            response,
            mut then,
            expect,
        } = self;
        let model = match &like {
            Some(like) => Some(
                cases
                    .iter()
                    .find(|it| it.id == *like)
                    .with_context(|| format!("{id} is like {like}, which is not before it"))?,
            ),
            None => None,
        };
        // Where the outcome is the model's, its detail and its hint are too.
        let (category, detail, hint) = match (expect.category, model) {
            (Some(category), _) => (category, expect.detail, expect.hint),
            (None, Some(model)) => {
                let known = &model.expect;
                let (detail, hint) = (known.detail.clone(), known.hint.clone());
                (known.category.clone(), detail, hint)
            }
            (None, None) => (String::new(), expect.detail, expect.hint),
        };
        let response = match (response, model) {
            (
                Some(Script {
                    response,
                    then: more,
                }),
                model,
            ) => {
                then.extend(more);
                then.extend(model.into_iter().flat_map(|it| it.response.then.clone()));
                Script { response, then }
            }
            (None, Some(model)) => {
                then.extend(model.response.then.clone());
                let response = model.response.response.clone();
                Script { response, then }
            }
            (None, None) => bail!("{id} has no response"),
        };
        Ok(Case {
            id,
            title,
            why,
            request_hint: request_hint
                .or_else(|| model.map(|it| it.request_hint.clone()))
                .unwrap_or_default(),
            response,
            expect: Expect {
                category,
                detail,
                findings: expect.findings,
                hint,
                also_ok: expect.also_ok,
                checks: expect.checks,
            },
        })
    }
}

/// A response as it is written in JSON, before it is one of the things that it can be.
#[derive(Deserialize)]
pub(super) struct Written {
    status: Option<u16>,
    reason: Option<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    header_flood_bytes: usize,
    #[serde(default)]
    body: Text,
    body_b64: Option<Base64>,
    body_b64_prefix: Option<Base64>,
    chunks: Option<Vec<WrittenChunk>>,
    encode: Option<Coding>,
    #[serde(default)]
    omit_encoding_header: bool,
    #[serde(default)]
    length_delta: i64,
    length_override: Option<i64>,
    framing: Option<String>,
    dribble: Option<Dribble>,
    #[serde(default)]
    delay_ms: u64,
    close: Option<Close>,
    raw_b64: Option<Base64>,
    #[serde(default)]
    subst: bool,
    transport: Option<Transport>,
    url: Option<String>,
    #[serde(default)]
    then: Vec<Then>,
}

#[derive(Deserialize)]
struct WrittenChunk {
    #[serde(default)]
    text: Text,
    b64: Option<Base64>,
    #[serde(default)]
    delay_ms: u64,
    repeat: Option<String>,
    after_request: Option<String>,
}

struct Base64(Vec<u8>);

impl TryFrom<Written> for Script {
    type Error = &'static str;

    fn try_from(mut written: Written) -> Result<Self, Self::Error> {
        let then = std::mem::take(&mut written.then);
        Ok(Self {
            response: written.try_into()?,
            then,
        })
    }
}

impl TryFrom<Written> for Response {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        if let Some(url) = written.url {
            return Ok(Self::Listed(url));
        }
        if let Some(transport) = written.transport {
            return Ok(Self::Transport(transport));
        }
        let delay = Duration::from_millis(written.delay_ms);
        let close = written.close.unwrap_or(Close::Clean);
        if let Some(Base64(bytes)) = written.raw_b64 {
            return Ok(Self::Raw(Raw {
                bytes,
                subst: written.subst,
                delay,
                close,
            }));
        }
        let body = if let Some(chunks) = written.chunks {
            Body::Chunks(chunks.into_iter().map(Chunk::from).collect())
        } else {
            let prefix = written.body_b64_prefix.map_or(Vec::new(), |it| it.0);
            match written.body_b64 {
                Some(Base64(bytes)) => Body::Bytes([prefix, bytes].concat()),
                None => Body::Text {
                    prefix,
                    text: written.body,
                },
            }
        };
        Ok(Self::Http(Box::new(Http {
            status: written
                .status
                .ok_or("a response has a status, raw_b64, transport or url")?,
            reason: written.reason.unwrap_or_else(|| "X".to_owned()),
            headers: written.headers,
            header_flood_bytes: written.header_flood_bytes,
            body,
            encode: written.encode,
            omit_encoding_header: written.omit_encoding_header,
            length_delta: written.length_delta,
            length_override: written.length_override,
            unterminated: written.framing.as_deref() == Some("chunked_no_terminator"),
            dribble: written.dribble,
            delay,
            close,
        })))
    }
}

impl From<WrittenChunk> for Chunk {
    fn from(written: WrittenChunk) -> Self {
        Self {
            content: match written.b64 {
                Some(Base64(bytes)) => Content::Bytes(bytes),
                None => Content::Text(written.text),
            },
            delay: Duration::from_millis(written.delay_ms),
            forever: written.repeat.as_deref() == Some("forever"),
            after_request: written.after_request,
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = Text;
            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("text")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.as_bytes().to_vec()))
            }
            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Text, E> {
                Ok(Text(bytes.to_vec()))
            }
        }
        // Asked for bytes, serde_json passes lone surrogates through as the three bytes they would be.
        from.deserialize_bytes(Bytes)
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(from)?;
        STANDARD
            .decode(text.as_bytes())
            .map(Self)
            .map_err(de::Error::custom)
    }
}
