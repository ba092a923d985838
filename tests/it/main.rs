//! Tests from outside: the program as people run it, on real sockets on loopback.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says where it stopped"
)]

mod architecture;
mod census;
mod check;
mod cli;
mod diff;
mod fetch;
mod formats;
mod fuzz;
mod hostile;
mod html;
mod lists;
mod loopback;
mod manners;
mod merge;
mod readme;
mod recompute;
mod sweep;
mod sweep_told;
mod world;
mod year;
