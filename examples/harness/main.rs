//! The engine measured end to end on loopback: whole scans beside bare client loops, in interleaved rounds,
//! each a process of its own whose CPU time and peak memory are counted. Linux only, since only there every
//! address of 127.0.0.0/8 is reachable without being set up.
//!
//! `cargo build --release && cargo run --release --example harness -- quick`, or `-- table` for everything.

#![expect(
    clippy::cast_precision_loss,
    reason = "counts and times of a measurement are far below 2^52"
)]

#[cfg(target_os = "linux")]
mod bench;
#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod cost;
#[cfg(target_os = "linux")]
mod expense;
#[cfg(target_os = "linux")]
mod latency;
#[cfg(target_os = "linux")]
mod lists;
#[cfg(target_os = "linux")]
mod pacing;
#[cfg(target_os = "linux")]
mod peers;
#[cfg(target_os = "linux")]
mod reading;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(target_os = "linux")]
mod schedule;
#[cfg(target_os = "linux")]
mod server;
#[cfg(target_os = "linux")]
mod typed;
#[cfg(target_os = "linux")]
mod waiting;

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    typed::run()
}

#[cfg(not(target_os = "linux"))]
fn main() -> anyhow::Result<()> {
    anyhow::bail!("the harness needs every address of 127.0.0.0/8, which only Linux answers on")
}
