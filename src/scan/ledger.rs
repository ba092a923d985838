//! Lines of evidence on their way to the file. Those who ask add them to one batch, and one thread takes batch after
//! batch. What a line is and where it goes is `store`'s affair.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tokio::sync::Notify;

use crate::store::{self, EvidenceWriter};

/// A batch that waits to be taken: enough to ride out a slow disk, little enough to bound memory. Bytes.
const FULL: usize = 1 << 20;

/// How long lines are gathered before they are written together: a wake-up for each would cost more than the line.
const MOMENT: Duration = Duration::from_millis(5);

/// A ledger's two ends. What is added by the one is written by the other, which is done when the one is dropped.
pub(super) fn ledger() -> (Pen, Binder) {
    let desk = Arc::new(Desk::default());
    (Pen(Arc::clone(&desk)), Binder(desk))
}

/// Adds lines.
pub(super) struct Pen(Arc<Desk>);

/// Writes them.
pub(super) struct Binder(Arc<Desk>);

/// Where the batch lies.
#[derive(Default)]
struct Desk {
    batch: Mutex<Batch>,
    /// Something came into an empty batch, or nothing will come any more.
    came: Condvar,
    /// The batch was taken.
    taken: Notify,
}

#[derive(Default)]
struct Batch {
    lines: Vec<u8>,
    /// One of the ends is gone.
    is_closed: bool,
}

impl Desk {
    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.batch().is_closed = true;
        self.came.notify_one();
        self.taken.notify_waiters();
    }
}

impl Pen {
    /// Adds a record, and waits while too much lies there. What cannot be kept any more is dropped: a writer that has
    /// failed has stopped the run already.
    pub(super) async fn add(&self, record: &impl Serialize) {
        loop {
            let taken = self.0.taken.notified();
            if self.has_added(record) {
                return;
            }
            taken.await;
        }
    }

    fn has_added(&self, record: &impl Serialize) -> bool {
        let mut batch = self.0.batch();
        if batch.is_closed {
            return true;
        }
        let before = batch.lines.len();
        if before >= FULL {
            return false;
        }
        if store::add_line(&mut batch.lines, record).is_err() {
            batch.lines.truncate(before);
        }
        if before == 0 {
            self.0.came.notify_one();
        }
        true
    }
}

impl Drop for Pen {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Binder {
    /// Writes what comes, until nothing will. Everything that has come in a moment goes to the operating system
    /// together.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write_all(self, writer: &mut EvidenceWriter) -> Result<()> {
        let mut lines = Vec::new();
        loop {
            self.take(&mut lines);
            if lines.is_empty() {
                return Ok(());
            }
            writer.add(&lines)?;
            writer.flush()?;
            lines.clear();
        }
    }

    /// Waits for lines, and a moment for more, and takes them all; none where none will come.
    fn take(&self, lines: &mut Vec<u8>) {
        let came = &self.0.came;
        let is_idle = |batch: &mut Batch| batch.lines.is_empty() && !batch.is_closed;
        let waited = came.wait_while(self.0.batch(), is_idle);
        let batch = waited.unwrap_or_else(PoisonError::into_inner);
        let gathered = came.wait_timeout_while(batch, MOMENT, |batch| !batch.is_closed);
        let (mut batch, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(lines, &mut batch.lines);
        drop(batch);
        self.0.taken.notify_waiters();
    }
}

impl Drop for Binder {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Unmeasured;
    use crate::store::{RunDir, Skipped};

    #[tokio::test]
    async fn every_line_is_written_whole_in_the_order_it_came_however_slow_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let dir = RunDir::create(folder.path()).unwrap();
        let mut writer = dir.append_evidence().unwrap();
        let (pen, binder) = ledger();
        // Some batches' worth before the first is taken.
        let records = 3 * FULL / 40;
        let adding = tokio::spawn(async move {
            for endpoint in 0..u32::try_from(records).unwrap() {
                let skipped = Unmeasured::SitePaused;
                pen.add(&Skipped { skipped, endpoint }).await;
            }
        });
        // The task adds until the batch is full, and waits.
        tokio::task::yield_now().await;
        assert!(!adding.is_finished());
        let writing = tokio::task::spawn_blocking(move || binder.write_all(&mut writer));
        adding.await.unwrap();
        writing.await.unwrap().unwrap();
        let mut evidence = dir.evidence().unwrap();
        assert_eq!(evidence.len(), records);
        let last = u32::try_from(records - 1).unwrap();
        assert!(
            [0, 1, last]
                .iter()
                .all(|it| evidence.of(*it).unwrap().len() == 1)
        );
    }

    #[tokio::test]
    async fn nobody_waits_for_a_writer_that_is_gone() {
        let (pen, binder) = ledger();
        drop(binder);
        for endpoint in 0..u32::try_from(2 * FULL / 40).unwrap() {
            let skipped = Unmeasured::SitePaused;
            pen.add(&Skipped { skipped, endpoint }).await;
        }
    }
}
