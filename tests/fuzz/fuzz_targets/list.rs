//! Any bytes as: list.
#![no_main]
#[path = "../harness.rs"]
mod harness;
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| harness::list(bytes));
