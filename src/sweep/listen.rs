//! What is going on, to be asked for over HTTP: `/metrics` for Prometheus, and `/healthz`. What is told is
//! `periodic::metrics`'s affair.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::manifest::RULES_VERSION;
use crate::periodic::metrics::{Meters, Standing, exposition};
use crate::store;

/// The longest head of a request, in bytes.
const HEAD: usize = 8 << 10;

/// How long a request may take to come in, and its answer to go out.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests answered at once.
const AT_ONCE: usize = 16;

/// A loop that has not looked at the clock for this long, and runs nothing, is stuck.
const STUCK: Duration = Duration::from_mins(5);

/// What is told.
#[derive(Debug, Default)]
pub struct Board {
    /// What is counted while scans run.
    pub meters: Arc<Meters>,
    standings: Mutex<BTreeMap<String, Standing>>,
    looked: Mutex<Option<Instant>>,
    /// Where the same is written for node-exporter.
    textfile: Option<PathBuf>,
}

impl Board {
    /// A board that is also written to a file, where one is given.
    #[must_use]
    pub fn new(textfile: Option<PathBuf>) -> Self {
        Self {
            textfile,
            ..Self::default()
        }
    }

    /// Takes note of how a sweep stands.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn note(&self, sweep: &str, standing: &Standing) -> Result<()> {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let mut standings = self
            .standings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if standings.get(sweep) == Some(standing) {
            return Ok(());
        }
        standings.insert(sweep.to_owned(), standing.clone());
        drop(standings);
        let Some(path) = &self.textfile else {
            return Ok(());
        };
        store::replace(path, |to| Ok(to.write_all(self.text().as_bytes())?))
    }

    fn text(&self) -> String {
        let standings = self
            .standings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        exposition(
            env!("CARGO_PKG_VERSION"),
            RULES_VERSION,
            &self.meters,
            &standings,
        )
    }

    /// Whether the loop goes round.
    fn is_well(&self) -> bool {
        let standings = self
            .standings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let looked = *self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        standings.values().any(|it| it.is_running) || looked.is_some_and(|it| it.elapsed() < STUCK)
    }
}

/// Listens, and answers until the runtime ends. Gives the address it listens at.
///
/// # Errors
/// When it cannot listen there.
pub async fn listen(at: SocketAddr, board: Arc<Board>) -> Result<SocketAddr> {
    let listener = TcpListener::bind(at)
        .await
        .with_context(|| format!("cannot listen at {at}"))?;
    let at = listener
        .local_addr()
        .context("cannot tell where it listens")?;
    let places = Arc::new(Semaphore::new(AT_ONCE));
    tokio::spawn(async move {
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of descriptors, most often: a scan has them, and gives them back.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let board = Arc::clone(&board);
            tokio::spawn(async move {
                // Who does not ask in time is not answered.
                let _ = timeout(PATIENCE, answer(stream, &board)).await;
                drop(place);
            });
        }
    });
    Ok(at)
}

async fn answer(mut stream: TcpStream, board: &Board) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut block = [0; 1024];
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        let length = stream.read(&mut block).await?;
        if length == 0 || head.len() + length > HEAD {
            return Ok(());
        }
        head.extend_from_slice(&block[..length]);
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split_whitespace();
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let path = path.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => (
            "200 OK",
            "text/plain; version=0.0.4; charset=utf-8",
            board.text(),
        ),
        ("GET" | "HEAD", "/healthz") if board.is_well() => {
            ("200 OK", "text/plain", "ok\n".to_owned())
        }
        ("GET" | "HEAD", "/healthz") => (
            "503 Service Unavailable",
            "text/plain",
            "stuck\n".to_owned(),
        ),
        ("GET" | "HEAD", _) => (
            "404 Not Found",
            "text/plain",
            "see /metrics and /healthz\n".to_owned(),
        ),
        _ => ("405 Method Not Allowed", "text/plain", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}
