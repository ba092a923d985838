//! How the endpoints of each sweep fared over its last runs, kept from run to run: a run is read once, unless another
//! process has done some meanwhile.

use std::path::Path;

use anyhow::Result;

use super::Keeper;
use crate::diff::Seen;
use crate::periodic::history::Line;
use crate::periodic::series::{self, Endpoints, Fare, Fared};
use crate::reckon;

impl Keeper {
    /// Takes in how endpoints fared in a run that is not in the history yet.
    pub(super) fn take_in(&mut self, sweep: &str, before: Option<&Line>, line: &Line) {
        if !line.is_measured() {
            return;
        }
        let folder = self.archive.path();
        let lines = self.archive.lines(sweep);
        let fares = self.fares.entry(sweep.to_owned()).or_default();
        // Another process may have done runs meanwhile.
        if before.is_some_and(|it| it.run != fares.last) {
            *fares = Fares::read(folder, &lines);
        }
        if fares.instrument != line.instrument {
            fares.instrument.clone_from(&line.instrument);
            let is_alike = |it: &&Line| it.instrument == line.instrument;
            fares.alike = read_endpoints(folder, lines.iter().filter(is_alike));
        }
        let rows = read_rows(folder, line).unwrap_or_default();
        fares.all.add(&rows);
        fares.alike.add(&rows);
        fares.last.clone_from(&line.run);
    }
}

/// How the endpoints of a sweep fared over its last runs.
#[derive(Debug, Default)]
pub(super) struct Fares {
    /// The last run that was taken in.
    last: String,
    /// The instrument of that run.
    instrument: String,
    /// Over all runs.
    pub(super) all: Endpoints,
    /// Over those of that instrument: what another one saw is no change of theirs.
    pub(super) alike: Endpoints,
}

impl Fares {
    /// Of the runs of these lines.
    pub(super) fn read(folder: &Path, lines: &[Line]) -> Self {
        let last = lines.iter().rfind(|it| it.is_measured());
        let instrument = last.map(|it| it.instrument.clone()).unwrap_or_default();
        Self {
            last: last.map(|it| it.run.clone()).unwrap_or_default(),
            all: read_endpoints(folder, lines.iter()),
            alike: read_endpoints(
                folder,
                lines.iter().filter(|it| it.instrument == instrument),
            ),
            instrument,
        }
    }
}

/// Every endpoint over the last of these runs.
fn read_endpoints<'a>(folder: &Path, lines: impl Iterator<Item = &'a Line>) -> Endpoints {
    let mut endpoints = Endpoints::default();
    let measured: Vec<&Line> = lines.filter(|it| it.is_measured()).collect();
    for line in &measured[measured.len().saturating_sub(series::KEPT)..] {
        // A run whose tables somebody removed has nothing to tell.
        if let Ok(rows) = read_rows(folder, line) {
            endpoints.add(&rows);
        }
    }
    endpoints
}

fn read_rows(folder: &Path, line: &Line) -> Result<Vec<Fare>> {
    let seen = reckon::seen(&folder.join(&line.run))?;
    let fare = |it: Seen| {
        let fared = Fared {
            verdict: it.verdict,
            confirmed: it.confirmed,
        };
        (it.endpoint, it.name, fared)
    };
    Ok(seen.into_iter().map(fare).collect())
}
