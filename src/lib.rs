//! mcp-census.
pub mod coding;
pub mod exchange;
pub mod finding;
pub mod json;
mod names;
pub mod outcome;
pub mod row;
pub mod sse;
pub mod target;
pub mod world;
