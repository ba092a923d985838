//! A registry's pages -> a frozen list on disk: walked at an easy pace, taken up again where it broke off, and
//! never passed off as whole when a page is missing. What a page says is told by `list::page`.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use url::Url;

use crate::coding;
use crate::exchange::{BodyEnd, Fault, Leg, Reply};
use crate::inquiry::Ask;
use crate::list::page::{self, Frozen, Page};
use crate::mcp::{self, Identity};
use crate::probe::Prober;
use crate::{scan, store, story, target};

/// The official registry.
pub const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

/// The path of the list under a registry's base address.
const SERVERS: &str = "v0.1/servers";

/// The longest that we wait at a registry's word.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// How far an increment reaches back before the time it is asked for: clocks differ, and a walk takes a while.
const OVERLAP: SignedDuration = SignedDuration::from_hours(1);

/// How to walk.
#[derive(Debug, Clone)]
pub struct Walk {
    /// The registry's base address, or that of its list.
    pub registry: Url,
    /// Entries asked for on a page.
    pub page_size: u32,
    /// Pages read at most.
    pub max_pages: usize,
    /// Entries read at most.
    pub max_servers: u64,
    /// The least time between two requests.
    pub every: Duration,
    /// Times that a page is asked for.
    pub tries: u32,
    /// The wait after a first failure; it doubles with each further one.
    pub backoff: Duration,
    /// Only what has changed since.
    pub since: Option<Since>,
}

/// From when on an increment is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// From this time.
    Time(Timestamp),
    /// From the start of the walk that the list comes from.
    Last,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            registry: Url::parse(OFFICIAL).expect("the address is a constant"),
            page_size: 100,
            max_pages: 5000,
            max_servers: 500_000,
            every: Duration::from_secs(1),
            tries: 5,
            backoff: Duration::from_secs(1),
            since: None,
        }
    }
}

/// What is known of a frozen list, in a file beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sidecar {
    /// The registry, without its secrets.
    pub registry: String,
    /// What every page was asked for with, but for the cursor.
    pub query: String,
    /// When the walk began.
    pub started_at: Timestamp,
    /// Every page was read.
    pub complete: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Going on from here makes sense: the registry itself is not at fault.
    pub resumable: bool,
    /// Where the next page starts.
    pub next_cursor: Option<String>,
    /// Entries read.
    pub entries: u64,
    /// The bytes they take in the list.
    pub bytes: u64,
    /// The SHA-256 of the list, once it is finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The pages, in order.
    pub pages: Vec<PageRead>,
}

/// How a fetch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// What was read.
    pub state: Sidecar,
    /// It stands in the list. A whole list of before stays where what was read now is not whole.
    pub published: bool,
}

/// A page as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRead {
    /// The cursor it was asked for with.
    pub cursor: Option<String>,
    /// The SHA-256 of its bytes.
    pub sha256: String,
    /// Its entries.
    pub entries: u64,
    /// When it was read.
    pub read_at: Timestamp,
}

/// Why no page came.
enum Miss {
    /// It may come another time.
    Passing(String, Option<Duration>),
    /// It will not.
    Lasting(String),
}

/// The file beside a frozen list that tells how it came about.
#[must_use]
pub fn sidecar(list: &Path) -> PathBuf {
    beside(list, ".meta.json")
}

fn beside(list: &Path, ending: &str) -> PathBuf {
    let mut name = list.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Whether a file is a frozen list that is known not to be whole, by what stands beside it.
#[must_use]
pub fn is_partial(list: &Path) -> bool {
    read_sidecar(list).is_some_and(|it| !it.complete)
}

fn read_sidecar(list: &Path) -> Option<Sidecar> {
    serde_json::from_slice(&fs::read(sidecar(list)).ok()?).ok()
}

fn write_sidecar(list: &Path, state: &Sidecar) -> Result<()> {
    store::replace(&sidecar(list), |to| {
        serde_json::to_writer_pretty(&mut *to, state)?;
        Ok(to.write_all(b"\n")?)
    })
}

/// Walks a registry and leaves its list at `out`. What comes back says whether the list is whole; where it is not,
/// a whole list of before stays as it is, and the walk can be taken up again.
///
/// # Errors
/// When nothing could be read at all, or a file cannot be read or written.
pub async fn fetch(
    prober: &Prober,
    identity: &Identity,
    walk: &Walk,
    out: &Path,
    mut on_page: impl FnMut(&Sidecar),
) -> Result<Fetched> {
    ensure!(
        walk.registry.username().is_empty() && walk.registry.password().is_none(),
        "the registry's address has credentials in it; leave them out"
    );
    let since = since(walk, out)?;
    let (url, query) = list_url(walk, since)?;
    let part = beside(out, ".part");
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&part)
        .with_context(|| format!("cannot write {}", part.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => bail!("another fetch writes {}", part.display()),
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", part.display()));
        }
    }
    let mut state = begun(&part, &walk.registry, &query, file.metadata()?.len());
    file.set_len(state.bytes)?;
    file.seek(SeekFrom::End(0))?;
    let mut clerk = Clerk {
        prober,
        identity,
        walk,
        next_start: Instant::now(),
    };
    let mut seen: HashSet<String> = state
        .pages
        .iter()
        .filter_map(|it| it.cursor.clone())
        .chain(state.next_cursor.clone())
        .collect();
    loop {
        if let Some(why) = cap(walk, &state) {
            state.why = Some(why);
            break;
        }
        let cursor = state.next_cursor.clone();
        let (bytes, page) = match clerk.page(&url, cursor.as_deref()).await {
            Ok(read) => read,
            Err(why) => {
                state.why = Some(format!("page {}: {why}", state.pages.len() + 1));
                break;
            }
        };
        for entry in &page.entries {
            let line = format!("{}\n", entry.json);
            file.write_all(line.as_bytes())
                .with_context(|| format!("cannot write {}", part.display()))?;
            state.bytes += line.len() as u64;
        }
        file.flush()?;
        state.entries += page.entries.len() as u64;
        state.pages.push(PageRead {
            cursor,
            sha256: hex(&Sha256::digest(&bytes)),
            entries: page.entries.len() as u64,
            read_at: Timestamp::now(),
        });
        state.next_cursor = page.next;
        if let Some(next) = &state.next_cursor {
            if !seen.insert(next.clone()) {
                state.why = Some(format!(
                    "page {}: the registry repeats the cursor {next:?}",
                    state.pages.len()
                ));
                state.resumable = false;
            }
        } else {
            state.complete = true;
        }
        write_sidecar(&part, &state)?;
        on_page(&state);
        if state.complete || !state.resumable {
            break;
        }
    }
    write_sidecar(&part, &state)?;
    drop(file);
    let published = publish(&part, out, walk.since.is_some(), &mut state)?;
    Ok(Fetched { state, published })
}

/// The time that an increment is asked from.
fn since(walk: &Walk, out: &Path) -> Result<Option<Timestamp>> {
    let Some(since) = walk.since else {
        return Ok(None);
    };
    let kept = read_sidecar(out).filter(|_| out.exists()).with_context(|| {
        format!(
            "{} is no fetched list that an increment could be worked into; fetch it without --since first",
            out.display()
        )
    })?;
    ensure!(
        kept.complete,
        "{} is not whole; fetch it without --since first",
        out.display()
    );
    ensure!(
        kept.registry == target::redacted(&walk.registry),
        "{} comes from {}; an increment must come from there as well",
        out.display(),
        kept.registry
    );
    let from = match since {
        Since::Time(time) => time,
        Since::Last => kept.started_at,
    };
    Ok(Some(from.checked_sub(OVERLAP).unwrap_or(from)))
}

/// The address of the list, with all of its query but the cursor, and our part of that query.
fn list_url(walk: &Walk, since: Option<Timestamp>) -> Result<(Url, String)> {
    let mut url = walk.registry.clone();
    url.set_fragment(None);
    if !url.path().trim_end_matches('/').ends_with("/servers") {
        let path = format!("{}/{SERVERS}", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    ensure!(
        matches!(url.scheme(), "http" | "https"),
        "{}: a registry has an http or https address",
        target::redacted(&url)
    );
    let mut ours = vec![
        ("version", "latest".to_owned()),
        ("limit", walk.page_size.to_string()),
    ];
    if let Some(since) = since {
        let since = since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        ours.push(("updated_since", since));
    }
    let mut said = Vec::new();
    for (key, value) in &ours {
        url.query_pairs_mut().append_pair(key, value);
        said.push(format!("{key}={value}"));
    }
    Ok((url, said.join("&")))
}

/// The walk that broke off, where it was the same one; else a new one.
fn begun(part: &Path, registry: &Url, query: &str, length: u64) -> Sidecar {
    let fresh = Sidecar {
        registry: target::redacted(registry),
        query: query.to_owned(),
        started_at: Timestamp::now(),
        complete: false,
        why: None,
        resumable: true,
        next_cursor: None,
        entries: 0,
        bytes: 0,
        sha256: None,
        pages: Vec::new(),
    };
    read_sidecar(part)
        .filter(|kept| {
            kept.resumable
                && !kept.complete
                && kept.next_cursor.is_some()
                && kept.bytes <= length
                && (&kept.registry, &kept.query) == (&fresh.registry, &fresh.query)
        })
        .map_or(fresh, |kept| Sidecar { why: None, ..kept })
}

/// Whether the walk has come to where it was told to stop.
fn cap(walk: &Walk, state: &Sidecar) -> Option<String> {
    if state.pages.len() >= walk.max_pages {
        Some(format!(
            "stopped after {} pages as told by --max-pages, and the registry has more",
            state.pages.len()
        ))
    } else if state.entries >= walk.max_servers {
        Some(format!(
            "stopped after {} servers as told by --max-servers, and the registry has more",
            state.entries
        ))
    } else {
        None
    }
}

/// Who asks for pages.
struct Clerk<'a> {
    prober: &'a Prober,
    identity: &'a Identity,
    walk: &'a Walk,
    next_start: Instant,
}

impl Clerk<'_> {
    /// A page and its bytes, asked for as often as is sensible.
    async fn page(&mut self, list: &Url, cursor: Option<&str>) -> Result<(Vec<u8>, Page), String> {
        let mut url = list.clone();
        if let Some(cursor) = cursor {
            url.query_pairs_mut().append_pair("cursor", cursor);
            // Not every server takes a plus for a space.
            let query = url.query().unwrap_or_default().replace('+', "%20");
            url.set_query(Some(&query));
        }
        let mut tried = 0;
        loop {
            let (why, asked) = match self.ask(&url).await {
                Ok(read) => return Ok(read),
                Err(Miss::Lasting(why)) => return Err(why),
                Err(Miss::Passing(why, asked)) => (why, asked),
            };
            tried += 1;
            if tried >= self.walk.tries.max(1) {
                return Err(format!("{why}, {tried} times"));
            }
            if let Some(asked) = asked.filter(|it| *it > LONGEST_WAIT) {
                return Err(format!("{why}, to wait for {} s", asked.as_secs()));
            }
            let doubled = self.walk.backoff * 2u32.saturating_pow(tried - 1);
            let wait = asked.unwrap_or_else(|| jittered(doubled.min(LONGEST_WAIT)));
            self.next_start = self.next_start.max(Instant::now() + wait);
        }
    }

    async fn ask(&mut self, url: &Url) -> Result<(Vec<u8>, Page), Miss> {
        tokio::time::sleep_until(self.next_start).await;
        self.next_start = Instant::now() + self.walk.every;
        let ask = Ask {
            attempt: 0,
            leg: Leg::RegistryPage,
            request: self.identity.document(url),
            wait_ms: 0,
            half_time: false,
            version: mcp::ASKED_VERSION.to_owned(),
        };
        let way = self.prober.find(Some(url.clone())).await;
        let exchanges = self
            .prober
            .send(0, &ask, &way, None, || std::future::ready(()))
            .await;
        let Some(exchange) = exchanges.into_iter().next() else {
            return Err(Miss::Passing("nothing was exchanged".to_owned(), None));
        };
        let answer = match exchange.reply {
            Reply::Answer(answer) => answer,
            Reply::Fault(fault @ (Fault::PrivateAddress(_) | Fault::Excluded)) => {
                return Err(Miss::Lasting(story::words(fault)));
            }
            Reply::Fault(fault) => return Err(Miss::Passing(story::words(fault), None)),
        };
        match answer.status {
            200 => {}
            429 | 500..=599 => {
                let asked = scan::retry_after(&answer, exchange.started_at);
                return Err(Miss::Passing(format!("HTTP {}", answer.status), asked));
            }
            status @ 300..=399 => {
                let to = answer.header("location").map(target::redacted_raw);
                return Err(Miss::Lasting(format!(
                    "HTTP {status} to {}; name that with --registry",
                    to.unwrap_or_default()
                )));
            }
            status => return Err(Miss::Lasting(format!("HTTP {status}"))),
        }
        match answer.end {
            BodyEnd::Complete => {}
            BodyEnd::OverLimit => {
                return Err(Miss::Lasting(format!(
                    "it has more than {} MiB; ask for less with --page-size",
                    coding::BODY_LIMIT >> 20
                )));
            }
            BodyEnd::Broken(fault) => return Err(Miss::Passing(story::words(fault), None)),
            BodyEnd::Left | BodyEnd::Page => {
                return Err(Miss::Lasting("it is a web page".to_owned()));
            }
        }
        let label = answer.header("content-encoding").unwrap_or_default();
        let decoded = coding::decode(&label.to_ascii_lowercase(), &answer.body.0, true);
        // A page that is cut short may come whole the next time.
        let page =
            page::read(&decoded.bytes).map_err(|error| Miss::Passing(error.to_string(), None))?;
        Ok((decoded.bytes, page))
    }
}

/// Between half and one and a half times as long: those who failed together do not come back together.
fn jittered(wait: Duration) -> Duration {
    let random = std::hash::RandomState::new().build_hasher().finish();
    let thousandths = u32::try_from(random % 1000).unwrap_or(500) + 500;
    wait * thousandths / 1000
}

/// Puts what was read in its place, and says whether it is there.
fn publish(part: &Path, out: &Path, is_increment: bool, state: &mut Sidecar) -> Result<bool> {
    if !state.complete {
        let why = state.why.clone().unwrap_or_default();
        let Some(cursor) = state.next_cursor.clone().filter(|_| !is_increment) else {
            if state.pages.is_empty() {
                let _ = fs::remove_file(part);
                let _ = fs::remove_file(sidecar(part));
            }
            bail!("{}: {why}; nothing was changed", state.registry);
        };
        if out.exists() && !is_partial(out) {
            return Ok(false);
        }
        let mut read = File::open(part)?;
        store::replace(out, |to| {
            std::io::copy(&mut read, to)?;
            Ok(writeln!(to, "{}", page::more_follows(&cursor))?)
        })?;
        state.sha256 = Some(hash(out)?);
        write_sidecar(out, state)?;
        return Ok(true);
    }
    if is_increment {
        let mut frozen = Frozen::default();
        each_line(out, |line| Ok(frozen.read_line(line)?))?;
        each_line(part, |line| {
            frozen.upsert(page::line(line)?);
            Ok(())
        })?;
        let text = frozen.text();
        store::replace(out, |to| Ok(to.write_all(text.as_bytes())?))?;
        state.bytes = text.len() as u64;
        let _ = fs::remove_file(part);
    } else {
        if state.entries == 0 {
            let _ = fs::remove_file(part);
            let _ = fs::remove_file(sidecar(part));
            bail!(
                "{} lists no server; is this the registry's base address?",
                state.registry
            );
        }
        fs::rename(part, out).with_context(|| format!("cannot write {}", out.display()))?;
    }
    state.sha256 = Some(hash(out)?);
    write_sidecar(out, state)?;
    let _ = fs::remove_file(sidecar(part));
    Ok(true)
}

fn each_line(path: &Path, mut each: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let read = line.map_err(anyhow::Error::from).and_then(|it| each(&it));
        read.with_context(|| format!("{}, line {}", path.display(), number + 1))?;
    }
    Ok(())
}

fn hash(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            return Ok(hex(&hash.finalize()));
        }
        hash.update(&buffer[..length]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}
