//! The desk that scans: the real clock, signals, the network, and files.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::manifest::Manifest;
use crate::periodic::history::Reason;
use crate::periodic::metrics::Standing;
use crate::periodic::plan::Sweep;
use crate::probe::Prober;
use crate::scan::{self, Stop};
use crate::store::RunDir;
use crate::sweep::hook::Hooks;
use crate::sweep::listen::{self, Board};
use crate::sweep::{Delivery, Desk, Failure, Order, Tables, Woken};
use crate::watch::{Guard, Watch};

use super::Setups;
use crate::cli::conformance::{self, Conformance};
use crate::cli::report::write_tables;
use crate::cli::setup::{Prepared, Setup};
use crate::cli::{control, gauntlet, runtime, say};

/// The desk.
#[derive(Debug)]
pub(super) struct Office {
    runtime: Runtime,
    setups: Arc<Mutex<Setups>>,
    hooks: Hooks,
    board: Arc<Board>,
    stop: Stop,
    reload: Arc<Notify>,
}

impl Office {
    /// Opens the desk: it heeds signals, and tells how it goes where that was asked for.
    pub(super) fn open(
        setups: Arc<Mutex<Setups>>,
        metrics: Option<SocketAddr>,
        metrics_file: Option<PathBuf>,
    ) -> Result<Self> {
        let runtime = runtime()?;
        let board = Arc::new(Board::new(metrics_file));
        let (stop, reload) = (Stop::default(), Arc::new(Notify::new()));
        runtime.block_on(async { heed(&stop, &reload) })?;
        if let Some(at) = metrics {
            let at = runtime.block_on(listen::listen(at, Arc::clone(&board)))?;
            say(&format!("metrics are at http://{at}/metrics"));
        }
        Ok(Self {
            hooks: Hooks::new(runtime.handle().clone(), say)?,
            runtime,
            setups,
            board,
            stop,
            reload,
        })
    }

    /// Waits for what is under way.
    pub(super) fn close(self) {
        let hard = self.stop.hard.clone();
        self.runtime.block_on(async {
            tokio::select! {
                () = self.hooks.finish() => {}
                () = hard.cancelled() => {}
            }
        });
    }

    /// The run, ready to be driven, and its setup.
    fn prepare(&mut self, order: &Order<'_>) -> Result<(Prepared, Setup)> {
        let setups = self.setups.lock().unwrap_or_else(PoisonError::into_inner);
        let mut setup = setups
            .get(&order.sweep.name)
            .cloned()
            .context("the sweep has no setup")?;
        drop(setups);
        setup.asking.read_exclusions()?;
        let mut prepared = if order.is_resumed {
            setup.continued(order.dir)?
        } else {
            // A sample is the same in each run, or its shares would not be of the same things.
            if setup.max_per_site.is_some() || setup.sample.is_some() {
                setup.seed.get_or_insert(order.sweep.seed());
            }
            let lists: Vec<PathBuf> = order.sweep.lists.iter().map(PathBuf::from).collect();
            setup.fresh(&lists, order.dir, Timestamp::now())?
        };
        prepared.manifest.occasion = Some(order.occasion.clone());
        Ok((prepared, setup))
    }

    /// Drives a run to its end, or until it has to stop.
    fn drive(
        &self,
        order: &Order<'_>,
        mut prepared: Prepared,
        setup: &Setup,
    ) -> Result<Option<Reason>> {
        let guard = Guard {
            controls: order.sweep.controls.clone(),
            every: order.sweep.control_every,
            give_up_after: order.sweep.give_up_after,
            prober: Prober::new(setup.asking.reach()?, setup.asking.identity())?,
            terms: setup.asking.terms(),
        };
        let watch = Arc::new(Watch::new(Arc::clone(&self.board.meters), Some(guard)));
        prepared.watch = Arc::clone(&watch);
        let run = setup.run_of(prepared)?;
        // What stops this run does not stop the others.
        let stop = Stop {
            soft: self.stop.soft.child_token(),
            hard: self.stop.hard.child_token(),
        };
        let closed = CancellationToken::new();
        let manifest: Manifest = self.runtime.block_on(async {
            let closing = order.until.map(|until| {
                let (soft, closed) = (stop.soft.clone(), closed.clone());
                tokio::spawn(async move {
                    sleep_until(until).await;
                    closed.cancel();
                    soft.cancel();
                })
            });
            let scanned = match scan::run(run, stop.clone(), true).await {
                Ok(manifest) => control::ask_again(order.dir, manifest, &setup.asking, &stop).await,
                Err(error) => Err(error),
            };
            if let Some(closing) = closing {
                closing.abort();
            }
            scanned
        })?;
        Ok(if manifest.complete {
            None
        } else if self.stop.soft.is_cancelled() {
            Some(Reason::Interrupted)
        } else if closed.is_cancelled() {
            Some(Reason::WindowClosed)
        } else {
            // The watch gave it up, or this machine ran short of something.
            Some(Reason::Instrument)
        })
    }
}

impl Desk for Office {
    fn now(&mut self) -> Timestamp {
        Timestamp::now()
    }

    fn wait(&mut self, until: Timestamp) -> Woken {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.stop.soft.cancelled() => Woken::Stop,
                () = self.reload.notified() => Woken::Reload,
                () = sleep_until(until) => Woken::Time,
            }
        })
    }

    fn scan(&mut self, order: &Order<'_>) -> Result<Option<Reason>, Failure> {
        let failed = |reason| move |error| Failure { reason, error };
        let verb = if order.is_resumed {
            "goes on with"
        } else {
            "starts"
        };
        say(&format!(
            "{} {verb} {}",
            order.sweep.name,
            order.dir.display()
        ));
        let self_check = order
            .sweep
            .self_check
            .then(gauntlet::self_check)
            .transpose()
            .map_err(failed(Reason::SelfCheck))?;
        let (mut prepared, setup) = self.prepare(order).map_err(failed(Reason::List))?;
        prepared.manifest.self_check = self_check.or(prepared.manifest.self_check);
        self.drive(order, prepared, &setup)
            .map_err(failed(Reason::NotWritten))
    }

    fn tables(&mut self, sweep: &Sweep, dir: &Path) -> Result<Tables> {
        let dir = RunDir::open(dir)?;
        let summary = write_tables(&dir)?;
        Conformance::default().write(&dir, false)?;
        let held = sweep
            .baseline
            .clone()
            .map(|it| conformance::new_failures(&dir, it));
        // The run is what it is, whatever it is held against.
        let new_failures = held.transpose().unwrap_or_else(|error| {
            say(&format!("{}: {error:#}", sweep.name));
            None
        });
        Ok(Tables {
            summary,
            new_failures: new_failures.unwrap_or_default(),
        })
    }

    fn deliver(&mut self, delivery: Delivery) {
        self.hooks.hand_over(delivery);
    }

    fn note(&mut self, sweep: &str, standing: &Standing) {
        if let Err(error) = self.board.note(sweep, standing) {
            say(&format!("metrics: {error:#}"));
        }
    }

    fn say(&mut self, text: &str) {
        say(text);
    }
}

/// Sleeps as long as it is until then by the clock on the wall.
async fn sleep_until(until: Timestamp) {
    let left = until.duration_since(Timestamp::now());
    tokio::time::sleep(Duration::try_from(left).unwrap_or_default()).await;
}

/// Heeds signals from now on: the first that asks to stop drains, the second stops at once, and a hang-up reads the
/// file again.
fn heed(stop: &Stop, reload: &Arc<Notify>) -> Result<()> {
    let (stop, reload) = (stop.clone(), Arc::clone(reload));
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).context("cannot listen for signals");
        let mut terminate = listen(SignalKind::terminate())?;
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut hang_up = listen(SignalKind::hangup())?;
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = terminate.recv() => end(&stop),
                    _ = interrupt.recv() => end(&stop),
                    _ = hang_up.recv() => reload.notify_one(),
                }
            }
        });
    }
    #[cfg(not(unix))]
    tokio::spawn(async move {
        let _reload = reload;
        while tokio::signal::ctrl_c().await.is_ok() {
            end(&stop);
        }
    });
    Ok(())
}

fn end(stop: &Stop) {
    if stop.soft.is_cancelled() {
        say("stopped");
        stop.hard.cancel();
    } else {
        say("finishing what is in flight; once more stops at once");
        stop.soft.cancel();
    }
}
