//! A frozen list -> evidence: every endpoint asked, in its lane, everything written as it comes.
//! Reading lists is `cli`'s and `list`'s affair; what the evidence says is `reckon`'s.

mod issuers;
mod ledger;
mod office;
mod permission;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use issuers::Issuers;
pub(crate) use office::retry_after;
use office::{Begun, Office};
use permission::Permissions;

use crate::inquiry::{self, Next, Terms};
use crate::lanes::{self};
use crate::manifest::Manifest;
use crate::outcome::Unmeasured;
use crate::probe::Prober;
use crate::progress::{self, Counts};
use crate::reckon;
use crate::road::{Pace, Road};
use crate::sampling::Sampling;
use crate::store::{RunDir, file};
use crate::target::{Secrets, Suffixes, Target, scatter};
use crate::watch::Watch;

/// A timer is always due within this.
const BEAT: Duration = Duration::from_millis(200);

/// Headers by the number of the endpoint that they are sent to. They are secrets.
#[derive(Clone, Default)]
pub struct Headers(pub HashMap<u32, Vec<(String, String)>>);

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Headers")
            .field("endpoints", &self.0.len())
            .finish_non_exhaustive()
    }
}

impl Headers {
    /// Those of an endpoint.
    #[must_use]
    pub fn of(&self, endpoint: u32) -> &[(String, String)] {
        self.0.get(&endpoint).map_or(&[], Vec::as_slice)
    }
}

/// Everything a run needs.
#[derive(Debug)]
pub struct Run {
    /// Where it is written.
    pub dir: RunDir,
    /// What it is; `complete`, `ended_at` and the request counts are filled in when it ends.
    pub manifest: Manifest,
    /// The endpoints, by their numbers.
    pub targets: Vec<Target>,
    /// What is sent to endpoints beside our own headers, because the operator asked for it.
    pub headers: Headers,
    /// What holds for every inquiry.
    pub terms: Terms,
    /// How hard to push.
    pub pace: Pace,
    /// What sends.
    pub prober: Prober,
    /// What watches over the instrument.
    pub watch: Arc<Watch>,
}

/// How to stop a run.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Start nothing new; what is in flight finishes.
    pub soft: CancellationToken,
    /// Stop now; what was written stays.
    pub hard: CancellationToken,
}

/// Asks every endpoint that has not been asked to the end, and gives the finished manifest.
///
/// # Errors
/// When the evidence cannot be read or written. What was measured before that is kept.
pub async fn run(run: Run, stop: Stop, show_progress: bool) -> Result<Manifest> {
    let Run {
        dir,
        mut manifest,
        targets,
        headers,
        terms,
        pace,
        prober,
        watch,
    } = run;
    write_manifest(&dir, &manifest)?;
    let suffixes = manifest
        .suffixes
        .iter()
        .fold(Suffixes::default(), |suffixes, it| suffixes.with(it));
    let (counts, total) = (Arc::new(Counts::default()), targets.len() as u64);
    let (targets, mut left_out) = drawn(targets, manifest.sample, &suffixes, manifest.seed);
    let (targets, more) = sample(targets, manifest.max_per_site, &suffixes, manifest.seed);
    left_out.extend(more);
    let (open, begun) = open_inquiries(&dir, &targets, &terms, &counts)?;
    let lanes = lanes::lanes(
        open,
        |place| suffixes.site(&targets[*place as usize].url),
        manifest.seed,
    );

    let (ledger, binder) = ledger::ledger();
    let mut writer = dir.append_evidence()?;
    let failed = stop.clone();
    let writing = tokio::task::spawn_blocking(move || {
        let written = binder.write_all(&mut writer);
        if written.is_err() {
            // Nothing that cannot be kept is asked for.
            failed.soft.cancel();
            failed.hard.cancel();
        }
        written
    });
    let (ended, until) = oneshot::channel();
    let showing =
        show_progress.then(|| tokio::spawn(progress::show(Arc::clone(&counts), total, until)));

    let office = Arc::new(Office {
        prober,
        headers,
        terms,
        stop: stop.clone(),
        counts: Arc::clone(&counts),
        ledger,
        unfinished: AtomicBool::new(false),
        targets,
        begun: Mutex::new(begun),
        rested: Mutex::default(),
        last_chance: AtomicBool::new(false),
        asked: Mutex::default(),
        answers: AtomicU64::new(0),
        halted_by: Mutex::default(),
        road: Road::new(&pace),
        suffixes,
        permissions: manifest.robots.then(Permissions::default),
        added: manifest.suffixes.clone(),
        watch: Arc::clone(&watch),
        issuers: Issuers::default(),
    });
    let watching = watch.begin(stop.soft.clone());
    for endpoint in left_out {
        office.leave(endpoint, Unmeasured::SampledOut).await;
    }
    let mut stopped_hard = drive(&office, lanes, pace, &stop).await;
    // What was left alone because its site asked for a rest gets one more chance, now that time has passed.
    let rested = office.give_another_chance();
    if !stopped_hard && !rested.is_empty() {
        let lanes = lanes::lanes(
            rested,
            |place| office.suffixes.site(&office.target(*place).url),
            manifest.seed,
        );
        stopped_hard = drive(&office, lanes, pace, &stop).await;
    }

    watching.end(!stopped_hard).await;
    office.write_news().await;
    manifest.doubt_s += watch.doubted().as_secs();

    let _ = ended.send(());
    if let Some(showing) = showing {
        showing.await.context("the progress display failed")?;
    }
    manifest.complete =
        !stopped_hard && !stop.soft.is_cancelled() && !office.unfinished.load(Ordering::Relaxed);
    manifest.requests += counts.requests();
    manifest.halted_by = *office
        .halted_by
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    note_most_asked(&mut manifest, &office);
    // The writer ends when nothing more can come.
    drop(office);
    writing.await.context("the writer failed")??;
    manifest.ended_at = Some(Timestamp::now());
    write_manifest(&dir, &manifest)?;
    Ok(manifest)
}

/// Notes which site was asked most, now or before the run was taken up again.
fn note_most_asked(manifest: &mut Manifest, office: &Office) {
    let most = office
        .asked
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .most
        .clone();
    if most.as_ref().map(|it| it.1) > manifest.most_asked.as_ref().map(|it| it.1) {
        manifest.most_asked = most;
    }
}

/// Drives the lanes until all are done, or the run is stopped at once, which it says.
async fn drive(office: &Arc<Office>, lanes: Vec<Vec<u32>>, pace: Pace, stop: &Stop) -> bool {
    let desk = Arc::clone(office);
    let mut driving = tokio::spawn(lanes::drive(
        lanes,
        pace,
        stop.soft.clone(),
        move |place, left| {
            let office = Arc::clone(&desk);
            async move { office.pursue(place, left).await }
        },
    ));
    // The runtime wakes itself for each timer that is due before all others, as that of a new connection is where
    // older requests wait for their answers. One that is always due soon spares it that, once a probe.
    let mut beating = JoinSet::new();
    beating.spawn(async {
        let mut beat = tokio::time::interval(BEAT);
        loop {
            beat.tick().await;
        }
    });
    tokio::select! {
        _ = &mut driving => false,
        () = stop.hard.cancelled() => {
            driving.abort();
            // Only when its tasks are gone has the last record been handed over.
            let _ = driving.await;
            true
        }
    }
}

/// Writes `manifest.json`.
///
/// # Errors
/// When it cannot be written.
pub fn write_manifest(dir: &RunDir, manifest: &Manifest) -> Result<()> {
    dir.replace(file::MANIFEST, |to| {
        serde_json::to_writer_pretty(&mut *to, manifest)?;
        Ok(to.write_all(b"\n")?)
    })
}

/// The targets that a sample of the list holds, and the numbers of the others.
pub(crate) fn drawn(
    targets: Vec<Target>,
    sample: Option<Sampling>,
    suffixes: &Suffixes,
    seed: u64,
) -> (Vec<Target>, Vec<u32>) {
    match sample {
        Some(sample) => sample.draw(targets, suffixes, seed),
        None => (targets, Vec::new()),
    }
}

/// The targets to ask, at most so many of each site, and the numbers of those left out. The seed draws, and
/// the same seed draws the same.
pub(crate) fn sample(
    targets: Vec<Target>,
    most: Option<usize>,
    suffixes: &Suffixes,
    seed: u64,
) -> (Vec<Target>, Vec<u32>) {
    let Some(most) = most else {
        return (targets, Vec::new());
    };
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for mut lane in lanes::lanes(targets, |it| suffixes.site(&it.url), seed) {
        lane.sort_by_key(|it| (scatter(it.url.as_str(), seed), it.endpoint));
        left_out.extend(lane.iter().skip(most).map(|it| it.endpoint));
        lane.truncate(most);
        kept.extend(lane);
    }
    kept.sort_by_key(|it| it.endpoint);
    left_out.sort_unstable();
    (kept, left_out)
}

/// The places of the targets whose inquiries are not complete, and what their evidence holds already.
fn open_inquiries(
    dir: &RunDir,
    targets: &[Target],
    terms: &Terms,
    counts: &Counts,
) -> Result<(Vec<u32>, Begun)> {
    let mut evidence = dir.evidence()?;
    let (mut open, mut begun) = (Vec::new(), Begun::new());
    for (place, target) in (0u32..).zip(targets) {
        let (mut so_far, _) = reckon::split(evidence.of(target.endpoint)?);
        let secrets = Secrets::of(&target.url);
        for exchange in &mut so_far {
            exchange.request.url = secrets.restore(&exchange.request.url);
        }
        if so_far.is_empty() {
            open.push(place);
        } else if let Next::Done(verdict) = inquiry::next(target, &so_far, terms) {
            counts.finish(verdict);
        } else {
            open.push(place);
            begun.insert(place, so_far);
        }
    }
    Ok((open, begun))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_sample_of_a_site() {
        let targets = || -> Vec<Target> {
            let urls = (0..40)
                .map(|n| format!("https://s{n}.one.example/{n}"))
                .chain(["https://two.example/".into()]);
            urls.enumerate()
                .map(|(n, url)| Target {
                    endpoint: u32::try_from(n).unwrap(),
                    url: url.parse().unwrap(),
                    declared: None,
                })
                .collect()
        };
        let draw = |seed| sample(targets(), Some(3), &Suffixes::default(), seed);
        let (kept, left_out) = draw(1);
        assert_eq!((kept.len(), left_out.len()), (4, 37));
        assert_eq!(draw(1), (kept.clone(), left_out));
        assert!((2..20).any(|seed| draw(seed).0 != kept));
    }
}
