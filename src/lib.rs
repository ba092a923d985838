//! An instrument for counting remote MCP servers: it takes a list, sends each endpoint one honest `initialize`,
//! records exactly what came back, and tells what share of the list speaks MCP, what share answers with what
//! else, and how sure that is.
//!
//! # Bird's-eye view
//!
//! A line of a list becomes a `Listing` (`list`), and frozen into the run's list an `Entry` with the endpoint
//! it aims at, or why it aims at none (`roll`, `target`). Endpoints that share a site form a lane; lanes run
//! side by side, longest first, and in a lane requests start a gap apart (`lanes`, `road`). What an endpoint is asked
//! is decided by `inquiry`, a pure function of everything exchanged with it so far; `probe` sends it and gives
//! back an `Exchange`: what was sent, what came back, nothing concluded. One writer appends exchanges to
//! `evidence.ndjson` (`scan`, `store`). That file is the run.
//!
//! `classify` reads the exchanges of one attempt: an outcome, what narrows it, a verdict, findings. `settle`
//! folds the attempts at one endpoint. `reckon` makes a `Row` of each entry, and a `Tally` of rows becomes the
//! tables (`tally`, `report`). Everything after the evidence file can be done again without the network.
//!
//! # Code map
//!
//! Dependencies point one way: `main -> cli -> {sweep, scan, reckon, world} -> {watch, probe, lanes, store} -> pure`.
//!
//! Pure, so without IO, clock or runtime:
//! - [`target`], [`roll`], [`list`]: a listed address, the frozen list, the formats lists come in
//! - [`exclude`], [`robots`]: who is left alone
//! - [`mcp`], [`jsonrpc`], [`envelope`], [`json`]: the requests we send, the messages we understand
//! - [`exchange`], [`body`], [`coding`], [`sse`], [`challenge`], [`redirect`]: what came back, and its parts
//! - [`inquiry`], [`classify`], [`settle`], [`hint`]: what to ask next, and what the answers mean
//! - [`catalogue`]: the checks of the specification, what is asked for them, and what becomes of each
//! - [`outcome`], [`finding`], [`row`]: the words of the census, each spelt once
//! - [`tally`], [`stats`], [`report`], [`story`], [`explain`]: what is told of it, with [`wrap`] for its lines and
//!   [`unseen`] for what must not act
//! - [`forecast`]: what a scan would do
//! - [`diff`]: what changed between two runs, and what only the instrument changed
//! - [`sampling`], [`vantage`]: what is asked where not all is, what a row says where several asked
//! - [`manifest`]: what a run was
//! - [`periodic`]: when sweeps are due, what became of each start, what the series shows, what is worth an alert
//!
//! Shell, all the IO there is:
//! - [`probe`] connects to targets, with [`resolve`] for names and addresses, [`trust`] for certificates, and
//!   [`fault`], which alone knows what other libraries call their errors
//! - [`road`] paces, [`lanes`] drives, [`scan`] runs, [`store`] keeps, [`reckon`] reads back, [`progress`] shows
//! - [`watch`] holds a scan back while the instrument is in doubt
//! - [`sweep`] keeps sweeps at their times; it is handed a desk that scans, so that a test can hand it another
//! - [`merge`] makes one run of several: shards of a list, or its vantage points
//! - [`registry`] takes a registry's list into a file
//! - [`world`] serves the loopback servers of the demo and the gauntlet
//! - [`cli`] says what was typed
//!
//! # Invariants
//!
//! 1. Only `probe` and `resolve` send anything to strangers, and `sweep` to whom its operator names; only `store` writes a
//!    run, `registry` a fetched list, and `sweep` a history; nothing pure reads a clock. `tests/architecture.rs` holds the
//!    pure modules to it.
//! 2. An exchange is never changed or dropped once it is written. Outcomes are computed from it, never stored
//!    without it.
//! 3. `classify` is total and deterministic: the same evidence gives the same tables, byte for byte.
//! 4. Every input row has exactly one line in `results.csv`. Counts add up to the list.
//! 5. No error text is ever looked at: faults come from types, by walking the whole chain of causes. The words
//!    of an answer give a hint, and a hint decides no outcome.
//! 6. What was not measured is counted against nobody: it has its own verdict, and is in no denominator.
//! 7. What a server said is data: bounded on the way in, inert on the way out.
//! 8. No request goes to an address that is not public unless a range was opened, nor to one site faster than
//!    its pace. The address that was checked is the one that is connected to.
//! 9. A start of a sweep is dealt with once, run or missed, and `history.csv` has one line for it. What a killed process
//!    left is finished or closed by the next.
//! 10. stdout carries the result that was asked for; everything else goes to stderr.

pub mod body;
pub mod catalogue;
pub mod challenge;
pub mod classify;
pub mod cli;
pub mod coding;
pub mod diff;
pub mod envelope;
pub mod exchange;
pub mod exclude;
pub mod explain;
pub mod fault;
pub mod finding;
pub mod forecast;
pub mod hint;
pub mod inquiry;
pub mod json;
pub mod jsonrpc;
pub mod lanes;
pub mod list;
pub mod manifest;
pub mod mcp;
pub mod merge;
mod names;
pub mod outcome;
pub mod periodic;
pub mod probe;
pub mod progress;
pub mod reckon;
pub mod redirect;
pub mod registry;
pub mod report;
pub mod resolve;
pub mod road;
pub mod robots;
pub mod roll;
pub mod row;
pub mod sampling;
pub mod scan;
pub mod settle;
pub mod sse;
pub mod stats;
pub mod store;
pub mod story;
pub mod sweep;
pub mod tally;
pub mod target;
pub mod trust;
pub mod unseen;
pub mod vantage;
pub mod watch;
pub mod world;
pub mod wrap;
