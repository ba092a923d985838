//! How a run is doing, on stderr: a bar on a terminal, a plain line a minute elsewhere.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::outcome::Verdict;

/// How often the bar is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(200);

/// How often a line is written where there is no terminal.
const WRITTEN_EVERY: Duration = Duration::from_mins(1);

/// The running counts of a run.
#[derive(Debug, Default)]
pub struct Counts {
    done: AtomicU64,
    requests: AtomicU64,
    in_flight: AtomicU64,
    verdicts: Mutex<BTreeMap<Verdict, u64>>,
}

impl Counts {
    /// An endpoint is finished.
    pub fn finish(&self, verdict: Verdict) {
        self.done.fetch_add(1, Ordering::Relaxed);
        *self
            .verdicts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(verdict)
            .or_default() += 1;
    }

    /// A request starts.
    pub fn start_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has ended.
    pub fn end_request(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// Requests started so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    fn verdicts(&self) -> String {
        let verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        let said: Vec<String> = verdicts
            .iter()
            .map(|(verdict, count)| format!("{verdict} {count}"))
            .collect();
        said.join(", ")
    }

    fn line(&self, total: u64, elapsed: Duration) -> String {
        let done = self.done.load(Ordering::Relaxed);
        format!(
            "{done}/{total} endpoints, {} requests, {} in flight, {} s: {}",
            self.requests(),
            self.in_flight.load(Ordering::Relaxed),
            elapsed.as_secs(),
            self.verdicts()
        )
    }
}

/// Shows the counts until it is told that the run has ended.
pub async fn show(counts: Arc<Counts>, total: u64, mut ended: tokio::sync::oneshot::Receiver<()>) {
    let began = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    let bar = terminal.then(|| bar(total));
    let mut tick = tokio::time::interval(if terminal { DRAWN_EVERY } else { WRITTEN_EVERY });
    tick.tick().await;
    loop {
        tokio::select! {
            _ = &mut ended => break,
            _ = tick.tick() => {}
        }
        match &bar {
            Some(bar) => {
                bar.set_position(counts.done.load(Ordering::Relaxed));
                let seconds = began.elapsed().as_secs_f64().max(0.001);
                #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
                let rate = counts.requests() as f64 / seconds;
                bar.set_message(format!(
                    "{rate:.0}/s, {} in flight",
                    counts.in_flight.load(Ordering::Relaxed)
                ));
                bar.set_prefix(counts.verdicts());
            }
            None => {
                // Where stderr is gone there is nobody to tell.
                let _ = writeln!(
                    std::io::stderr(),
                    "mcp-census: {}",
                    counts.line(total, began.elapsed())
                );
            }
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

fn bar(total: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len}, {eta} left, {msg}\n{prefix}")
        .expect("the template is a constant");
    bar.set_style(style.progress_chars("=> "));
    bar
}
