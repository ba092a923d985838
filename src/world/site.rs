//! What a world knows of its servers while it runs: what each was last asked, what all of them saw.
//! It answers nothing; `serve` does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::case::Script;
use super::request::Request;

/// How many requests are remembered, and how many sessions.
const MEMORY: usize = 1 << 16;

/// How long a chunk waits for the request that it answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request as its server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The case's id, or the row's name.
    pub name: String,
    /// GET, POST or DELETE.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The JSON-RPC method; empty where there is none.
    pub rpc: String,
    /// When the whole request had arrived.
    pub at: Instant,
    /// The headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
}

/// What all servers of a world saw, and the sessions that they have open.
#[derive(Debug, Default)]
pub(super) struct Log {
    seen: Mutex<Vec<Seen>>,
    open: Mutex<BTreeSet<(String, String)>>,
    sessions: AtomicU64,
}

/// One server: a script, its addresses, and what it was last asked.
#[derive(Debug)]
pub(super) struct Site {
    pub(super) name: String,
    pub(super) script: Script,
    /// The server speaks MCP beyond `initialize`.
    pub(super) speaks: bool,
    pub(super) hostname: String,
    pub(super) base: String,
    pub(super) other_base: String,
    pub(super) last: Mutex<Arc<Asked>>,
    /// How many POSTs to each path have been answered.
    pub(super) posts: watch::Sender<BTreeMap<String, u64>>,
}

/// What tokens need of a request that carries an id.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) version: String,
    pub(super) body: Vec<u8>,
}

impl Asked {
    /// What a request asks; `None` where it carries no id.
    pub(super) fn of(request: &Request) -> Option<Self> {
        Some(Self {
            id: request.id()?,
            version: request.asked_version().to_owned(),
            body: request.body.clone(),
        })
    }
}

impl Default for Asked {
    fn default() -> Self {
        Self {
            id: "1".to_owned(),
            version: Request::default().asked_version().to_owned(),
            body: b"{}".to_vec(),
        }
    }
}

impl Site {
    /// Notes a request; gives what it asks, where it carries an id.
    pub(super) fn hear(&self, request: &Request) -> Option<Arc<Asked>> {
        let asked = Arc::new(Asked::of(request)?);
        *held(&self.last) = Arc::clone(&asked);
        Some(asked)
    }

    /// What was last asked with an id.
    pub(super) fn last(&self) -> Arc<Asked> {
        Arc::clone(&held(&self.last))
    }

    /// Waits until more POSTs to `path` have been answered than in `before`; false when none comes.
    pub(super) async fn posted(&self, path: &str, before: &BTreeMap<String, u64>) -> bool {
        let had = before.get(path).copied().unwrap_or_default();
        let mut posts = self.posts.subscribe();
        let more = posts.wait_for(|now| now.get(path).is_some_and(|&count| count > had));
        matches!(tokio::time::timeout(PATIENCE, more).await, Ok(Ok(_)))
    }

    /// A POST to `path` has been answered.
    pub(super) fn answered_post(&self, path: &str) {
        self.posts.send_modify(|posts| {
            if posts.len() < MEMORY {
                *posts.entry(path.to_owned()).or_default() += 1;
            }
        });
    }
}

impl Log {
    /// Notes a request.
    pub(super) fn saw(&self, name: &str, request: &Request) {
        let mut seen = held(&self.seen);
        if seen.len() < MEMORY {
            seen.push(Seen {
                name: name.to_owned(),
                method: request.method.clone(),
                path: request.path().to_owned(),
                rpc: request.rpc_method().to_owned(),
                at: Instant::now(),
                headers: request.headers.clone(),
            });
        }
    }

    /// What was seen, in order of arrival.
    pub(super) fn seen(&self) -> Vec<Seen> {
        held(&self.seen).clone()
    }

    /// A session id that no server of this world has given yet.
    pub(super) fn new_session(&self) -> String {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        format!("session-{number:08}")
    }

    /// A server has handed out a session.
    pub(super) fn opened(&self, name: &str, session: &str) {
        let mut open = held(&self.open);
        if open.len() < MEMORY {
            open.insert((name.to_owned(), session.to_owned()));
        }
    }

    /// A server has closed one.
    pub(super) fn closed(&self, name: &str, session: &str) {
        held(&self.open).remove(&(name.to_owned(), session.to_owned()));
    }

    /// How many sessions are open.
    pub(super) fn open(&self) -> usize {
        held(&self.open).len()
    }
}

/// Nothing that is done under these locks leaves them half-done, so a panic elsewhere spoils nothing.
fn held<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
