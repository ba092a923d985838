//! What becomes of one exchange on its way, noted where it happens: deep in the HTTP client, and in TLS.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::Way;
use crate::exchange::Timing;
use crate::fault::Reached;

/// When the phases of one exchange ended, in microseconds from its start. Zero: not yet.
#[derive(Debug)]
pub(super) struct Phases {
    pub(super) start: Instant,
    /// How long the name took, before the start.
    named: Option<Duration>,
    pub(super) addresses: Vec<IpAddr>,
    /// The TLS handshake began, so the TCP connection was there.
    pub(super) connected: AtomicU64,
    /// The connection was ready for a request.
    pub(super) ready: AtomicU64,
    /// The server asked for a certificate of ours, and got none.
    pub(super) certificate_asked: AtomicBool,
}

impl Phases {
    pub(super) fn new(way: &Way) -> Self {
        Self {
            start: Instant::now(),
            named: way.took,
            addresses: way.addresses.clone().unwrap_or_default(),
            connected: AtomicU64::default(),
            ready: AtomicU64::default(),
            certificate_asked: AtomicBool::default(),
        }
    }

    /// Notes that a phase has ended, and says whether it had not before.
    pub(super) fn mark(&self, phase: &AtomicU64) -> bool {
        let is_first = Self::at(phase).is_none();
        if is_first {
            phase.store(micros(self.start.elapsed()).max(1), Ordering::Relaxed);
        }
        is_first
    }

    fn at(phase: &AtomicU64) -> Option<u64> {
        Some(phase.load(Ordering::Relaxed)).filter(|it| *it > 0)
    }

    pub(super) fn reached(&self) -> Reached {
        if Self::at(&self.ready).is_some() {
            Reached::Asked
        } else if Self::at(&self.connected).is_some() {
            Reached::Handshake
        } else {
            Reached::Connecting
        }
    }

    pub(super) fn timing(&self, first_byte: Option<u64>) -> Timing {
        #[expect(
            clippy::cast_precision_loss,
            reason = "microseconds of one exchange are far below 2^52"
        )]
        let ms = |micros: u64| micros as f64 / 1000.0;
        let named = self.named.map_or(0, micros);
        let (connected, ready) = (Self::at(&self.connected), Self::at(&self.ready));
        Timing {
            dns_ms: self.named.map(|it| ms(micros(it))),
            connect_ms: connected.or(ready).map(ms),
            tls_ms: connected
                .zip(ready)
                .map(|(began, ended)| ms(ended.saturating_sub(began))),
            first_byte_ms: first_byte.map(|at| ms(named + at)),
            total_ms: Some(ms(named + micros(self.start.elapsed()))),
        }
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

tokio::task_local! {
    /// The exchange whose connection is being made in this task.
    pub(super) static PHASES: Arc<Phases>;
}
