//! A run directory on disk: evidence appended line by line, files replaced whole, one run at a time.
//! What the files say is `scan`'s and `report`'s affair.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::exchange::Exchange;
use crate::outcome::Unmeasured;

/// The files of a run directory.
pub mod file {
    /// What the run was.
    pub const MANIFEST: &str = "manifest.json";
    /// The frozen list.
    pub const TARGETS: &str = "targets.ndjson";
    /// What was sent and what came back.
    pub const EVIDENCE: &str = "evidence.ndjson";
    /// The census.
    pub const RESULTS: &str = "results.csv";
    /// The tables, long form.
    pub const SUMMARY_CSV: &str = "summary.csv";
    /// The tables, for people.
    pub const SUMMARY_MD: &str = "summary.md";
    /// The tables, for programs.
    pub const SUMMARY_JSON: &str = "summary.json";
    /// The tables, the figures and every row, for a browser.
    pub const REPORT_HTML: &str = "report.html";
    /// One row a finding.
    pub const FINDINGS: &str = "findings.csv";
    /// What the checks of the specification come to, a line a check.
    pub const CHECKS: &str = "checks.csv";
    /// The same, a line a server.
    pub const SERVERS: &str = "servers.csv";
    /// How far the servers are on the way to 2026-07-28.
    pub const READINESS: &str = "readiness.csv";
    /// The columns of the CSV files, for programs.
    pub const DATA_PACKAGE: &str = "datapackage.json";
    /// The control arm: a run directory in the run directory.
    pub const CONTROL: &str = "control";
    /// Held while a run writes here.
    pub const LOCK: &str = ".lock";
}

/// A run directory.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    /// Held as long as the run writes.
    _lock: Option<File>,
}

/// A line of the evidence file.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// Something was sent.
    Exchange(Box<Exchange>),
    /// Nothing more was sent to an endpoint, and why.
    Skipped(Skipped),
    /// The site lets us ask nothing there.
    Refused(Refused),
    /// The instrument came to be in doubt, or is well again.
    Doubt(Doubt),
}

/// An endpoint that was left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Why.
    pub skipped: Unmeasured,
    /// Its number.
    pub endpoint: u32,
}

/// An endpoint that its site's `robots.txt` tells us to leave alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// What it says.
    pub refused: String,
    /// The endpoint's number.
    pub endpoint: u32,
}

/// The endpoint of what is about none.
pub const NO_ENDPOINT: u32 = u32::MAX;

/// When the instrument came to be in doubt, or was well again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// Whether a doubt began; else it ended.
    pub doubt: bool,
    /// When: a doubt begins with the last good sign.
    pub at: Timestamp,
    /// [`NO_ENDPOINT`].
    pub endpoint: u32,
}

impl Record {
    /// The endpoint it is about.
    #[must_use]
    pub fn endpoint(&self) -> u32 {
        match self {
            Self::Exchange(exchange) => exchange.endpoint,
            Self::Skipped(skipped) => skipped.endpoint,
            Self::Refused(refused) => refused.endpoint,
            Self::Doubt(doubt) => doubt.endpoint,
        }
    }

    fn read(line: &[u8]) -> Result<Self> {
        // Checked as a whole, it need not be checked string by string.
        let line = std::str::from_utf8(line)?;
        Ok(if line.starts_with("{\"skipped\"") {
            Self::Skipped(serde_json::from_str(line)?)
        } else if line.starts_with("{\"refused\"") {
            Self::Refused(serde_json::from_str(line)?)
        } else if line.starts_with("{\"doubt\"") {
            Self::Doubt(serde_json::from_str(line)?)
        } else {
            Self::Exchange(serde_json::from_str(line)?)
        })
    }
}

/// A line of the evidence file: an [`Exchange`], or what was [`Skipped`] or [`Refused`], as it stands there.
///
/// # Errors
/// Never for these: both are plain data.
pub fn line(record: &impl Serialize) -> Result<Vec<u8>> {
    let mut line = Vec::new();
    add_line(&mut line, record)?;
    Ok(line)
}

/// Adds such a line to others.
///
/// # Errors
/// As for [`line()`]; a part of it may have been added.
pub fn add_line(lines: &mut Vec<u8>, record: &impl Serialize) -> Result<()> {
    serde_json::to_writer(&mut *lines, record).context("cannot spell out a record")?;
    lines.push(b'\n');
    Ok(())
}

/// The same line of evidence under another endpoint's number; the rest stays byte for byte.
///
/// # Errors
/// When it is no line of evidence.
pub fn renumbered(line: &[u8], number: impl FnOnce(u32) -> Result<u32>) -> Result<Vec<u8>> {
    const HEAD: &[u8] = b"{\"endpoint\":";
    let Some(rest) = line.strip_prefix(HEAD) else {
        return match Record::read(line).context("it is no record")? {
            Record::Skipped(it) => self::line(&Skipped {
                endpoint: number(it.endpoint)?,
                ..it
            }),
            Record::Refused(it) => self::line(&Refused {
                endpoint: number(it.endpoint)?,
                ..it
            }),
            Record::Exchange(it) => self::line(&Exchange {
                endpoint: number(it.endpoint)?,
                ..*it
            }),
            // It is about no endpoint.
            Record::Doubt(_) => Ok(line.to_vec()),
        };
    };
    let digits = rest.iter().take_while(|it| it.is_ascii_digit()).count();
    let (own, rest) = rest.split_at(digits);
    let own: u32 = std::str::from_utf8(own)?
        .parse()
        .context("it has no endpoint's number")?;
    Ok([HEAD, number(own)?.to_string().as_bytes(), rest].concat())
}

impl RunDir {
    /// A new run directory. Whatever is there already stays: a directory that holds a run is refused.
    ///
    /// # Errors
    /// When it cannot be made, holds a run, or another run writes there.
    pub fn create(path: &Path) -> Result<Self> {
        if path.join(file::MANIFEST).exists() {
            bail!(
                "{} holds a run already; give another --out, or --resume to continue it",
                path.display()
            );
        }
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        Self::locked(path)
    }

    /// An existing run directory, to continue its run.
    ///
    /// # Errors
    /// When it holds no run, or another run writes there.
    pub fn resume(path: &Path) -> Result<Self> {
        if !path.join(file::MANIFEST).exists() {
            bail!(
                "{} holds no run to resume: it has no {}",
                path.display(),
                file::MANIFEST
            );
        }
        Self::locked(path)
    }

    /// An existing run directory, to read.
    ///
    /// # Errors
    /// When it holds no run.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.join(file::MANIFEST).exists() {
            bail!(
                "{} is no run directory: it has no {}",
                path.display(),
                file::MANIFEST
            );
        }
        Ok(Self {
            path: path.to_owned(),
            _lock: None,
        })
    }

    fn locked(path: &Path) -> Result<Self> {
        let lock_path = path.join(file::LOCK);
        let lock = File::create(&lock_path)
            .with_context(|| format!("cannot write {}", lock_path.display()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: Some(lock),
            }),
            Err(TryLockError::WouldBlock) => bail!("another run writes to {} now", path.display()),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", lock_path.display()))
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where one of its files is.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Replaces a file whole: written beside, synced, renamed.
    ///
    /// # Errors
    /// When it cannot be written; the old file is then still there.
    pub fn replace(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        replace(&self.file(name), write)
    }

    /// Reads a JSON file.
    ///
    /// # Errors
    /// When it cannot be read, or is not what it should be.
    pub fn read_json<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T> {
        let path = self.file(name);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text)
            .with_context(|| format!("cannot understand {}", path.display()))
    }

    /// Reads a text.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_text(&self, name: &str) -> Result<String> {
        let path = self.file(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Reads the frozen list, a row at a time.
    ///
    /// # Errors
    /// When it cannot be read; a line that cannot be understood is named.
    pub fn each_target<T: serde::de::DeserializeOwned>(
        &self,
        mut each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        for row in self.targets()? {
            each(row?)?;
        }
        Ok(())
    }

    /// The rows of the frozen list, one after the other; a line that cannot be understood is named.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn targets<T: serde::de::DeserializeOwned>(
        &self,
    ) -> Result<impl Iterator<Item = Result<T>> + use<T>> {
        let path = self.file(file::TARGETS);
        let reader = BufReader::new(
            File::open(&path).with_context(|| format!("cannot read {}", path.display()))?,
        );
        Ok(reader.lines().enumerate().map(move |(number, line)| {
            let line = line.with_context(|| format!("cannot read {}", path.display()))?;
            serde_json::from_str(&line).with_context(|| {
                format!(
                    "{} line {}: cannot understand it",
                    path.display(),
                    number + 1
                )
            })
        }))
    }

    /// Hands on every whole line of the evidence, as it stands there.
    ///
    /// # Errors
    /// When it cannot be read, or `each` fails.
    pub fn each_line(&self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let path = self.file(file::EVIDENCE);
        if !path.exists() {
            return Ok(());
        }
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut line = Vec::new();
        loop {
            line.clear();
            reader
                .read_until(b'\n', &mut line)
                .with_context(|| format!("cannot read {}", path.display()))?;
            // A line without an end is one that a killed run left half-written.
            if line.last() != Some(&b'\n') {
                return Ok(());
            }
            each(&line)?;
        }
    }

    /// Opens the evidence to append to. A line that a killed run left half-written is cut off.
    ///
    /// # Errors
    /// When it cannot be opened or mended.
    pub fn append_evidence(&self) -> Result<EvidenceWriter> {
        let path = self.file(file::EVIDENCE);
        let open = || -> io::Result<File> {
            let mut file = OpenOptions::new()
                .read(true)
                .append(true)
                .create(true)
                .open(&path)?;
            let whole = whole_lines(&mut file)?;
            file.set_len(whole)?;
            Ok(file)
        };
        let file = open().with_context(|| format!("cannot open {}", path.display()))?;
        Ok(EvidenceWriter {
            path,
            file: BufWriter::with_capacity(256 << 10, file),
        })
    }

    /// Opens the evidence to read.
    ///
    /// # Errors
    /// When it cannot be read, or a line is not what it should be.
    pub fn evidence(&self) -> Result<Evidence> {
        let path = self.file(file::EVIDENCE);
        let mut index = Vec::new();
        if !path.exists() {
            return Ok(Evidence {
                path,
                file: None,
                index,
            });
        }
        let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let (mut line, mut offset, mut number) = (Vec::new(), 0u64, 0u64);
        loop {
            line.clear();
            let length = reader
                .read_until(b'\n', &mut line)
                .with_context(|| format!("cannot read {}", path.display()))?;
            number += 1;
            // A line without an end is one that a killed run left half-written.
            if length == 0 || line.last() != Some(&b'\n') {
                break;
            }
            let endpoint = endpoint_of(&line).with_context(|| {
                format!("{} line {number}: cannot understand it", path.display())
            })?;
            index.push(Place {
                endpoint,
                offset,
                length: u32::try_from(length).unwrap_or(u32::MAX),
            });
            offset += length as u64;
        }
        // Stable: an endpoint's records stay in the order they were written.
        index.sort_by_key(|place| place.endpoint);
        Ok(Evidence {
            path,
            file: Some(reader.into_inner()),
            index,
        })
    }
}

/// What every line of evidence has; the rest is not looked at while the index is made. Our own exchanges begin
/// with it.
fn endpoint_of(line: &[u8]) -> serde_json::Result<u32> {
    #[derive(Deserialize)]
    struct About {
        endpoint: u32,
    }
    let first = line
        .strip_prefix(b"{\"endpoint\":")
        .and_then(|rest| rest.split(|byte| *byte == b',').next())
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    match first {
        Some(endpoint) => Ok(endpoint),
        None => serde_json::from_slice(line).map(|it: About| it.endpoint),
    }
}

/// Where a record stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    endpoint: u32,
    length: u32,
    offset: u64,
}

/// The evidence of a run, by endpoint.
#[derive(Debug)]
pub struct Evidence {
    path: PathBuf,
    file: Option<File>,
    index: Vec<Place>,
}

impl Evidence {
    /// Everything recorded of an endpoint, in the order it was written.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(&mut self, endpoint: u32) -> Result<Vec<Record>> {
        let start = self
            .index
            .partition_point(|place| place.endpoint < endpoint);
        let places = self.index[start..]
            .iter()
            .take_while(|place| place.endpoint == endpoint);
        let Some(file) = &mut self.file else {
            return Ok(Vec::new());
        };
        let (mut records, mut line) = (Vec::new(), Vec::new());
        for place in places {
            line.resize(place.length as usize, 0);
            read_at(file, &mut line, place.offset)
                .with_context(|| format!("cannot read {}", self.path.display()))?;
            let record = Record::read(&line).with_context(|| {
                format!(
                    "{} at byte {}: cannot understand it",
                    self.path.display(),
                    place.offset
                )
            })?;
            records.push(record);
        }
        Ok(records)
    }

    /// How many records there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
}

/// Appends evidence.
#[derive(Debug)]
pub struct EvidenceWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl EvidenceWriter {
    /// Adds a [`line()`], or several.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, line: &[u8]) -> Result<()> {
        self.file
            .write_all(line)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Hands everything added to the operating system.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        self.file
            .flush()
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Fills a buffer from a place in a file.
fn read_at(file: &mut File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
    }
    #[cfg(not(unix))]
    {
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

/// The length of a file up to its last line's end.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    const STEP: u64 = 64 << 10;
    let mut end = file.seek(SeekFrom::End(0))?;
    while end > 0 {
        let start = end.saturating_sub(STEP);
        let mut block = vec![0; usize::try_from(end - start).unwrap_or_default()];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Replaces a file whole: written beside, synced, renamed.
///
/// # Errors
/// When it cannot be written; the old file is then still there.
pub fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    replace_with(path, private(path), write)
}

/// The frozen list may hold keys; nobody else reads it.
fn private(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == file::TARGETS)
}

fn replace_with(
    path: &Path,
    private: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let draft = path.with_file_name(format!(
        ".{}.part",
        path.file_name().unwrap_or_default().to_string_lossy()
    ));
    let attempt = || -> Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        if private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let mut writer = BufWriter::with_capacity(64 << 10, options.open(&draft)?);
        write(&mut writer)?;
        let file = writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        Ok(())
    };
    let done = attempt().with_context(|| format!("cannot write {}", path.display()));
    if done.is_err() {
        // What is half-written is of no use to anyone, and may be what fills the disk.
        let _ = fs::remove_file(&draft);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(endpoint: u32) -> Record {
        Record::Skipped(Skipped {
            skipped: Unmeasured::SitePaused,
            endpoint,
        })
    }

    fn skipped_line(endpoint: u32) -> Vec<u8> {
        line(&Skipped {
            skipped: Unmeasured::SitePaused,
            endpoint,
        })
        .unwrap()
    }

    #[test]
    fn evidence_is_read_by_endpoint_in_the_order_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let dir = RunDir::create(folder.path()).unwrap();
        let mut writer = dir.append_evidence().unwrap();
        for endpoint in [2, 0, 2] {
            writer.add(&skipped_line(endpoint)).unwrap();
        }
        writer.flush().unwrap();
        let mut evidence = dir.evidence().unwrap();
        let counts: Vec<usize> = (0..3)
            .map(|endpoint| evidence.of(endpoint).unwrap().len())
            .collect();
        assert_eq!(counts, [1, 0, 2]);
    }

    #[test]
    fn a_record_keeps_every_byte_but_its_number() {
        let line = br#"{"endpoint":7,"attempt":0,"x":1.10}
"#;
        assert_eq!(
            renumbered(line, |number| Ok(number + 35)).unwrap(),
            br#"{"endpoint":42,"attempt":0,"x":1.10}
"#
        );
        assert_eq!(
            renumbered(&skipped_line(3), |_| Ok(9)).unwrap(),
            skipped_line(9)
        );
        assert!(renumbered(b"{\"endpoint\":x}\n", Ok).is_err());
    }

    #[test]
    fn a_half_written_line_is_cut_off_before_more_is_added() {
        let folder = tempfile::tempdir().unwrap();
        let dir = RunDir::create(folder.path()).unwrap();
        let mut writer = dir.append_evidence().unwrap();
        writer.add(&skipped_line(1)).unwrap();
        writer.flush().unwrap();
        drop(writer);
        let path = dir.file(file::EVIDENCE);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [whole.as_slice(), b"{\"skipped\":\"sit"].concat()).unwrap();
        assert_eq!(dir.evidence().unwrap().len(), 1);
        let mut writer = dir.append_evidence().unwrap();
        writer.add(&skipped_line(7)).unwrap();
        writer.flush().unwrap();
        assert_eq!(dir.evidence().unwrap().of(7).unwrap(), [skipped(7)]);
    }

    #[test]
    fn two_runs_do_not_write_to_one_directory() {
        let folder = tempfile::tempdir().unwrap();
        let _held = RunDir::create(folder.path()).unwrap();
        assert!(
            RunDir::create(folder.path())
                .unwrap_err()
                .to_string()
                .contains("another run")
        );
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.md");
        replace(&path, |to| Ok(to.write_all(b"a long report")?)).unwrap();
        replace(&path, |to| Ok(to.write_all(b"short")?)).unwrap();
        assert!(replace(&path, |_| bail!("disk full")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "short");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = replace(Path::new("/proc/nope/x.md"), |_| Ok(())).unwrap_err();
        assert!(
            format!("{error:#}").starts_with("cannot write /proc/nope/x.md: "),
            "{error:#}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn the_frozen_list_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file::TARGETS);
        replace(&path, |_| Ok(())).unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
