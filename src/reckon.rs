//! A run directory's evidence -> its rows. `scan` ends with it and `report` consists of it, so that
//! both write the same bytes. It reads files and sends nothing.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use crate::classify::Reading;
use crate::diff::{Seen, Side};
use crate::exchange::Exchange;
use crate::finding::Check;
use crate::inquiry;
use crate::manifest::Manifest;
use crate::outcome::{Detail, Outcome, Unmeasured, Unprobeable, Verdict};
use crate::periodic::health::Doubts;
use crate::roll::{Aim, Entry};
use crate::row::Row;
use crate::settle::{self, Settled};
use crate::store::{Evidence, NO_ENDPOINT, Record, RunDir, file};
use crate::target::{Suffixes, Target};
use crate::vantage;

/// An input row's line, and what is not in its columns.
#[derive(Debug)]
pub struct Reckoned {
    /// The line.
    pub row: Row,
    /// The row as it was listed.
    pub entry: Entry,
    /// Everything that was exchanged with its endpoint; of several vantages, by the one that speaks.
    pub exchanges: Vec<Exchange>,
    /// What each vantage says, where several have asked; empty otherwise, and where nobody was asked.
    pub vantages: Vec<Verdict>,
    /// What was exchanged with it by the vantages that do not speak, with their places among them.
    pub elsewhere: Vec<(usize, Vec<Exchange>)>,
}

/// Reads every row of a run, in the order of the input. Memory does not grow with their number.
///
/// # Errors
/// When a file of the run cannot be read or understood.
pub fn each_row(dir: &RunDir, mut each: impl FnMut(Reckoned) -> Result<()>) -> Result<Manifest> {
    let manifest: Manifest = dir.read_json(file::MANIFEST)?;
    let suffixes = manifest
        .suffixes
        .iter()
        .fold(Suffixes::default(), |suffixes, it| suffixes.with(it));
    let mut evidence = dir.evidence()?;
    let doubts = doubts(evidence.of(NO_ENDPOINT)?);
    dir.each_target(|entry: Entry| {
        each(reckon(&manifest, &suffixes, &doubts, &mut evidence, entry)?)
    })?;
    Ok(manifest)
}

fn reckon(
    manifest: &Manifest,
    suffixes: &Suffixes,
    doubts: &Doubts,
    evidence: &mut Evidence,
    entry: Entry,
) -> Result<Reckoned> {
    match &entry.aim {
        Aim::Unprobeable { why, .. } => {
            let row = Row::new(&entry, None, None, &[], Detail::Unprobeable(*why));
            Ok(Reckoned {
                row,
                entry,
                exchanges: Vec::new(),
                vantages: Vec::new(),
                elsewhere: Vec::new(),
            })
        }
        Aim::LeftOut { why, address } => {
            let row = Row::new(
                &entry,
                Some(suffixes.site(address)),
                None,
                &[],
                Detail::Unmeasured(*why),
            );
            Ok(Reckoned {
                row,
                entry,
                exchanges: Vec::new(),
                vantages: Vec::new(),
                elsewhere: Vec::new(),
            })
        }
        Aim::Endpoint { number, address } => {
            let target = Target {
                endpoint: *number,
                url: address.clone(),
                declared: entry.transport,
            };
            let mut seen = Vec::new();
            for at in 0..manifest.vantages().len().max(1) {
                seen.push(look(manifest, &target, at, doubts, evidence)?);
            }
            let verdicts: Vec<Verdict> = seen.iter().map(Look::verdict).collect();
            let speaks = seen.remove(vantage::speaks(&verdicts));
            let mut row = Row::new(
                &entry,
                Some(suffixes.site(address)),
                speaks.settled.as_ref(),
                &speaks.exchanges,
                speaks.otherwise,
            );
            for other in &seen {
                row.attempts += u32::try_from(inquiry::attempts(&other.exchanges).len())?;
                row.requests += u32::try_from(other.exchanges.len())?;
                row.flaky |= other.settled.as_ref().is_some_and(|it| it.flaky);
            }
            if vantage::differ(&verdicts) {
                let said: Vec<&str> = verdicts.iter().map(|it| it.name()).collect();
                row.notice(&Check::Regional.of(said.join(",")));
            }
            Ok(Reckoned {
                row,
                entry,
                exchanges: speaks.exchanges,
                vantages: if verdicts.len() > 1 {
                    verdicts
                } else {
                    Vec::new()
                },
                elsewhere: seen.into_iter().map(|it| (it.at, it.exchanges)).collect(),
            })
        }
    }
}

/// When the instrument was in doubt.
fn doubts(records: Vec<Record>) -> Doubts {
    let mut doubts = Doubts::default();
    for record in records {
        match record {
            Record::Doubt(it) if it.doubt => doubts.began(it.at),
            Record::Doubt(it) => doubts.ended(it.at),
            Record::Exchange(_) | Record::Skipped(_) | Record::Refused(_) => {}
        }
    }
    doubts
}

/// An endpoint as one vantage saw it.
struct Look {
    /// Which vantage, counted from 0.
    at: usize,
    exchanges: Vec<Exchange>,
    settled: Option<Settled>,
    /// What it is where nothing was exchanged.
    otherwise: Detail,
}

impl Look {
    fn verdict(&self) -> Verdict {
        let unread = || Reading::of(self.otherwise.clone()).verdict;
        self.settled
            .as_ref()
            .map_or_else(unread, |it| it.reading.verdict)
    }
}

fn look(
    manifest: &Manifest,
    target: &Target,
    at: usize,
    doubts: &Doubts,
    evidence: &mut Evidence,
) -> Result<Look> {
    let raised = u64::from(target.endpoint) + at as u64 * manifest.endpoints;
    let (exchanges, skipped) = split(evidence.of(u32::try_from(raised)?)?);
    let version = &manifest.parameters.protocol_version;
    let otherwise = skipped.unwrap_or(Detail::Unmeasured(Unmeasured::Interrupted));
    let look = |exchanges: Vec<Exchange>, settled, otherwise| Look {
        at,
        exchanges,
        settled,
        otherwise,
    };
    if !exchanges.iter().any(|it| doubts.cover(it)) {
        let settled = inquiry::settled(target, version, &exchanges);
        return Ok(look(exchanges, settled, otherwise));
    }
    let sound = doubts.sound(&exchanges);
    // An accusation stands on all its attempts.
    let settled =
        inquiry::settled(target, version, &sound).filter(|it| !settle::is_doubtful(&it.reading));
    let doubted = Detail::Unmeasured(Unmeasured::InstrumentDoubt);
    let exchanges = if settled.is_some() { sound } else { exchanges };
    Ok(look(exchanges, settled, doubted))
}

/// The exchanges among an endpoint's records, attempts in order, and why it was left alone, if it was.
#[must_use]
pub fn split(records: Vec<Record>) -> (Vec<Exchange>, Option<Detail>) {
    let (mut exchanges, mut skipped) = (Vec::new(), None);
    for record in records {
        match record {
            Record::Exchange(exchange) => exchanges.push(*exchange),
            Record::Skipped(it) => skipped = Some(Detail::Unmeasured(it.skipped)),
            Record::Refused(_) => skipped = Some(Detail::Unprobeable(Unprobeable::Robots)),
            Record::Doubt(_) => {}
        }
    }
    exchanges.sort_by_key(|exchange| exchange.attempt);
    (exchanges, skipped)
}

/// A run to compare, as its results have it.
///
/// # Errors
/// When the results cannot be read or understood.
pub fn side<'a>(path: &Path, manifest: &'a Manifest) -> Result<Side<'a>> {
    Ok(Side {
        label: path.display().to_string(),
        manifest,
        rows: seen(path)?,
    })
}

/// The rows of a run, as its results have them.
///
/// # Errors
/// When the results cannot be read or understood.
pub fn seen(path: &Path) -> Result<Vec<Seen>> {
    let results = path.join(file::RESULTS);
    let shown = results.display();
    let mut reader =
        csv::Reader::from_path(&results).with_context(|| format!("cannot read {shown}"))?;
    let mut rows = Vec::new();
    for (number, row) in reader.deserialize::<BTreeMap<String, String>>().enumerate() {
        let row = row
            .map_err(anyhow::Error::new)
            .and_then(seen_row)
            .with_context(|| format!("cannot understand row {} of {shown}", number + 1))?;
        rows.push(row);
    }
    Ok(rows)
}

/// A row of results, by the names of its columns.
fn seen_row(mut row: BTreeMap<String, String>) -> Result<Seen> {
    let mut take = |name: &str| {
        row.remove(name)
            .with_context(|| format!("it has no {name}"))
    };
    let (endpoint, url) = (take("endpoint")?, take("url")?);
    let (outcome, verdict) = (take("outcome")?, take("verdict")?);
    let verdict = Verdict::named(&verdict).with_context(|| format!("{verdict:?} is no verdict"))?;
    let asked_again = take("attempts")?.parse().is_ok_and(|it: u32| it > 1);
    let is_accused = matches!(verdict, Verdict::Faulty | Verdict::NotMcp | Verdict::Down);
    Ok(Seen {
        confirmed: take("flaky")? != "true" && (asked_again || !is_accused),
        endpoint: if endpoint.is_empty() { url } else { endpoint },
        name: take("name")?,
        outcome: Outcome::named(&outcome).with_context(|| format!("{outcome:?} is no outcome"))?,
        detail: take("detail")?,
        verdict,
        era: take("era")?,
        version: take("protocol_version")?,
        auth: take("auth_scheme")?,
        server: take("server_name")?,
    })
}
