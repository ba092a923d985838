//! Tests from outside: the program as people run it, on real sockets on loopback.

mod architecture;
mod census;
mod cli;
mod readme;
