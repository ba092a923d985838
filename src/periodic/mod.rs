//! Periodic sweeps, the pure part: what `sweeps.toml` says, when a run is due, what became of the runs there should
//! have been, what a series of runs shows, and what of it is worth an alert. Every function is one of its arguments,
//! an instant among them; waiting, running and writing are `sweep`'s affair.

pub mod alert;
pub mod badge;
pub mod cron;
pub mod due;
pub mod file;
pub mod health;
pub mod history;
pub mod metrics;
pub mod page;
pub mod plan;
pub mod retention;
pub mod schedule;
pub mod series;
pub mod unit;
