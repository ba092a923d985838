//! A small server on loopback, for tests that script each answer.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A server on loopback that answers each request, told by its method and path, with the bytes it is given.
pub(crate) struct Loopback {
    /// Its address.
    pub(crate) at: String,
    asked: Arc<Mutex<Vec<String>>>,
    headers: Arc<Mutex<Vec<String>>>,
}

impl Loopback {
    pub(crate) fn serving(answer: impl Fn(&str, usize) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let headers = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&headers);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut lines = BufReader::new(&stream).lines();
                let Some(Ok(first)) = lines.next() else {
                    continue;
                };
                let head = lines.map_while(Result::ok).take_while(|it| !it.is_empty());
                kept.lock()
                    .unwrap()
                    .push(head.collect::<Vec<_>>().join("\n"));
                let request = first.trim_end_matches(" HTTP/1.1").to_owned();
                let number = seen.lock().unwrap().len();
                seen.lock().unwrap().push(request.clone());
                let _ = stream.write_all(&answer(&request, number));
                let _ = stream.shutdown(std::net::Shutdown::Write);
            }
        });
        Self { at, asked, headers }
    }

    /// The headers of each request, a line each.
    pub(crate) fn headers(&self) -> Vec<String> {
        self.headers.lock().unwrap().clone()
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// An HTTP response.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        body.len()
    )
    .into_bytes()
}
