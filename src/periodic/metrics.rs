//! What a Prometheus server is told, in its text format, version 0.0.4. Counting while a scan runs is `Meters`'s, which
//! takes no lock; serving it is `sweep`'s affair.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

use super::history::{Line, Status};
use crate::outcome::Verdict;

/// The upper bounds of a histogram's buckets, in milliseconds.
const BOUNDS: [u64; 12] = [
    5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000,
];

/// How long things took.
#[derive(Debug, Default)]
pub struct Histogram {
    /// By bucket; the last holds what is beyond all bounds.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    /// Takes one in.
    pub fn observe(&self, took: Duration) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let bucket = BOUNDS
            .iter()
            .position(|it| ms <= *it)
            .unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(
            u64::try_from(took.as_micros()).unwrap_or(0),
            Ordering::Relaxed,
        );
    }

    fn write(&self, out: &mut String, name: &str) {
        let mut count = 0;
        for (bucket, bound) in self
            .buckets
            .iter()
            .zip(BOUNDS.map(Some).into_iter().chain([None]))
        {
            count += bucket.load(Ordering::Relaxed);
            let bound = bound.map_or("+Inf".to_owned(), seconds);
            let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let sum = self.micros.load(Ordering::Relaxed);
        let _ = writeln!(out, "{name}_sum {}.{:06}", sum / 1_000_000, sum % 1_000_000);
        let _ = writeln!(out, "{name}_count {count}");
    }
}

/// Milliseconds as seconds, in few digits.
fn seconds(ms: u64) -> String {
    let text = format!("{}.{:03}", ms / 1000, ms % 1000);
    let short = text.trim_end_matches('0').trim_end_matches('.');
    short.to_owned()
}

/// What is counted while scans run.
#[derive(Debug, Default)]
pub struct Meters {
    requests: AtomicU64,
    in_flight: AtomicU64,
    /// How long requests waited for their lane's turn.
    pub waits: Histogram,
    /// How long exchanges took.
    pub exchanges: Histogram,
}

impl Meters {
    /// A request starts.
    pub fn start_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has ended.
    pub fn end_request(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is known of one sweep.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// Its last run that took place.
    pub last: Option<Line>,
    /// When it starts next.
    pub next_start: Option<Timestamp>,
    /// Whether it runs now.
    pub is_running: bool,
    /// Runs since the program started, by what became of them.
    pub runs: BTreeMap<Status, u64>,
}

/// Everything, as it is read.
#[must_use]
pub fn exposition(
    version: &str,
    rules: u32,
    meters: &Meters,
    sweeps: &BTreeMap<String, Standing>,
) -> String {
    let mut out = String::new();
    head(
        &mut out,
        "mcp_census_build_info",
        "gauge",
        "The version of the program and of its reading rules.",
    );
    let _ = writeln!(
        out,
        "mcp_census_build_info{{version=\"{version}\",rules=\"{rules}\"}} 1"
    );
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    head(
        &mut out,
        "mcp_census_requests_total",
        "counter",
        "HTTP requests sent.",
    );
    let _ = writeln!(out, "mcp_census_requests_total {}", count(&meters.requests));
    head(
        &mut out,
        "mcp_census_requests_in_flight",
        "gauge",
        "HTTP requests in flight.",
    );
    let _ = writeln!(
        out,
        "mcp_census_requests_in_flight {}",
        count(&meters.in_flight)
    );
    head(
        &mut out,
        "mcp_census_lane_wait_seconds",
        "histogram",
        "How long requests waited for the turn of their site.",
    );
    meters.waits.write(&mut out, "mcp_census_lane_wait_seconds");
    head(
        &mut out,
        "mcp_census_probe_duration_seconds",
        "histogram",
        "How long exchanges took.",
    );
    meters
        .exchanges
        .write(&mut out, "mcp_census_probe_duration_seconds");
    let mut gauge = |name: &str, about: &str, of: &dyn Fn(&Standing) -> Option<i64>| {
        let name = format!("mcp_census_sweep_{name}");
        head(&mut out, &name, "gauge", about);
        for (sweep, standing) in sweeps {
            if let Some(value) = of(standing) {
                let _ = writeln!(out, "{name}{{sweep=\"{sweep}\"}} {value}");
            }
        }
    };
    let whole = |it: u64| i64::try_from(it).unwrap_or(i64::MAX);
    gauge("running", "Whether a run is going on.", &|it| {
        Some(i64::from(it.is_running))
    });
    gauge(
        "next_start_timestamp_seconds",
        "When the next run starts.",
        &|it| it.next_start.map(Timestamp::as_second),
    );
    gauge(
        "last_run_start_timestamp_seconds",
        "When the last run started.",
        &|it| it.last.as_ref()?.started_at.map(Timestamp::as_second),
    );
    gauge(
        "last_run_duration_seconds",
        "How long the last run took.",
        &|it| it.last.as_ref().map(|it| whole(it.duration_s)),
    );
    gauge(
        "last_run_success",
        "Whether the last run is complete.",
        &|it| {
            it.last
                .as_ref()
                .map(|it| i64::from(it.status == Some(Status::Complete)))
        },
    );
    gauge(
        "last_run_requests",
        "HTTP requests of the last run.",
        &|it| it.last.as_ref().map(|it| whole(it.requests)),
    );
    gauge(
        "last_run_doubt_seconds",
        "How long the instrument was in doubt in the last run.",
        &|it| it.last.as_ref().map(|it| whole(it.doubt_s)),
    );
    labelled(&mut out, sweeps);
    out
}

fn labelled(out: &mut String, sweeps: &BTreeMap<String, Standing>) {
    head(
        out,
        "mcp_census_sweep_last_run_rows",
        "gauge",
        "Rows of the last run by verdict.",
    );
    for (sweep, standing) in sweeps {
        let Some(last) = &standing.last else { continue };
        for verdict in Verdict::ALL {
            let _ = writeln!(
                out,
                "mcp_census_sweep_last_run_rows{{sweep=\"{sweep}\",verdict=\"{verdict}\"}} {}",
                last.count(*verdict)
            );
        }
    }
    head(
        out,
        "mcp_census_sweep_runs_total",
        "counter",
        "Runs since the program started, by what became of them.",
    );
    for (sweep, standing) in sweeps {
        for status in Status::ALL {
            let _ = writeln!(
                out,
                "mcp_census_sweep_runs_total{{sweep=\"{sweep}\",status=\"{status}\"}} {}",
                standing.runs.get(status).copied().unwrap_or_default()
            );
        }
    }
}

fn head(out: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(out, "# HELP {name} {about}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_what_a_prometheus_server_reads() {
        let meters = Meters::default();
        meters.start_request();
        meters.exchanges.observe(Duration::from_millis(7));
        meters.exchanges.observe(Duration::from_mins(2));
        let standing = Standing {
            last: Some(Line {
                working: 3,
                status: Some(Status::Complete),
                ..Line::default()
            }),
            next_start: Timestamp::from_second(86_400).ok(),
            is_running: false,
            runs: BTreeMap::from([(Status::Missed, 2)]),
        };
        let text = exposition(
            "0.1.0",
            1,
            &meters,
            &BTreeMap::from([("all".to_owned(), standing)]),
        );
        for line in [
            "mcp_census_build_info{version=\"0.1.0\",rules=\"1\"} 1",
            "mcp_census_requests_in_flight 1",
            "mcp_census_probe_duration_seconds_bucket{le=\"0.005\"} 0",
            "mcp_census_probe_duration_seconds_bucket{le=\"0.01\"} 1",
            "mcp_census_probe_duration_seconds_bucket{le=\"+Inf\"} 2",
            "mcp_census_probe_duration_seconds_sum 120.007000",
            "mcp_census_sweep_next_start_timestamp_seconds{sweep=\"all\"} 86400",
            "mcp_census_sweep_last_run_success{sweep=\"all\"} 1",
            "mcp_census_sweep_last_run_rows{sweep=\"all\",verdict=\"working\"} 3",
            "mcp_census_sweep_runs_total{sweep=\"all\",status=\"missed\"} 2",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
