//! What people would scan with today: aiohttp, and the official TypeScript SDK, on the same servers.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::bench::{Bench, CORE, Figure, Scan, all_succeeded, ratio};
use crate::cost::{self, Bounds, Cost};
use crate::lists::{self, Hosts};
use crate::server::{Serve, Servers};

const AIOHTTP: &str = include_str!("peers/ask.py");
const SDK: &str = include_str!("peers/ask.mjs");

/// How much faster a whole scan is than each of them.
pub(crate) fn peers(bench: &Bench) -> Result<Vec<Figure>> {
    let servers = Servers::start(&Serve::default())?;
    let mut figures = vec![against(bench, &servers, "aiohttp", 20_000, "4 times")?];
    if bench.modules.is_some() {
        figures.push(against(
            bench,
            &servers,
            "TypeScript SDK",
            1_000,
            "30 times",
        )?);
    }
    Ok(figures)
}

fn against(
    bench: &Bench,
    servers: &Servers,
    peer: &str,
    hosts: u32,
    wanted: &'static str,
) -> Result<Figure> {
    const WIDTH: usize = 256;
    let few = bench.list(
        &lists::one_each(hosts),
        "http",
        Hosts::Addresses,
        servers.port,
    )?;
    let places = lists::one_each(20_000);
    let list = bench.list(&places, "http", Hosts::Addresses, servers.port)?;
    let [theirs, ours] = bench.rounds([&|| ask(bench, peer, &few, hosts, WIDTH), &|| {
        bench.scan(&list, &Scan::wide(WIDTH))
    }])?;
    all_succeeded(bench, places.len())?;
    let longer = ratio(&theirs, &ours, |it| it.wall);
    let more = places.len() as f64 / f64::from(hosts);
    Ok(Figure {
        what: format!("a whole scan's throughput against {peer}'s"),
        wanted,
        measured: format!("{:.1} times", longer * more),
    })
}

fn ask(bench: &Bench, peer: &str, list: &Path, hosts: u32, width: usize) -> Result<Cost> {
    let (program, script, name) = match peer {
        "aiohttp" => ("python3", AIOHTTP, "ask.py"),
        _ => ("node", SDK, "ask.mjs"),
    };
    let path = bench.scratch.path().join(name);
    std::fs::write(&path, script).context("cannot write a script")?;
    let mut command: Vec<OsString> = vec![program.into(), path.into(), list.into()];
    command.push(width.to_string().into());
    command.extend(bench.modules.iter().map(|it| it.clone().into()));
    let bounds = Bounds {
        core: Some(CORE),
        files: None,
    };
    let cost = cost::of(bounds, &command)?;
    ensure!(
        cost.said.trim() == hosts.to_string(),
        "{peer}: {} of {hosts} answered",
        cost.said.trim()
    );
    Ok(cost)
}
