//! What is shown of all sweeps, written anew after each run: the page, and a badge for each. How they look is
//! `report`'s and `periodic`'s affair.

use anyhow::Result;

use super::Keeper;
use super::archive::file;
use super::fares::Fares;
use crate::periodic::badge::badge;
use crate::periodic::history::Line;
use crate::periodic::page::{RUNS, Shown, index};
use crate::store::{self, file as run_file};

impl Keeper {
    /// Writes the page and a sweep's badge.
    pub(super) fn write_pages(&mut self, sweep: &str) -> Result<()> {
        // Before the lock is ours: it is taken to write lines that wait.
        self.archive.refresh();
        let _lock = self.archive.lock_shared()?;
        let folder = self.archive.path().to_owned();
        let lines = self.archive.lines(sweep);
        let badge = badge(lines.iter().rfind(|it| it.is_measured()));
        store::replace(&folder.join(format!("{sweep}.svg")), |to| {
            Ok(to.write_all(badge.as_bytes())?)
        })?;
        let mut shown = Vec::new();
        for name in self.archive.sweeps() {
            let lines = self.archive.lines(&name);
            let fares = self
                .fares
                .entry(name.clone())
                .or_insert_with(|| Fares::read(&folder, &lines));
            let has_page =
                |line: &&Line| folder.join(&line.run).join(run_file::REPORT_HTML).exists();
            let pages = lines.iter().rev().take(RUNS).filter(has_page);
            shown.push(Shown {
                pages: pages.map(|it| it.run.clone()).collect(),
                endpoints: fares.all.clone(),
                next_start: self.standings.get(&name).and_then(|it| it.next_start),
                name,
                lines,
            });
        }
        let page = index(&shown);
        store::replace(&folder.join(file::INDEX), |to| {
            Ok(to.write_all(page.as_bytes())?)
        })
    }
}
