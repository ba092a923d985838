//! One run from its start to its line in the history, and what becomes of runs that a process left unfinished.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use jiff::Timestamp;

use super::archive::Lock;
use super::{Delivery, Desk, Ended, Failure, Keeper, Order, Tables, new_dir, run_name};
use crate::diff::{self, Diff};
use crate::manifest::{Manifest, Occasion, RULES_VERSION, Start};
use crate::periodic::alert::{self, Alert, Event, Evidence};
use crate::periodic::due::Next;
use crate::periodic::history::{Line, Reason, Status};
use crate::periodic::plan::Sweep;
use crate::periodic::retention::{self, Retention};
use crate::reckon;
use crate::scan;
use crate::store::{RunDir, file};

/// What of a run goes when its evidence does.
const EVIDENCE: [&str; 2] = [file::REPORT_HTML, file::EVIDENCE];

impl Keeper {
    /// Starts the run that is due, if nobody else has.
    pub(super) fn start(&mut self, number: usize, next: Next, desk: &mut impl Desk) -> Ended {
        let sweep = self.sweeps[number].clone();
        let Next::Run {
            scheduled_at,
            start,
            late,
        } = next
        else {
            return Ended::Well;
        };
        let _held = match self.archive.lock(&sweep.name) {
            Ok(Lock::Held(lock)) => lock,
            Ok(Lock::Elsewhere) => {
                desk.say(&format!("{}: another process runs it now", sweep.name));
                return Ended::Elsewhere;
            }
            Err(error) => {
                desk.say(&format!("{}: {error:#}", sweep.name));
                return Ended::Elsewhere;
            }
        };
        // Another process may have done it while this one waited for the lock.
        self.archive.refresh();
        let is_asked = start == Start::Asked;
        if !is_asked
            && self
                .archive
                .dealt_with(&sweep.name)
                .is_some_and(|it| it >= scheduled_at)
        {
            return Ended::Well;
        }
        let started_at = desk.now();
        let dir = new_dir(self.archive.path(), &run_name(&sweep.name, started_at));
        let order = Order {
            sweep: &sweep,
            dir: &dir,
            occasion: Occasion {
                sweep: sweep.name.clone(),
                scheduled_at: (!is_asked).then_some(scheduled_at),
                start: Some(start),
                late_s: late.as_secs(),
                resumed: 0,
            },
            is_resumed: false,
            until: closes(&sweep, started_at),
        };
        self.carry_out(&order, started_at, desk)
    }

    /// Finishes or closes what a process before this one has left of a sweep. Tells how the run ended that was
    /// finished, if one was.
    pub(super) fn take_up(&mut self, number: usize, desk: &mut impl Desk) -> Option<Ended> {
        let sweep = self.sweeps[number].clone();
        let Ok(Lock::Held(_held)) = self.archive.lock(&sweep.name) else {
            return None;
        };
        let mut left = match self.archive.unrecorded(&sweep.name) {
            Ok(left) => left,
            Err(error) => {
                desk.say(&format!("{}: {error:#}", sweep.name));
                return Some(Ended::Failed);
            }
        };
        let now = desk.now();
        let last = left.pop_if(|(_, manifest)| is_resumable(manifest, &sweep, now));
        for (run, manifest) in left {
            let reason = if manifest.ended_at.is_some() {
                Reason::Interrupted
            } else {
                Reason::Killed
            };
            self.close(&sweep, &run, (!manifest.complete).then_some(reason), desk);
        }
        let (run, manifest) = last?;
        let occasion = manifest.occasion.unwrap_or_default();
        let dir = self.archive.path().join(&run);
        let order = Order {
            sweep: &sweep,
            dir: &dir,
            occasion: Occasion {
                resumed: occasion.resumed + 1,
                ..occasion
            },
            is_resumed: true,
            until: closes(&sweep, now),
        };
        Some(self.carry_out(&order, manifest.started_at, desk))
    }

    fn carry_out(
        &mut self,
        order: &Order<'_>,
        started_at: Timestamp,
        desk: &mut impl Desk,
    ) -> Ended {
        let sweep = order.sweep;
        let run = order
            .dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        self.running(&sweep.name, true, desk);
        let scanned = desk.scan(order);
        self.running(&sweep.name, false, desk);
        match scanned {
            Ok(None) => self.close(sweep, &run, None, desk),
            Ok(Some(Reason::Interrupted)) => {
                desk.say(&format!(
                    "{}: {run} is left to be finished by the next start",
                    sweep.name
                ));
                Ended::Stopped
            }
            Ok(Some(reason)) => self.close(sweep, &run, Some(reason), desk),
            Err(Failure { reason, error }) => {
                desk.say(&format!("{}: {error:#}", sweep.name));
                let reason = if is_disk(&error) {
                    Reason::NotWritten
                } else {
                    reason
                };
                if order.dir.join(file::MANIFEST).exists() {
                    return self.close(sweep, &run, Some(reason), desk);
                }
                let line = Line {
                    sweep: sweep.name.clone(),
                    scheduled_at: order.occasion.scheduled_at,
                    started_at: Some(started_at),
                    ended_at: Some(desk.now()),
                    status: Some(Status::Failed),
                    reason: reason.name().to_owned(),
                    start: order.occasion.start,
                    late_s: order.occasion.late_s,
                    starts: 1,
                    ..Line::default()
                };
                let alerts = alert::alerts(&line, &Evidence::default(), &sweep.thresholds);
                self.record(sweep, line, &alerts, None, desk)
            }
        }
    }

    /// Ends a run: its tables, its line, its alerts. `reason` says why it is not whole, if it is not.
    fn close(
        &mut self,
        sweep: &Sweep,
        run: &str,
        reason: Option<Reason>,
        desk: &mut impl Desk,
    ) -> Ended {
        let dir = self.archive.path().join(run);
        let told = desk
            .tables(sweep, &dir)
            .and_then(|tables| Ok((RunDir::open(&dir)?.read_json(file::MANIFEST)?, tables)));
        let (line, new_failures) = match told {
            Ok((
                manifest,
                Tables {
                    summary,
                    new_failures,
                },
            )) => {
                let mut line = Line::of_run(run, &manifest, &summary);
                if let Some(reason) = reason {
                    line.status = Some(Status::Incomplete);
                    reason.name().clone_into(&mut line.reason);
                }
                self.tell_breaks(sweep, &mut line, &manifest, desk);
                (line, new_failures)
            }
            Err(error) => {
                desk.say(&format!("{}: {run}: {error:#}", sweep.name));
                let manifest =
                    RunDir::open(&dir).and_then(|it| it.read_json::<Manifest>(file::MANIFEST));
                let occasion = manifest
                    .as_ref()
                    .ok()
                    .and_then(|it| it.occasion.clone())
                    .unwrap_or_default();
                let line = Line {
                    run: run.to_owned(),
                    sweep: sweep.name.clone(),
                    scheduled_at: occasion.scheduled_at,
                    started_at: manifest.ok().map(|it| it.started_at),
                    status: Some(Status::Incomplete),
                    reason: reason.unwrap_or(Reason::NotWritten).name().to_owned(),
                    start: occasion.start,
                    late_s: occasion.late_s,
                    resumed: occasion.resumed,
                    starts: 1,
                    ..Line::default()
                };
                (line, Vec::new())
            }
        };
        let before = self.last_measured(&sweep.name);
        let diff = self.difference(sweep, before.as_ref(), &line, desk);
        self.take_in(&sweep.name, before.as_ref(), &line);
        let fares = self.fares.get(&sweep.name).filter(|_| line.is_measured());
        let evidence = Evidence {
            diff: diff.as_ref(),
            endpoints: fares.map(|it| &it.alike),
            new_failures: &new_failures,
        };
        let alerts = alert::alerts(&line, &evidence, &sweep.thresholds);
        self.record(sweep, line, &alerts, diff.as_ref(), desk)
    }

    /// Records starts that were missed. However many there are, it is one alert.
    pub(super) fn record_missed(
        &mut self,
        sweep: &Sweep,
        mut missed: Vec<Line>,
        desk: &mut impl Desk,
    ) {
        let starts = missed.iter().map(|it| it.starts).sum();
        let Some(last) = missed.pop() else { return };
        if let Err(error) = self.archive.append(missed) {
            desk.say(&format!("{}: {error:#}", sweep.name));
        }
        let alerts = alert::missed(&last, starts);
        desk.say(&format!("{}: {}", sweep.name, alerts.reasons.join(", ")));
        self.record(sweep, last, &[alerts], None, desk);
    }

    /// Adds a line, and tells what is to be told of it.
    fn record(
        &mut self,
        sweep: &Sweep,
        mut line: Line,
        alerts: &[Alert],
        diff: Option<&Diff>,
        desk: &mut impl Desk,
    ) -> Ended {
        let events: Vec<&str> = alerts.iter().map(|it| it.event.name()).collect();
        line.alerts = events.join(";");
        if let Err(error) = self.archive.append(vec![line.clone()]) {
            desk.say(&format!(
                "{}: the line waits to be written: {error:#}",
                sweep.name
            ));
        }
        let standing = self.standings.entry(sweep.name.clone()).or_default();
        if let Some(status) = line.status {
            *standing.runs.entry(status).or_default() += line.starts;
        }
        if line.status != Some(Status::Missed) {
            standing.last = Some(line.clone());
        }
        desk.note(&sweep.name, standing);
        for alert in alerts {
            let hooks = sweep
                .hooks
                .iter()
                .filter(|(event, _)| *event == alert.event);
            for (_, hook) in hooks {
                desk.deliver(Delivery {
                    hook: hook.clone(),
                    message: alert::message(alert, &line, diff),
                    facts: facts(alert, &line, self.archive.path()),
                });
            }
        }
        self.remove_evidence(sweep, desk);
        if let Err(error) = self.write_pages(&sweep.name) {
            desk.say(&format!("{}: {error:#}", sweep.name));
        }
        if matches!(line.status, Some(Status::Failed | Status::Incomplete)) {
            Ended::Failed
        } else if alerts.iter().any(|it| it.event == Event::Regression) {
            Ended::Regressed
        } else {
            Ended::Well
        }
    }

    fn running(&mut self, sweep: &str, is_running: bool, desk: &mut impl Desk) {
        let standing = self.standings.entry(sweep.to_owned()).or_default();
        standing.is_running = is_running;
        desk.note(sweep, standing);
    }

    fn last_measured(&self, sweep: &str) -> Option<Line> {
        self.archive
            .lines(sweep)
            .into_iter()
            .rfind(Line::is_measured)
    }

    fn manifest(&self, run: &str) -> Result<Manifest> {
        RunDir::open(&self.archive.path().join(run))?.read_json(file::MANIFEST)
    }

    /// Notes what is not as it was in the run before.
    fn tell_breaks(
        &self,
        sweep: &Sweep,
        line: &mut Line,
        manifest: &Manifest,
        desk: &mut impl Desk,
    ) {
        let Some(before) = self.last_measured(&sweep.name) else {
            return;
        };
        match self.manifest(&before.run) {
            Ok(earlier) => {
                let settings: Vec<&str> = diff::instrument(&earlier, manifest)
                    .iter()
                    .map(|it| it.setting.name())
                    .collect();
                line.breaks = line.broken_from(&before, &settings);
            }
            Err(error) => desk.say(&format!("{}: {error:#}", sweep.name)),
        }
    }

    /// What changed since the run before, or since the reference; nothing where there is none.
    fn difference(
        &self,
        sweep: &Sweep,
        before: Option<&Line>,
        line: &Line,
        desk: &mut impl Desk,
    ) -> Option<Diff> {
        if !line.is_measured() {
            return None;
        }
        let earlier = match (&sweep.reference, before) {
            (Some(reference), _) => reference.clone(),
            (None, Some(before)) => self.archive.path().join(&before.run),
            (None, None) => return None,
        };
        let compare = || -> Result<Diff> {
            let later = self.archive.path().join(&line.run);
            let manifests = [
                RunDir::open(&earlier)?.read_json(file::MANIFEST)?,
                RunDir::open(&later)?.read_json(file::MANIFEST)?,
            ];
            let sides = (
                reckon::side(&earlier, &manifests[0])?,
                reckon::side(&later, &manifests[1])?,
            );
            Ok(Diff::between(&sides.0, &sides.1, true)?)
        };
        compare()
            .map_err(|error| {
                desk.say(&format!(
                    "{}: nothing to compare with: {error:#}",
                    sweep.name
                ));
            })
            .ok()
    }

    /// Removes the evidence that need not be kept. The tables stay.
    fn remove_evidence(&mut self, sweep: &Sweep, desk: &mut impl Desk) {
        if sweep.retention == Retention::default() {
            return;
        }
        let now = desk.now();
        let runs = self.archive.runs(&sweep.name);
        let named: Vec<(&str, Timestamp)> =
            runs.iter().map(|(run, at)| (run.as_str(), *at)).collect();
        for run in retention::expired(sweep.retention, &named, now) {
            if let Err(error) = remove_evidence_of(&self.archive.path().join(run), sweep, now) {
                desk.say(&format!("{}: {error:#}", sweep.name));
            }
        }
    }
}

/// When a run that goes on now has to have ended. One that somebody asked for outside the window has none.
fn closes(sweep: &Sweep, now: Timestamp) -> Option<Timestamp> {
    let schedule = sweep.schedule.as_ref()?;
    schedule
        .is_open(now)
        .then(|| schedule.closes(now))
        .flatten()
}

fn is_resumable(manifest: &Manifest, sweep: &Sweep, now: Timestamp) -> bool {
    let is_young = now.duration_since(manifest.started_at) <= sweep.resume_within;
    let is_open = sweep.schedule.as_ref().is_none_or(|it| it.is_open(now));
    !manifest.complete
        && is_young
        && is_open
        && manifest.rules_version == RULES_VERSION
        && manifest.evidence_removed_at.is_none()
}

/// Whether a file system that takes nothing more is behind an error.
fn is_disk(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|it| it.downcast_ref::<io::Error>())
        .any(|it| {
            matches!(
                it.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::ReadOnlyFilesystem
            )
        })
}

/// What a program finds in its environment. The names are no flags' of ours: a hook may call us.
fn facts(alert: &Alert, line: &Line, folder: &Path) -> Vec<(String, String)> {
    let run = if line.run.is_empty() {
        String::new()
    } else {
        folder.join(&line.run).display().to_string()
    };
    [
        ("EVENT", alert.event.name().to_owned()),
        ("NAME", line.sweep.clone()),
        ("RUN", run),
        ("STATUS", line.status.map_or("", Status::name).to_owned()),
        ("REASON", line.reason.clone()),
        ("REASONS", alert.reasons.len().to_string()),
        ("WORKING", line.working.to_string()),
        ("MEASURED", line.measured().to_string()),
        (
            "SHARE",
            line.share.map_or_else(String::new, |it| it.to_string()),
        ),
    ]
    .map(|(name, value)| (format!("SWEEP_{name}"), value))
    .into()
}

fn remove_evidence_of(dir: &Path, sweep: &Sweep, now: Timestamp) -> Result<()> {
    if !dir.join(file::EVIDENCE).exists() {
        return Ok(());
    }
    let run = RunDir::open(dir)?;
    let mut manifest: Manifest = run.read_json(file::MANIFEST)?;
    if manifest
        .occasion
        .as_ref()
        .is_none_or(|it| it.sweep != sweep.name)
    {
        return Ok(());
    }
    // First it is said, then it is done: tables made anew of half the evidence would be wrong.
    manifest.evidence_removed_at = Some(now);
    scan::write_manifest(&run, &manifest)?;
    let lists = (0..manifest.lists.len()).flat_map(|number| {
        let list = format!("list-{number}.ndjson");
        [format!("{list}.meta.json"), list]
    });
    // The evidence is last: as long as it is there, something is left to remove.
    for name in lists.chain(EVIDENCE.iter().map(|it| (*it).to_owned())) {
        match fs::remove_file(run.file(&name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error)
                    .with_context(|| format!("cannot remove {}", run.file(&name).display()));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
