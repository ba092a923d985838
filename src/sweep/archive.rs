//! The directory that sweeps are kept in: `history.csv`, locks, and since when each sweep is kept. Runs themselves are
//! `store`'s, and what lines mean is `periodic`'s affair.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::manifest::Manifest;
use crate::periodic::history::{self, Line, Status};
use crate::store::{self, RunDir, file as run_file};

/// The files of the directory, beside the runs.
pub(super) mod file {
    /// A line a run.
    pub(crate) const HISTORY: &str = "history.csv";
    /// The runs and what they show, for a browser.
    pub(crate) const INDEX: &str = "index.html";
    /// Held while the history or the page is written.
    pub(crate) const LOCK: &str = ".history.lock";
}

/// Lines of each sweep that are kept in memory: what the page shows.
pub(super) const KEPT_LINES: usize = 400;

/// Lines that wait for a disk that takes nothing.
const BACKLOG: usize = 10_000;

/// The directory.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    /// How far the history was read.
    read: u64,
    header: String,
    tails: BTreeMap<String, Tail>,
    since: BTreeMap<String, Since>,
    /// Lines that could not be written yet.
    backlog: Vec<Line>,
}

/// The end of a sweep's history.
#[derive(Debug, Default)]
struct Tail {
    lines: VecDeque<Line>,
    count: u64,
    dealt_with: Option<Timestamp>,
}

/// Since when a sweep is kept by a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Since {
    /// Starts after this are its own.
    from: Timestamp,
    schedule: String,
    /// Lines of the history that were written before: their starts are another schedule's, or another clock's.
    after_lines: u64,
}

/// An attempt at a lock.
#[derive(Debug)]
pub(super) enum Lock {
    /// It is ours until this is dropped, or the process ends, however it does.
    Held(File),
    /// Another process has it.
    Elsewhere,
}

impl Archive {
    pub(super) fn open(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            read: 0,
            header: Line::header(),
            tails: BTreeMap::new(),
            since: BTreeMap::new(),
            backlog: Vec::new(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a sweep by this schedule from now on, unless it is already.
    pub(super) fn begin(&mut self, sweep: &str, schedule: &str, now: Timestamp) -> Result<()> {
        let path = self.since_file(sweep);
        let kept: Option<Since> = fs::read(&path)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok());
        if let Some(kept) = kept.filter(|it| it.schedule == schedule) {
            self.since.insert(sweep.to_owned(), kept);
            self.forget();
            return self.refresh_strictly();
        }
        self.rewind(sweep, schedule, now)
    }

    /// Counts a sweep's starts from an instant on.
    pub(super) fn rewind(&mut self, sweep: &str, schedule: &str, at: Timestamp) -> Result<()> {
        self.refresh_strictly()?;
        let since = Since {
            from: at,
            schedule: schedule.to_owned(),
            after_lines: self.tails.get(sweep).map_or(0, |it| it.count),
        };
        let text = serde_json::to_vec(&since).context("cannot spell out a schedule")?;
        self.since.insert(sweep.to_owned(), since);
        self.forget();
        store::replace(&self.since_file(sweep), |to| Ok(to.write_all(&text)?))?;
        self.refresh_strictly()
    }

    fn since_file(&self, sweep: &str) -> PathBuf {
        self.path.join(format!(".{sweep}.since.json"))
    }

    /// Locks a sweep: one run of it at a time, whoever starts it.
    pub(super) fn lock(&self, sweep: &str) -> Result<Lock> {
        let path = self.path.join(format!(".{sweep}.lock"));
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock::Held(file)),
            Err(TryLockError::WouldBlock) => Ok(Lock::Elsewhere),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", path.display()))
            }
        }
    }

    /// Waits for the lock on what all sweeps share. It is held for moments.
    pub(super) fn lock_shared(&self) -> Result<File> {
        let path = self.path.join(file::LOCK);
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        file.lock()
            .with_context(|| format!("cannot lock {}", path.display()))?;
        Ok(file)
    }

    /// Every start up to this has been dealt with.
    pub(super) fn dealt_with(&self, sweep: &str) -> Option<Timestamp> {
        let since = self.since.get(sweep)?.from;
        let read = self.tails.get(sweep).and_then(|it| it.dealt_with);
        let waiting = self.backlog.iter().filter(|it| it.sweep == sweep);
        let waiting = waiting.filter_map(Line::deals_with).max();
        Some(
            since
                .max(read.unwrap_or(since))
                .max(waiting.unwrap_or(since)),
        )
    }

    /// The last lines of a sweep, first to last.
    pub(super) fn lines(&self, sweep: &str) -> Vec<Line> {
        self.tails
            .get(sweep)
            .map(|it| it.lines.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// The names of all sweeps that have a line.
    pub(super) fn sweeps(&self) -> BTreeSet<String> {
        self.tails.keys().cloned().collect()
    }

    /// The last run of a sweep that took place.
    pub(super) fn last_run(&self, sweep: &str) -> Option<Line> {
        let tail = self.tails.get(sweep)?;
        let took_place = |it: &&Line| it.status != Some(Status::Missed);
        tail.lines.iter().rev().find(took_place).cloned()
    }

    /// Adds lines, after those that still wait. What cannot be written waits, and counts as dealt with.
    pub(super) fn append(&mut self, lines: Vec<Line>) -> Result<()> {
        let room = BACKLOG.saturating_sub(self.backlog.len());
        self.backlog.extend(lines.into_iter().take(room));
        self.flush()
    }

    /// Writes what waits: all of it or nothing.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.backlog.is_empty() {
            return Ok(());
        }
        let _lock = self.lock_shared()?;
        self.mend()?;
        let path = self.path.join(file::HISTORY);
        let text = history::write(&self.backlog);
        let (_, lines) = text.split_once('\n').unwrap_or_default();
        let append = || -> std::io::Result<()> {
            let mut file = OpenOptions::new().append(true).open(&path)?;
            let before = file.metadata()?.len();
            let written = file
                .write_all(lines.as_bytes())
                .and_then(|()| file.sync_data());
            if written.is_err() {
                // Half a line is no line.
                file.set_len(before)?;
            }
            written
        };
        append().with_context(|| format!("cannot write {}", path.display()))?;
        self.backlog.clear();
        self.refresh_strictly()
    }

    /// Makes the file ready to be added to: a header of this version, and whole lines only.
    fn mend(&self) -> Result<()> {
        let path = self.path.join(file::HISTORY);
        let text = match fs::read(&path) {
            Ok(_) if self.is_current(&path)? => return Ok(()),
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let whole = text.rfind('\n').map_or("", |at| &text[..=at]);
        let lines = history::read(whole)
            .with_context(|| format!("cannot understand {}", path.display()))?;
        let text = if lines.is_empty() {
            format!("{}\n", self.header)
        } else {
            history::write(&lines)
        };
        store::replace(&path, |to| Ok(to.write_all(text.as_bytes())?))
    }

    fn is_current(&self, path: &Path) -> Result<bool> {
        let check = || -> std::io::Result<bool> {
            let mut file = File::open(path)?;
            let mut head = vec![0; self.header.len() + 1];
            if file.read_exact(&mut head).is_err()
                || head != format!("{}\n", self.header).as_bytes()
            {
                return Ok(false);
            }
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            Ok(last == *b"\n")
        };
        check().with_context(|| format!("cannot read {}", path.display()))
    }

    fn forget(&mut self) {
        self.read = 0;
        self.tails.clear();
    }

    /// Reads what others have added. What cannot be read now, is read later.
    pub(super) fn refresh(&mut self) {
        let _ = self.refresh_strictly();
        let _ = self.flush();
    }

    fn refresh_strictly(&mut self) -> Result<()> {
        let path = self.path.join(file::HISTORY);
        let Ok(mut file) = File::open(&path) else {
            self.forget();
            return Ok(());
        };
        let length = file.metadata()?.len();
        if length < self.read {
            self.forget();
        }
        if length == self.read {
            return Ok(());
        }
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(self.read))?;
        file.read_to_end(&mut text)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let whole = text
            .iter()
            .rposition(|it| *it == b'\n')
            .map_or(0, |at| at + 1);
        let added = String::from_utf8_lossy(&text[..whole]).into_owned();
        let lines = if self.read == 0 {
            history::read(&added)
        } else {
            history::read(&format!("{}\n{added}", self.header))
        };
        let lines = lines.with_context(|| format!("cannot understand {}", path.display()))?;
        self.read += whole as u64;
        for line in lines {
            self.take_in(line);
        }
        Ok(())
    }

    fn take_in(&mut self, line: Line) {
        let after = self.since.get(&line.sweep).map_or(0, |it| it.after_lines);
        let tail = self.tails.entry(line.sweep.clone()).or_default();
        if tail.count >= after {
            tail.dealt_with = tail.dealt_with.max(line.deals_with());
        }
        tail.count += 1;
        if tail.lines.len() == KEPT_LINES {
            tail.lines.pop_front();
        }
        tail.lines.push_back(line);
    }

    /// The directories of a sweep's runs, and when each began, as their names tell.
    pub(super) fn runs(&self, sweep: &str) -> Vec<(String, Timestamp)> {
        let Ok(folder) = fs::read_dir(&self.path) else {
            return Vec::new();
        };
        let names = folder
            .flatten()
            .map(|it| it.file_name().to_string_lossy().into_owned());
        names
            .filter(|it| is_run_of(it, sweep))
            .filter_map(|name| {
                let start = name.split_once('Z')?.0;
                let start = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%S", start).ok()?;
                let start = jiff::tz::Offset::UTC.to_timestamp(start).ok()?;
                Some((name, start))
            })
            .collect()
    }

    /// The runs of a sweep that stand in the directory and in no line of the history, oldest first; directories that a
    /// killed process left before anything was asked are removed. Only for who holds the sweep's lock.
    pub(super) fn unrecorded(&self, sweep: &str) -> Result<Vec<(String, Manifest)>> {
        let mut found = BTreeMap::new();
        let folder = fs::read_dir(&self.path)
            .with_context(|| format!("cannot read {}", self.path.display()))?;
        for entry in folder {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !is_run_of(&name, sweep) {
                continue;
            }
            let path = self.path.join(&name);
            if !path.join(run_file::MANIFEST).exists() {
                remove_unbegun(&path);
                continue;
            }
            let manifest: Manifest = RunDir::open(&path)?.read_json(run_file::MANIFEST)?;
            if manifest
                .occasion
                .as_ref()
                .is_some_and(|it| it.sweep == sweep)
            {
                found.insert(name, manifest);
            }
        }
        if !found.is_empty()
            && let Ok(text) = fs::read_to_string(self.path.join(file::HISTORY))
        {
            let whole = text.rfind('\n').map_or("", |at| &text[..=at]);
            for line in history::read(whole)? {
                found.remove(&line.run);
            }
        }
        for line in &self.backlog {
            found.remove(&line.run);
        }
        Ok(found.into_iter().collect())
    }
}

/// Whether a directory's name is that of a sweep's run: its start, its sweep, and a number where two began at once.
fn is_run_of(name: &str, sweep: &str) -> bool {
    let Some((start, rest)) = name.split_once('-') else {
        return false;
    };
    let is_start = start.len() == 16 && start.ends_with('Z');
    let bare = rest.split_once('.').map_or(rest, |(bare, _)| bare);
    is_start && bare == sweep
}

/// Removes a directory in which a list was being frozen. Anything else in it is left alone, and the directory with it.
fn remove_unbegun(path: &Path) {
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name == run_file::TARGETS
            || name == run_file::LOCK
            || name.starts_with("list-")
            || (name.starts_with('.')
                && Path::new(&name).extension().is_some_and(|it| it == "part"));
        if is_ours {
            let _ = fs::remove_file(entry.path());
        }
    }
    // Where something is left, it stays.
    let _ = fs::remove_dir(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn line(sweep: &str, second: i64) -> Line {
        Line {
            sweep: sweep.into(),
            scheduled_at: Some(at(second)),
            status: Some(Status::Missed),
            ..Line::default()
        }
    }

    #[test]
    fn a_half_written_line_is_cut_off_and_an_older_header_brought_up_to_date() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file::HISTORY);
        fs::write(
            &path,
            "sweep,scheduled_at,status,starts\na,1970-01-01T00:00:05Z,missed,1\na,1970-01",
        )
        .unwrap();
        let mut archive = Archive::open(folder.path()).unwrap();
        archive.append(vec![line("a", 9)]).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().next(), Some(Line::header().as_str()));
        let starts: Vec<_> = history::read(&text)
            .unwrap()
            .into_iter()
            .map(|it| it.scheduled_at)
            .collect();
        assert_eq!(starts, [Some(at(5)), Some(at(9))]);
    }

    #[test]
    fn what_another_process_adds_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = Archive::open(folder.path()).unwrap();
        let mut other = Archive::open(folder.path()).unwrap();
        for archive in [&mut one, &mut other] {
            archive.begin("a", "daily", at(1)).unwrap();
        }
        one.append(vec![line("a", 7)]).unwrap();
        other.refresh();
        assert_eq!(other.dealt_with("a"), Some(at(7)));
        // A schedule that has changed has missed nothing.
        other.begin("a", "hourly", at(3)).unwrap();
        assert_eq!(other.dealt_with("a"), Some(at(3)));
        assert_eq!(other.lines("a").len(), 1);
    }

    #[test]
    fn a_lock_is_for_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let archive = Archive::open(folder.path()).unwrap();
        let held = archive.lock("a").unwrap();
        assert!(matches!(held, Lock::Held(_)));
        assert!(matches!(archive.lock("a").unwrap(), Lock::Elsewhere));
        assert!(matches!(archive.lock("b").unwrap(), Lock::Held(_)));
        drop(held);
        assert!(matches!(archive.lock("a").unwrap(), Lock::Held(_)));
    }

    #[test]
    fn a_run_is_told_by_its_name() {
        for (name, sweep, is) in [
            ("20261130T030000Z-all", "all", true),
            ("20261130T030000Z-all.2", "all", true),
            ("20261130T030000Z-of-all", "all", false),
            ("20261130T030000Z-of-all", "of-all", true),
            ("servers-all", "all", false),
        ] {
            assert_eq!(is_run_of(name, sweep), is, "{name}");
        }
    }
}
