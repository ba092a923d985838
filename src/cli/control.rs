//! The control arm of a scan: rows that worked are asked once more at its end, in a run directory of their own under
//! the run's. What the answers agree in is `tally`'s affair.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use jiff::Timestamp;

use crate::inquiry::Profile;
use crate::manifest::Manifest;
use crate::outcome::{Outcome, Verdict};
use crate::probe::Prober;
use crate::reckon;
use crate::road::Pace;
use crate::roll::{Aim, Entry};
use crate::row::Row;
use crate::sampling::Lots;
use crate::scan::{self, Run, Stop};
use crate::store::{RunDir, file};

use super::options::Asking;
use super::say;
use super::setup::frozen;

/// Requests in flight at most: a sample is small, and its files are few.
const WIDTH: usize = 32;

/// Asks the control sample of a run, where it wants one and has come to its end. Gives the run's manifest back, with
/// what halted the sample, if anything did.
///
/// # Errors
/// When the run cannot be read, or the sample's cannot be written.
pub(super) async fn ask_again(
    path: &Path,
    manifest: Manifest,
    asking: &Asking,
    stop: &Stop,
) -> Result<Manifest> {
    let Some(size) = manifest.control.filter(|_| manifest.complete) else {
        return Ok(manifest);
    };
    let folder = path.join(file::CONTROL);
    let begun = folder.join(file::MANIFEST).exists();
    let (dir, of_control) = if begun {
        let dir = RunDir::resume(&folder)?;
        let of_control: Manifest = dir.read_json(file::MANIFEST)?;
        (dir, of_control)
    } else {
        fresh(path, &folder, &manifest, size)?
    };
    if of_control.complete || of_control.endpoints == 0 {
        return Ok(manifest);
    }
    let (targets, headers) = frozen(&dir)?;
    let mut terms = asking.terms();
    terms.profile = of_control.parameters.profile;
    say(&format!("asking {} rows that work again", of_control.rows));
    // The scan's last request to a site may just have been sent.
    tokio::time::sleep(asking.pace().gap).await;
    let run = Run {
        dir,
        manifest: of_control,
        targets,
        headers,
        terms,
        pace: Pace {
            width: asking.pace().width.min(WIDTH),
            ..asking.pace()
        },
        prober: Prober::new(asking.reach()?, asking.identity())?,
        watch: Arc::default(),
    };
    let asked = scan::run(run, stop.clone(), false).await?;
    Ok(Manifest {
        halted_by: asked.halted_by,
        ..manifest
    })
}

/// Draws the sample: endpoints that work, of sites that never asked us to stop.
fn fresh(
    path: &Path,
    folder: &Path,
    manifest: &Manifest,
    size: usize,
) -> Result<(RunDir, Manifest)> {
    let scanned = RunDir::open(path)?;
    let mut tired: HashSet<String> = HashSet::new();
    reckon::each_row(&scanned, |reckoned| {
        let row = reckoned.row;
        if row.verdict == Verdict::Unmeasured && row.requests > 0
            || row.outcome == Outcome::RateLimited
        {
            tired.extend(row.site);
        }
        Ok(())
    })?;
    let mut lots = Lots::new(size, manifest.seed);
    reckon::each_row(&scanned, |reckoned| {
        let is_fresh = |row: &Row| row.site.as_ref().is_none_or(|it| !tired.contains(it));
        if let Aim::Endpoint { address, .. } = &reckoned.entry.aim
            && reckoned.row.verdict == Verdict::Working
            && is_fresh(&reckoned.row)
        {
            lots.add(address.as_str(), reckoned.entry.clone());
        }
        Ok(())
    })?;
    let mut drawn = lots.drawn();
    drawn.sort_by_key(|entry| (entry.list, entry.line));
    let dir = RunDir::create(folder)?;
    let rows = drawn.len() as u64;
    dir.replace(file::TARGETS, |to| {
        for (number, entry) in drawn.into_iter().enumerate() {
            let aim = match entry.aim {
                Aim::Endpoint { address, .. } => Aim::Endpoint {
                    number: u32::try_from(number)?,
                    address,
                },
                other @ (Aim::Unprobeable { .. } | Aim::LeftOut { .. }) => other,
            };
            serde_json::to_writer(&mut *to, &Entry { aim, ..entry })?;
            to.write_all(b"\n")?;
        }
        Ok(())
    })?;
    let of_control = Manifest {
        vantage: manifest.vantage.clone(),
        lists: manifest.lists.clone(),
        seed: manifest.seed,
        robots: manifest.robots,
        suffixes: manifest.suffixes.clone(),
        rows,
        endpoints: rows,
        ..Manifest::begun(
            Timestamp::now(),
            manifest.command.clone(),
            crate::manifest::Parameters {
                // Whether it still works takes no more.
                profile: Profile::Census,
                ..manifest.parameters.clone()
            },
        )
    };
    scan::write_manifest(&dir, &of_control)?;
    Ok((dir, of_control))
}
