//! Several runs of one list -> one: shards, which are disjoint and cover it, or vantage points, which all asked it.
//! Evidence is carried over byte for byte but for its endpoints' numbers; what it says is `reckon`'s affair.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context, Result, bail, ensure};

use crate::diff;
use crate::manifest::{ListFile, Manifest, Part, Setting};
use crate::outcome::Unmeasured;
use crate::roll::{Aim, Entry};
use crate::scan::write_manifest;
use crate::store::{self, RunDir, Skipped, file};

/// What runs are to one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shards,
    Vantages,
}

/// A run that is merged.
struct Source {
    dir: RunDir,
    manifest: Manifest,
    /// By its endpoints' numbers, what they are in the merged run.
    numbers: HashMap<u32, u32>,
    /// Endpoints that it left alone and another vantage asked.
    left_alone: Vec<u32>,
}

/// Merges runs into a new run directory, and gives its manifest. `command` is what was typed.
///
/// # Errors
/// When they are no shards or vantages of one list, were not made with the same instrument, a shard is missing, or
/// something cannot be read or written.
pub fn merge(runs: Vec<RunDir>, into: &RunDir, command: Vec<String>) -> Result<Manifest> {
    let mut sources = Vec::new();
    for dir in runs {
        sources.push(Source {
            manifest: dir.read_json(file::MANIFEST)?,
            dir,
            numbers: HashMap::new(),
            left_alone: Vec::new(),
        });
    }
    let kind = kind(&sources)?;
    same_instrument(&sources)?;
    let (rows, endpoints) = merge_targets(&mut sources, kind, into)?;
    let per_vantage = match kind {
        Kind::Shards => 0,
        Kind::Vantages => endpoints,
    };
    merge_evidence(&sources, per_vantage, into)?;
    let manifest = manifest(&sources, command, (rows, u64::from(endpoints)))?;
    write_manifest(into, &manifest)?;
    Ok(manifest)
}

/// Whether the runs are shards or vantages. They are refused where they are neither, or not all of them.
fn kind(sources: &[Source]) -> Result<Kind> {
    ensure!(
        sources.len() > 1,
        "one run is whole already: merge takes several"
    );
    let shown = |it: &Source| it.dir.path().display().to_string();
    let sharded: Vec<&Source> = sources
        .iter()
        .filter(|it| it.manifest.shard.is_some())
        .collect();
    if sharded.is_empty() {
        let mut seen: BTreeMap<&str, &Source> = BTreeMap::new();
        for source in sources {
            ensure!(
                source.manifest.vantages().is_empty(),
                "{} is of several vantages already: merge the runs that it was made of",
                shown(source)
            );
            let name = source.manifest.vantage.as_deref().unwrap_or_default();
            ensure!(
                !name.is_empty(),
                "{} is no shard, and does not say from where it was asked: runs of one list are merged as shards \
                 (scan --shard) or as vantages (scan --vantage)",
                shown(source)
            );
            if let Some(other) = seen.insert(name, source) {
                bail!(
                    "{} and {} were both asked from {name}: each vantage has one run",
                    shown(other),
                    shown(source)
                );
            }
        }
        return Ok(Kind::Vantages);
    }
    if let Some(whole) = sources.iter().find(|it| it.manifest.shard.is_none()) {
        bail!(
            "{} is no shard, and {} is: merge the shards of each vantage first, then the vantages",
            shown(whole),
            shown(sharded[0])
        );
    }
    let mut parts: BTreeMap<u64, &Source> = BTreeMap::new();
    let of = sharded[0].manifest.shard.map_or(0, |it| it.of);
    for (source, shard) in sharded
        .iter()
        .filter_map(|it| Some((*it, it.manifest.shard?)))
    {
        ensure!(
            shard.of == of,
            "{} is shard {shard}, and {} one of {of}: they divide the list differently",
            shown(source),
            shown(sharded[0])
        );
        if let Some(other) = parts.insert(shard.part, source) {
            bail!(
                "{} and {} are both shard {shard}: shards are disjoint",
                shown(other),
                shown(source)
            );
        }
    }
    let missing: Vec<String> = (1..=of)
        .filter(|part| !parts.contains_key(part))
        .map(|part| format!("{part}/{of}"))
        .collect();
    if let [first, rest @ ..] = missing.as_slice() {
        let more = if rest.is_empty() {
            String::new()
        } else {
            format!(", and with it {}", rest.join(", "))
        };
        bail!("shard {first} is missing{more}: shards must cover the list");
    }
    Ok(Kind::Shards)
}

/// Runs that were made differently are not one run.
fn same_instrument(sources: &[Source]) -> Result<()> {
    let [first, others @ ..] = sources else {
        return Ok(());
    };
    for other in others {
        let lists = |it: &Manifest| -> Vec<(String, String, u64)> {
            let list = |it: &ListFile| (it.sha256.clone(), it.format.clone(), it.rows);
            it.lists.iter().map(list).collect()
        };
        let shown = [first, other].map(|it| it.dir.path().display().to_string());
        ensure!(
            lists(&first.manifest) == lists(&other.manifest),
            "{} and {} are of different lists",
            shown[0],
            shown[1]
        );
        ensure!(
            first.manifest.suffixes == other.manifest.suffixes,
            "{} and {} tell sites apart differently",
            shown[0],
            shown[1]
        );
        let differs = diff::instrument(&first.manifest, &other.manifest)
            .into_iter()
            // From where it was asked, with which name server and files, and which part: another machine has its own.
            .find(|it| {
                !matches!(
                    it.setting,
                    Setting::Vantage | Setting::DnsServer | Setting::CaCert | Setting::Shard
                )
            });
        if let Some(it) = differs {
            bail!(
                "{} and {} were made with another {}: {} and {}",
                shown[0],
                shown[1],
                it.setting,
                it.before,
                it.after
            );
        }
    }
    Ok(())
}

/// Writes the merged list, and numbers its endpoints. Gives how many rows and endpoints it has.
fn merge_targets(sources: &mut [Source], kind: Kind, into: &RunDir) -> Result<(u64, u32)> {
    let mut lists = Vec::new();
    for source in sources.iter() {
        lists.push(source.dir.targets::<Entry>()?);
    }
    let mut known: HashMap<String, u32> = HashMap::new();
    let mut rows = 0;
    into.replace(file::TARGETS, |to| {
        while let Some(entries) = next_row(&mut lists, rows)? {
            rows += 1;
            let mut merged = merged(&entries, kind).with_context(|| format!("row {rows}"))?;
            if let Aim::Endpoint { number, address } = &mut merged.aim {
                let next = u32::try_from(known.len()).context("too many endpoints")?;
                *number = *known.entry(address.as_str().to_owned()).or_insert(next);
                for (source, entry) in sources.iter_mut().zip(&entries) {
                    match &entry.aim {
                        Aim::Endpoint { number: own, .. } => {
                            source.numbers.insert(*own, *number);
                        }
                        Aim::LeftOut { .. } | Aim::Unprobeable { .. } => {
                            if kind == Kind::Vantages {
                                source.left_alone.push(*number);
                            }
                        }
                    }
                }
            }
            serde_json::to_writer(&mut *to, &merged)?;
            to.write_all(b"\n")?;
        }
        Ok(())
    })?;
    Ok((
        rows,
        u32::try_from(known.len()).context("too many endpoints")?,
    ))
}

/// The next row of each list; none when all are at their end.
fn next_row(
    lists: &mut [impl Iterator<Item = Result<Entry>>],
    rows: u64,
) -> Result<Option<Vec<Entry>>> {
    let entries = lists
        .iter_mut()
        .map(|list| list.next().transpose())
        .collect::<Result<Vec<_>>>()?;
    let ended = entries.iter().filter(|it| it.is_none()).count();
    ensure!(
        ended == 0 || ended == entries.len(),
        "the runs are not of one list: one ends after {rows} rows, and others do not"
    );
    Ok(entries.into_iter().collect())
}

/// One row of them all.
fn merged(entries: &[Entry], kind: Kind) -> Result<Entry> {
    let first = entries.first().context("there is no run")?;
    let same = |it: &Entry| (it.list, it.line) == (first.list, first.line) && it.url == first.url;
    ensure!(
        entries.iter().all(same),
        "the runs are not of one list: it is another row in each"
    );
    let asked: Vec<&Entry> = entries
        .iter()
        .filter(|it| matches!(it.aim, Aim::Endpoint { .. }))
        .collect();
    let chosen = match (kind, asked.as_slice()) {
        (_, [one]) => one,
        (Kind::Shards, [_, _, ..]) => bail!("two shards have asked it: they are not disjoint"),
        (Kind::Vantages, [one, others @ ..]) => {
            let address = |it: &Entry| match &it.aim {
                Aim::Endpoint { address, .. } => Some(address.clone()),
                Aim::LeftOut { .. } | Aim::Unprobeable { .. } => None,
            };
            ensure!(
                others.iter().all(|it| address(it) == address(one)),
                "the vantages have asked different addresses for it"
            );
            one
        }
        (_, []) => {
            let is_others = |it: &Entry| matches!(&it.aim, Aim::LeftOut { why, .. } if *why == Unmeasured::OtherShard);
            let ours = entries.iter().find(|it| !is_others(it));
            ours.context("no shard has it: they do not cover the list")?
        }
    };
    Ok(Entry {
        // Nobody is asked by a merged run, so nobody's secrets are needed.
        headers: Vec::new(),
        ..chosen.clone()
    })
}

fn merge_evidence(sources: &[Source], per_vantage: u32, into: &RunDir) -> Result<()> {
    let mut writer = into.append_evidence()?;
    for (at, source) in sources.iter().enumerate() {
        let raised = |number: u32| {
            let at = u32::try_from(at).ok()?;
            per_vantage.checked_mul(at)?.checked_add(number)
        };
        source.dir.each_line(|line| {
            let line = store::renumbered(line, |own| {
                let number = source.numbers.get(&own).with_context(|| {
                    format!(
                        "{} has evidence of endpoint {own}, and no such endpoint",
                        source.dir.path().display()
                    )
                })?;
                raised(*number).context("too many endpoints")
            })?;
            writer.add(&line)
        })?;
        for number in &source.left_alone {
            let endpoint = raised(*number).context("too many endpoints")?;
            let skipped = Unmeasured::SampledOut;
            writer.add(&store::line(&Skipped { skipped, endpoint })?)?;
        }
    }
    writer.flush()
}

fn manifest(
    sources: &[Source],
    command: Vec<String>,
    (rows, endpoints): (u64, u64),
) -> Result<Manifest> {
    let first = &sources.first().context("there is no run")?.manifest;
    let parts: Vec<Part> = sources
        .iter()
        .map(|it| Part {
            path: it.dir.path().display().to_string(),
            manifest: it.manifest.clone(),
        })
        .collect();
    let mut vantages: Vec<String> = Vec::new();
    for name in sources.iter().filter_map(|it| it.manifest.vantage.clone()) {
        if !vantages.contains(&name) {
            vantages.push(name);
        }
    }
    let all = || sources.iter().map(|it| &it.manifest);
    let most = all()
        .filter_map(|it| it.most_asked.clone())
        .max_by_key(|(_, requests)| *requests);
    let mut parameters = first.parameters.clone();
    if all().any(|it| it.parameters.dns_server != parameters.dns_server) {
        parameters.dns_server = None;
    }
    Ok(Manifest {
        command,
        vantage: (!vantages.is_empty()).then(|| vantages.join(", ")),
        shard: None,
        // What each run asked again at its end is told in its own report.
        control: None,
        started_at: all()
            .map(|it| it.started_at)
            .min()
            .unwrap_or(first.started_at),
        ended_at: if all().all(|it| it.ended_at.is_some()) {
            all().filter_map(|it| it.ended_at).max()
        } else {
            None
        },
        complete: all().all(|it| it.complete),
        rows,
        endpoints,
        requests: all().map(|it| it.requests).sum(),
        most_asked: most,
        parts,
        parameters,
        ..first.clone()
    })
}
