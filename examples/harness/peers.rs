//! What people would scan with today: aiohttp, and the official SDKs, on the same servers.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::bench::{Bench, Figure, Scan, all_succeeded, asked, ratio};
use crate::cost::Cost;
use crate::lists::{self, Hosts};
use crate::server::{Serve, Servers};

/// A client that is written as its documentation says.
struct Peer<'a> {
    name: &'static str,
    /// What runs it.
    program: OsString,
    script: &'static str,
    /// What it is given after the list and the width.
    further: Option<&'a Path>,
    hosts: u32,
    width: usize,
    wanted: &'static str,
}

/// How much faster a whole scan is than each of them. The SDKs are run where it is said where they are.
pub(crate) fn peers(bench: &Bench) -> Result<Vec<Figure>> {
    let servers = Servers::start(&Serve::default())?;
    let mut peers = vec![Peer {
        name: "aiohttp",
        program: "python3".into(),
        script: include_str!("peers/with_aiohttp.py"),
        further: None,
        hosts: 20_000,
        width: 256,
        wanted: "4 times",
    }];
    peers.extend(bench.modules.as_deref().map(|modules| Peer {
        name: "the TypeScript SDK",
        program: "node".into(),
        script: include_str!("peers/sdk.mjs"),
        further: Some(modules),
        hosts: 1_000,
        width: 256,
        wanted: "30 times",
    }));
    peers.extend(bench.python.as_deref().map(|python| Peer {
        name: "the Python SDK",
        program: python.into(),
        script: include_str!("peers/sdk.py"),
        further: None,
        hosts: 300,
        width: 64,
        wanted: "30 times",
    }));
    peers
        .iter()
        .map(|peer| against(bench, &servers, peer))
        .collect()
}

fn against(bench: &Bench, servers: &Servers, peer: &Peer<'_>) -> Result<Figure> {
    const WIDTH: usize = 256;
    let list = |hosts| {
        let places = lists::one_each(hosts);
        bench.list(&places, "http", Hosts::Addresses, servers.port)
    };
    let (few, all) = (list(peer.hosts)?, 20_000);
    let list = list(all)?;
    let [theirs, ours] = bench.rounds([&|| ask(bench, peer, &few), &|| {
        bench.scan(&list, &Scan::wide(WIDTH))
    }])?;
    all_succeeded(bench, all as usize)?;
    let longer = ratio(&theirs, &ours, |it| it.wall);
    let more = f64::from(all) / f64::from(peer.hosts);
    Ok(Figure {
        what: format!("a whole scan's throughput against that of {}", peer.name),
        wanted: peer.wanted,
        measured: format!("{:.1} times", longer * more),
    })
}

fn ask(bench: &Bench, peer: &Peer<'_>, list: &Path) -> Result<Cost> {
    let path = bench.scratch.path().join("peer");
    // Node tells a module by its name.
    let path = path.with_extension(if peer.program == "node" { "mjs" } else { "py" });
    std::fs::write(&path, peer.script).context("cannot write a script")?;
    let mut command: Vec<OsString> = vec![peer.program.clone(), path.into(), list.into()];
    command.push(peer.width.to_string().into());
    command.extend(peer.further.map(OsString::from));
    asked(peer.name, &command, peer.hosts as usize)
}
