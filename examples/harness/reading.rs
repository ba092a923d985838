//! What reading costs: a list of a million addresses, and a registry's dump that is many times what may be held.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use mcp_census::tally::grouped;

use crate::bench::{Bench, Figure, middle};
use crate::cost::{self, Bounds, Cost};

/// How many addresses a long list has; every tenth is one that stood there before.
const ADDRESSES: u32 = 1_000_000;

/// How many of them stand on one host.
const TOGETHER: u32 = 5;

/// A million addresses: read, told apart, and foretold; and drawn from, for which they are put into lanes.
pub(crate) fn million(bench: &Bench) -> Result<Vec<Figure>> {
    let list = bench.scratch.path().join("million.txt");
    let mut to = BufWriter::new(File::create(&list)?);
    for number in 0..ADDRESSES {
        let it = if number % 10 == 9 { number - 9 } else { number };
        writeln!(
            to,
            "https://h{}.example.com.s{}.test/mcp/{it}",
            it % 3,
            it / TOGETHER
        )?;
    }
    to.flush()?;
    let endpoints = format!("{}  endpoints", grouped(u64::from(ADDRESSES) / 10 * 9));
    let mut figures = Vec::new();
    for (what, further) in [
        ("read, told apart and foretold", &[][..]),
        ("the same, put into lanes", &["--max-per-site", "1000000"]),
    ] {
        let [costs] = bench.rounds([&|| foretold(bench, &list, further)])?;
        for cost in &costs {
            ensure!(cost.said.contains(&endpoints), "{}", cost.said);
        }
        figures.push(Figure {
            what: format!("a million addresses, {what}"),
            wanted: "seconds, and well below 600 MiB",
            measured: measured(&costs),
        });
    }
    Ok(figures)
}

/// A dump of the registry's present shape, of a tenth of a gigabyte.
pub(crate) fn dump(bench: &Bench) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (megabytes, wanted) in [(10, ""), (100, "as much memory as for the tenth")] {
        let list = registry_dump(bench.scratch.path(), megabytes)?;
        let [costs] = bench.rounds([&|| foretold(bench, &list, &[])])?;
        figures.push(Figure {
            what: format!("a registry's dump of {megabytes} MB"),
            wanted,
            measured: measured(&costs),
        });
    }
    Ok(figures)
}

/// The versions of a thousand servers, so that what is kept of them does not grow with the file.
fn registry_dump(folder: &Path, megabytes: usize) -> Result<PathBuf> {
    const SERVERS: usize = 1000;
    let path = folder.join(format!("dump-{megabytes}.json"));
    let mut to = BufWriter::new(File::create(&path)?);
    let (mut size, mut number) = (0, 0);
    to.write_all(b"{\"servers\":[")?;
    while size < megabytes * 1_000_000 {
        let mut entry = String::from(if number == 0 { "" } else { ",\n" });
        let (server, version) = (number % SERVERS, number / SERVERS);
        write!(
            entry,
            r#"{{"server":{{"name":"test.pub/{server}","description":"{}","version":"1.0.{version}","remotes":[{{"type":"streamable-http","url":"https://s{server}.test/mcp"}}]}},"_meta":{{"io.modelcontextprotocol.registry/official":{{"status":"active","publishedAt":"2026-07-28T00:00:00Z","isLatest":{}}}}}}}"#,
            "what it is for ".repeat(40),
            version == 0
        )?;
        to.write_all(entry.as_bytes())?;
        size += entry.len();
        number += 1;
    }
    to.write_all(b"],\"metadata\":{\"count\":0}}")?;
    to.flush()?;
    Ok(path)
}

fn foretold(bench: &Bench, list: &Path, further: &[&str]) -> Result<Cost> {
    let mut command: Vec<OsString> = vec![
        bench.binary.clone().into(),
        "scan".into(),
        "--dry-run".into(),
    ];
    command.push(list.into());
    command.extend(further.iter().map(Into::into));
    cost::of(Bounds::default(), &command)
}

fn measured(costs: &[Cost]) -> String {
    format!(
        "{:.1} s, {:.0} MiB at most",
        middle(costs, |it| it.wall),
        middle(costs, |it| it.peak)
    )
}
