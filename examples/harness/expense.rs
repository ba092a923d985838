//! What probing costs: CPU, memory and file descriptors, of servers that are fast or all alike.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::bench::{Bench, Figure, ON_ITS_CORE, Scan, all_succeeded, described, middle, ratio};
use crate::cost::{self, Cost};
use crate::latency::Latency;
use crate::lists::{self, Hosts};
use crate::server::{Serve, Servers};
use crate::typed::tell;

/// Plain HTTP, without a pace: what a probe costs.
pub(crate) fn plain(bench: &Bench) -> Result<Vec<Figure>> {
    const HOSTS: u32 = 20_000;
    const WIDTH: usize = 256;
    let servers = Servers::start(&Serve::default())?;
    let places = lists::one_each(HOSTS);
    let list = bench.list(&places, "http", Hosts::Addresses, servers.port)?;
    let [sockets, reqwest, one_thread, scan] = bench.rounds([
        &|| bench.bare("sockets", &list, WIDTH, &[]),
        &|| bench.bare("reqwest", &list, WIDTH, &[]),
        &|| bench.bare("reqwest-one-thread", &list, WIDTH, &[]),
        &|| bench.scan(&list, &Scan::wide(WIDTH)),
    ])?;
    all_succeeded(bench, places.len())?;
    let probes = places.len();
    tell(&format!("  {}", described("sockets", &sockets, probes)));
    tell(&format!("  {}", described("reqwest", &reqwest, probes)));
    tell(&format!(
        "  {}",
        described("reqwest, one thread", &one_thread, probes)
    ));
    tell(&format!("  {}", described("scan", &scan, probes)));
    Ok(vec![
        Figure {
            what: format!(
                "whole scan, no pace, {HOSTS} hosts, plain HTTP: CPU against tokio sockets"
            ),
            wanted: "2.5, never above 3.0",
            measured: format!(
                "{:.2}; {}; {}",
                ratio(&scan, &sockets, Cost::cpu),
                described("scan", &scan, probes),
                described("sockets", &sockets, probes)
            ),
        },
        Figure {
            what: "the same: throughput against bare reqwest, pool off".to_owned(),
            wanted: "0.9",
            measured: format!(
                "{:.2}; {}; on one thread {:.2}",
                ratio(&reqwest, &scan, |it| it.wall),
                described("reqwest", &reqwest, probes),
                ratio(&one_thread, &scan, |it| it.wall),
            ),
        },
    ])
}

/// TLS, a full handshake each.
pub(crate) fn tls(bench: &Bench) -> Result<Vec<Figure>> {
    const HOSTS: u32 = 5_000;
    const WIDTH: usize = 256;
    let root = bench.scratch.path().join("root.pem");
    let servers = Servers::start(&Serve {
        tls: Some(root.clone()),
        ..Serve::default()
    })?;
    let places = lists::one_each(HOSTS);
    let named = bench.list(&places, "https", Hosts::Names, servers.port)?;
    let ca = root.display().to_string();
    let dns = servers.dns.to_string();
    let scan = Scan::wide(WIDTH).with(["--ca-cert", &ca, "--dns-server", &dns]);
    // Certificates are made when they are first asked for: that is no part of any round.
    bench.bare("sockets", &named, WIDTH, &["--ca", &ca])?;
    let [sockets, resolving, reqwest, scans] = bench.rounds([
        &|| bench.bare("sockets", &named, WIDTH, &["--ca", &ca]),
        &|| bench.bare("sockets", &named, WIDTH, &["--ca", &ca, "--dns", &dns]),
        &|| bench.bare("reqwest", &named, WIDTH, &["--ca", &ca]),
        &|| bench.scan(&named, &scan),
    ])?;
    all_succeeded(bench, places.len())?;
    let probes = places.len();
    Ok(vec![
        Figure {
            what: format!(
                "whole scan over TLS, {HOSTS} names, CPU against raw rustls that knows the addresses"
            ),
            wanted: "1.4",
            measured: format!(
                "{:.2}; against raw rustls that asks the same resolver {:.2}; against bare reqwest {:.2}; {}; {}; {}; {}",
                ratio(&scans, &sockets, Cost::cpu),
                ratio(&scans, &resolving, Cost::cpu),
                ratio(&scans, &reqwest, Cost::cpu),
                described("scan", &scans, probes),
                described("rustls", &sockets, probes),
                described("rustls and DNS", &resolving, probes),
                described("reqwest", &reqwest, probes),
            ),
        },
        addressed_tls(bench, &servers, &root)?,
    ])
}

/// The same without names, so that what names cost is seen apart.
fn addressed_tls(bench: &Bench, servers: &Servers, root: &Path) -> Result<Figure> {
    const HOSTS: u32 = 5_000;
    const WIDTH: usize = 256;
    let places = lists::one_each(HOSTS);
    let list = lists::write(
        bench.scratch.path(),
        "addressed",
        &places,
        "https",
        Hosts::Addresses,
        servers.port,
    )?;
    let ca = root.display().to_string();
    let scan = Scan::wide(WIDTH).with(["--ca-cert", &ca]);
    bench.bare("sockets", &list, WIDTH, &["--ca", &ca])?;
    let [sockets, scans] = bench.rounds([
        &|| bench.bare("sockets", &list, WIDTH, &["--ca", &ca]),
        &|| bench.scan(&list, &scan),
    ])?;
    all_succeeded(bench, places.len())?;
    Ok(Figure {
        what: format!("the same, {HOSTS} addresses, no DNS"),
        wanted: "1.4",
        measured: format!(
            "{:.2}; {}; {}",
            ratio(&scans, &sockets, Cost::cpu),
            described("scan", &scans, places.len()),
            described("rustls", &sockets, places.len()),
        ),
    })
}

/// What names cost: plain HTTP, every name asked for.
pub(crate) fn names(bench: &Bench) -> Result<Vec<Figure>> {
    const HOSTS: u32 = 5_000;
    const WIDTH: usize = 256;
    let servers = Servers::start(&Serve::default())?;
    let places = lists::one_each(HOSTS);
    let list = bench.list(&places, "http", Hosts::Names, servers.port)?;
    let dns = servers.dns.to_string();
    let scan = Scan::wide(WIDTH).with(["--dns-server", &dns]);
    let [sockets, resolving, scans] = bench.rounds([
        &|| bench.bare("sockets", &list, WIDTH, &[]),
        &|| bench.bare("sockets", &list, WIDTH, &["--dns", &dns]),
        &|| bench.scan(&list, &scan),
    ])?;
    all_succeeded(bench, places.len())?;
    Ok(vec![Figure {
        what: format!("plain HTTP, {HOSTS} names: what names cost"),
        wanted: "",
        measured: [
            described("sockets that know the addresses", &sockets, places.len()),
            described("sockets that ask", &resolving, places.len()),
            described("scan", &scans, places.len()),
        ]
        .join("; "),
    }])
}

/// Peak memory by width, on servers that let one wait, and by length, on servers that do not.
pub(crate) fn memory(bench: &Bench) -> Result<Vec<Figure>> {
    let mut peaks = Vec::new();
    for (width, hosts, ms) in [
        (256, 2_000, 500.0),
        (1_000, 6_000, 1_500.0),
        (5_000, 15_000, 4_000.0),
    ] {
        let servers = Servers::start(&Serve {
            latency: Latency::Fixed { ms },
            ..Serve::default()
        })?;
        let places = lists::one_each(hosts);
        let list = bench.list(&places, "http", Hosts::Addresses, servers.port)?;
        let cost = bench.scan(&list, &Scan::wide(width))?;
        all_succeeded(bench, places.len())?;
        peaks.push((width, cost.peak));
    }
    let servers = Servers::start(&Serve::default())?;
    let mut lengths = Vec::new();
    for hosts in [5_000, 20_000, 80_000] {
        let list = bench.list(
            &lists::one_each(hosts),
            "http",
            Hosts::Addresses,
            servers.port,
        )?;
        lengths.push((hosts, bench.scan(&list, &Scan::wide(256))?.peak));
    }
    let by_width: Vec<String> = peaks
        .iter()
        .map(|(width, peak)| format!("{peak:.0} MiB at {width}"))
        .collect();
    let by_length: Vec<String> = lengths
        .iter()
        .map(|(hosts, peak)| format!("{peak:.0} MiB for {hosts}"))
        .collect();
    let [(_, narrow), _, (_, wide)] = peaks[..] else {
        bail!("a width was not measured");
    };
    let [(_, short), _, (_, long)] = lengths[..] else {
        bail!("a length was not measured");
    };
    Ok(vec![
        Figure {
            what: "memory at widths 256, 1,000 and 5,000".to_owned(),
            wanted: "80, 96 and 224 MB; 40 KiB a probe in flight",
            measured: format!(
                "{}; {:.0} KiB a probe in flight",
                by_width.join(", "),
                (wide - narrow) * 1024.0 / 4744.0
            ),
        },
        Figure {
            what: "memory at width 256, by the number of hosts".to_owned(),
            wanted: "flat",
            measured: format!(
                "{}: {:.0} bytes a host",
                by_length.join(", "),
                (long - short) * 1_048_576.0 / 75_000.0
            ),
        },
    ])
}

/// With fewer file descriptors than hosts.
pub(crate) fn files(bench: &Bench) -> Result<Vec<Figure>> {
    const HOSTS: u32 = 5_000;
    // Long enough that what is asked for is in flight at once.
    let servers = Servers::start(&Serve {
        latency: Latency::Fixed { ms: 200.0 },
        ..Serve::default()
    })?;
    let list = bench.list(
        &lists::one_each(HOSTS),
        "http",
        Hosts::Addresses,
        servers.port,
    )?;
    let mut measured = Vec::new();
    for width in [256, 2_000] {
        let cost = bench.scan(
            &list,
            &Scan {
                files: Some(1024),
                ..Scan::wide(width)
            },
        )?;
        measured.push(format!(
            "width {width}: {:?} in {:.1} s",
            bench.counts()?,
            cost.wall
        ));
    }
    Ok(vec![Figure {
        what: format!("1,024 file descriptors, {HOSTS} live hosts that take 200 ms"),
        wanted: "5,000 right verdicts",
        measured: measured.join("; "),
    }])
}

/// A run's evidence read again.
pub(crate) fn report(bench: &Bench) -> Result<Vec<Figure>> {
    const HOSTS: u32 = 100_000;
    let servers = Servers::start(&Serve::default())?;
    let list = bench.list(
        &lists::one_each(HOSTS),
        "http",
        Hosts::Addresses,
        servers.port,
    )?;
    let scanned = bench.scan(&list, &Scan::wide(256))?;
    all_succeeded(bench, 100_000)?;
    let command: Vec<OsString> = vec![
        bench.binary.clone().into(),
        "report".into(),
        bench.out().into(),
    ];
    let [costs] = bench.rounds([&|| cost::of(ON_ITS_CORE, &command)])?;
    let size = std::fs::metadata(bench.out().join("evidence.ndjson"))?.len();
    Ok(vec![Figure {
        what: "re-classify and re-report 100,000 exchanges".to_owned(),
        wanted: "3 s, 200 MB",
        measured: format!(
            "{:.2} s ({:.2} CPU s), {:.0} MiB; {:.0} MB of evidence; the scan before: {:.1} s, {:.2} CPU s, {:.0} MiB",
            middle(&costs, |it| it.wall),
            middle(&costs, Cost::cpu),
            middle(&costs, |it| it.peak),
            size as f64 / 1e6,
            scanned.wall,
            scanned.cpu(),
            scanned.peak
        ),
    }])
}

/// Cost as work grows.
pub(crate) fn linear(bench: &Bench) -> Result<Vec<Figure>> {
    let servers = Servers::start(&Serve::default())?;
    let sizes = [1, 1_000, 10_000, 100_000];
    let lists: Vec<PathBuf> = sizes
        .iter()
        .map(|hosts| {
            bench.list(
                &lists::one_each(*hosts),
                "http",
                Hosts::Addresses,
                servers.port,
            )
        })
        .collect::<Result<_>>()?;
    let scan = Scan::wide(256);
    let [none, small, middling, large] = bench.rounds([
        &|| bench.scan(&lists[0], &scan),
        &|| bench.scan(&lists[1], &scan),
        &|| bench.scan(&lists[2], &scan),
        &|| bench.scan(&lists[3], &scan),
    ])?;
    let start = middle(&none, Cost::cpu);
    let each = |costs: &[Cost], probes: f64| (middle(costs, Cost::cpu) - start) / probes * 1000.0;
    Ok(vec![Figure {
        what: "CPU s per 1,000 probes at 1,000, 10,000 and 100,000 hosts, less what starting costs"
            .to_owned(),
        wanted: "linear within 10 %",
        measured: format!(
            "{:.4}, {:.4}, {:.4}; starting {start:.3} s; memory {:.0}, {:.0}, {:.0} MiB",
            each(&small, 1e3),
            each(&middling, 1e4),
            each(&large, 1e5),
            middle(&small, |it| it.peak),
            middle(&middling, |it| it.peak),
            middle(&large, |it| it.peak),
        ),
    }])
}
