//! An HTTP/1.1 request off a stream, as far as a scripted server looks at it.
//! What to answer is `case`'s to say.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// The newest version that `initialize` negotiates; what a request without one is taken to ask for.
const NEWEST: &str = "2025-11-25";

/// What we read of a request's head, and of its body, at most.
const HEAD_LIMIT: usize = 64 << 10;
const BODY_LIMIT: usize = 4 << 20;

/// A request.
#[derive(Debug, Clone, Default)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) target: String,
    /// In order; names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// The body as JSON; null where it is none.
    message: Value,
}

impl Request {
    /// Reads one request. The end of the stream before its end is an error, and so is anything that is not HTTP/1.
    pub(super) async fn read(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Self> {
        let mut head = 0;
        let first = line(from, &mut head).await?;
        let mut words = first.splitn(3, ' ');
        let (Some(method), Some(target), Some(_)) = (words.next(), words.next(), words.next())
        else {
            return Err(malformed("no request line"));
        };
        let mut request = Self {
            method: method.to_owned(),
            target: target.to_owned(),
            ..Self::default()
        };
        loop {
            let line = line(from, &mut head).await?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':') {
                let name = name.trim().to_ascii_lowercase();
                request.headers.push((name, value.trim().to_owned()));
            }
        }
        if let Some(length) = request.header("content-length") {
            let length = length.parse().map_err(|_| malformed("content-length"))?;
            take(from, length, &mut request.body).await?;
        } else if request
            .header("transfer-encoding")
            .is_some_and(|it| it.eq_ignore_ascii_case("chunked"))
        {
            loop {
                let size = line(from, &mut head).await?;
                let digits = size.split(';').next().unwrap_or_default().trim();
                let size = usize::from_str_radix(digits, 16).map_err(|_| malformed("chunk"))?;
                take(from, size, &mut request.body).await?;
                line(from, &mut head).await?;
                if size == 0 {
                    break;
                }
            }
        }
        request.message = serde_json::from_slice(&request.body).unwrap_or_default();
        Ok(request)
    }

    /// The last value of a header; `name` in any case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .rfind(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The target without its query.
    pub(super) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The host it was sent to, without the port, in lower case.
    pub(super) fn host(&self) -> String {
        let host = self.header("host").unwrap_or_default();
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        name.to_ascii_lowercase()
    }

    /// The JSON-RPC id, as JSON; `None` for a notification, or where the body is no object.
    pub(super) fn id(&self) -> Option<String> {
        self.message.get("id").map(Value::to_string)
    }

    /// The JSON-RPC method; empty where there is none.
    pub(super) fn rpc_method(&self) -> &str {
        let method = self.message.get("method").and_then(Value::as_str);
        method.unwrap_or_default()
    }

    /// The protocol version that is asked for.
    pub(super) fn asked_version(&self) -> &str {
        self.message
            .pointer("/params/protocolVersion")
            .and_then(Value::as_str)
            .filter(|it| !it.is_empty())
            .unwrap_or(NEWEST)
    }
}

/// A line without its ending. `read` counts what the head has come to.
async fn line(from: &mut (impl AsyncBufRead + Unpin), read: &mut usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    let room = (HEAD_LIMIT - *read) as u64;
    *read += from.take(room).read_until(b'\n', &mut bytes).await?;
    if bytes.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    // Latin-1, so that every byte is kept.
    Ok(bytes.into_iter().map(char::from).collect())
}

async fn take(
    from: &mut (impl AsyncBufRead + Unpin),
    length: usize,
    to: &mut Vec<u8>,
) -> io::Result<()> {
    if to.len() + length > BODY_LIMIT {
        return Err(malformed("body"));
    }
    let start = to.len();
    to.resize(start + length, 0);
    from.read_exact(&mut to[start..]).await?;
    Ok(())
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str) -> io::Result<Request> {
        Request::read(&mut text.as_bytes()).await
    }

    #[tokio::test]
    async fn a_request_is_read_with_either_framing() {
        let body = r#"{"jsonrpc":"2.0","id":"a\"b","method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
        let (front, back) = body.split_at(10);
        for framed in [
            format!("Content-Length: {}\r\n\r\n{body}", body.len()),
            format!(
                "Transfer-Encoding: Chunked\r\n\r\n{:x};x=y\r\n{front}\r\n{:x}\r\n{back}\r\n0\r\n\r\n",
                front.len(),
                back.len()
            ),
        ] {
            let request = read(&format!(
                "POST /mcp?x=1 HTTP/1.1\r\nHost: A.Demo.test:80\r\n{framed}"
            ))
            .await
            .unwrap();
            assert_eq!(request.body, body.as_bytes());
            assert_eq!(
                (request.path(), request.host().as_str()),
                ("/mcp", "a.demo.test")
            );
            assert_eq!(request.id().as_deref(), Some(r#""a\"b""#));
            assert_eq!(request.rpc_method(), "initialize");
            assert_eq!(request.asked_version(), "2025-06-18");
        }
    }

    #[tokio::test]
    async fn what_is_cut_short_or_too_long_is_an_error() {
        for text in [
            "",
            "POST /mcp HTTP/1.1\r\nHost: a",
            "POST /mcp\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc",
            "POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            &format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(20_000)),
        ] {
            assert!(read(text).await.is_err(), "{}", &text[..text.len().min(60)]);
        }
    }
}
