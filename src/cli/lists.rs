//! List files -> frozen rows, written as they are read. What a format means is `list`'s affair.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::list::{Contents, Format, Item, Source, Status};
use crate::manifest::ListFile;
use crate::outcome::Unprobeable;
use crate::registry;
use crate::roll::{Aim, Entry, Freezer, Listed};
use crate::target;

use super::say;

/// Complaints shown of one list; a file that is wrong throughout need not say so on every line.
const COMPLAINTS: usize = 10;

/// What stands for standard input.
const STDIN: &str = "-";

/// A list that was read.
pub(super) struct ListRead {
    /// What the manifest says of it.
    pub(super) file: ListFile,
    /// What was found in it.
    pub(super) contents: Contents,
}

/// Reads every list, and hands on each row as it is frozen.
///
/// # Errors
/// When a list cannot be read, or `each` fails.
pub(super) fn freeze(
    paths: &[PathBuf],
    format: Option<Format>,
    send_headers: Option<&Path>,
    freezer: &mut Freezer,
    mut each: impl FnMut(Entry) -> Result<()>,
) -> Result<Vec<ListRead>> {
    let mut lists = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let number = u32::try_from(number).context("too many lists")?;
        let send_headers = send_headers == Some(path.as_path());
        lists.push(freeze_one(
            path,
            number,
            format,
            send_headers,
            freezer,
            &mut each,
        )?);
    }
    Ok(lists)
}

fn freeze_one(
    path: &Path,
    number: u32,
    format: Option<Format>,
    send_headers: bool,
    freezer: &mut Freezer,
    each: &mut impl FnMut(Entry) -> Result<()>,
) -> Result<ListRead> {
    let name = path.display().to_string();
    let bytes: Box<dyn Read> = if name == STDIN {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(path).with_context(|| format!("cannot read {name}"))?)
    };
    let mut hashing = Hashing {
        inner: bytes,
        hash: Sha256::new(),
    };
    let mut rows = 0;
    let mut complaints = Complaints::default();
    let mut sent = BTreeSet::new();
    let mut addresses = 0u64;
    let mut failed = None;
    let source = Source {
        name: &name,
        number,
        format,
    };
    let contents = source.read(
        BufReader::with_capacity(256 << 10, &mut hashing),
        &mut |item| {
            if failed.is_some() {
                return;
            }
            rows += 1;
            let listed = match item {
                Item::Listing(listing) => {
                    addresses += u64::from(listing.url.contains("://"));
                    let refused = (listing.status == Some(Status::Deleted))
                        .then(|| (Unprobeable::Deleted, String::new()));
                    Listed {
                        list: number,
                        line: listing.line,
                        name: listing.name,
                        url: listing.url,
                        filled: listing.filled,
                        transport: listing.transport,
                        auth: listing.declared_auth.map(|it| it.name().to_owned()),
                        refused,
                        headers: if send_headers {
                            sendable(listing.headers, &mut sent)
                        } else {
                            Vec::new()
                        },
                        deprecated: listing.status == Some(Status::Deprecated),
                        extra: listing.extra,
                    }
                }
                Item::Bad(row) => {
                    complaints.add(|| Complaint::Row(row.why.clone()));
                    Listed {
                        list: number,
                        line: row.line,
                        refused: Some((Unprobeable::BadRow, row.why)),
                        ..Listed::default()
                    }
                }
            };
            let entry = freezer.freeze(listed);
            if let Some(why) = no_address(&entry) {
                complaints.add(|| Complaint::At(entry.line, why));
            }
            failed = each(entry).err();
        },
    );
    if let Some(error) = failed {
        return Err(error);
    }
    let contents = contents?;
    let format = contents.format;
    // Any text is a list of lines. One without a single address is something else.
    ensure!(
        format != Format::Text || source.format.is_some() || rows == 0 || addresses > 0,
        "{name} has no address in any of its {rows} lines; a table needs a column `url`, a text one https:// address a line"
    );
    complaints.say(&name, format.unit());
    // What the reader left unread belongs to the file all the same.
    io::copy(&mut hashing, &mut io::sink()).with_context(|| format!("cannot read {name}"))?;
    let sha256 = hashing
        .hash
        .finalize()
        .iter()
        .fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    Ok(ListRead {
        file: ListFile {
            path: name,
            format: format.name().to_owned(),
            sha256,
            rows,
            headers_sent: sent.into_iter().collect(),
            partial: contents.next_cursor.is_some() || registry::is_partial(path),
            extra_columns: contents.extra_columns.clone(),
        },
        contents,
    })
}

/// The configured headers that can be sent as they are, with their names noted. A reference to the environment is
/// never resolved, and what frames a message is ours.
fn sendable(headers: Vec<(String, String)>, sent: &mut BTreeSet<String>) -> Vec<(String, String)> {
    const OURS: [&str; 8] = [
        "host",
        "connection",
        "content-length",
        "content-type",
        "transfer-encoding",
        "accept",
        "user-agent",
        "mcp-session-id",
    ];
    headers
        .into_iter()
        .filter(|(name, value)| {
            let is_reference = target::placeholder(value).is_some() || value.contains('$');
            let can_be_sent = !name.is_empty()
                && name
                    .bytes()
                    .all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
                && value.bytes().all(|it| (b' '..=b'~').contains(&it));
            !is_reference && can_be_sent && !OURS.contains(&name.to_ascii_lowercase().as_str())
        })
        .inspect(|(name, _)| {
            sent.insert(name.clone());
        })
        .collect()
}

/// What is wrong with an address that is none, and what to do. What cannot be asked for another reason, such as a
/// template, is as its list means it.
fn no_address(entry: &Entry) -> Option<String> {
    const SHOWN: usize = 80;
    let Aim::Unprobeable { why, said: None } = &entry.aim else {
        return None;
    };
    let shown: String = target::redacted_raw(&entry.url)
        .chars()
        .take(SHOWN)
        .collect();
    match why {
        Unprobeable::Empty => {
            Some("there is no address; write one, or take the row out".to_owned())
        }
        Unprobeable::Scheme => Some(format!(
            "{shown:?} is no http or https address; write https:// and a host, or take the row out"
        )),
        Unprobeable::InvalidUrl => Some(format!(
            "{shown:?} is no valid address; mend it, or take the row out"
        )),
        _ => None,
    }
}

/// What is wrong with a row.
enum Complaint {
    /// Its place is in front.
    Row(String),
    /// Where it stands, in the unit of the list's format.
    At(u64, String),
}

/// What is to be said of a list once it has been read: a file that is no list at all is told of once.
#[derive(Default)]
struct Complaints {
    first: Vec<Complaint>,
    more: u64,
}

impl Complaints {
    fn add(&mut self, complaint: impl FnOnce() -> Complaint) {
        if self.first.len() < COMPLAINTS {
            self.first.push(complaint());
        } else {
            self.more += 1;
        }
    }

    fn say(&self, list: &str, unit: &str) {
        for complaint in &self.first {
            match complaint {
                Complaint::Row(why) => say(&format!("{list}, {why}")),
                Complaint::At(line, why) => say(&format!("{list}, {unit} {line}: {why}")),
            }
        }
        if self.more > 0 {
            say(&format!(
                "{list}: {} more rows are like these; the results have them all, with what is wrong",
                self.more
            ));
        }
    }
}

/// A reader that hashes what passes through it.
struct Hashing<R> {
    inner: R,
    hash: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.hash.update(&buffer[..length]);
        Ok(length)
    }
}
