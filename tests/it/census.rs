//! A scan of the demo's world by the program itself: killed, continued, reported again; and its manners,
//! as the servers see them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mcp_census::world::World;
use mcp_census::world::mix::Mix;

/// A world with its list and its root on disk.
pub(crate) struct Ground {
    pub(crate) world: World,
    folder: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Ground {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let world = runtime.block_on(World::demo(&Mix::embedded())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut list = fs::File::create(folder.path().join("list.csv")).unwrap();
        writeln!(list, "name,url,transport,rank").unwrap();
        for (rank, offered) in world.targets().iter().enumerate() {
            writeln!(
                list,
                "{},\"{}\",{},{rank}",
                offered.name, offered.url, offered.transport
            )
            .unwrap();
        }
        fs::write(folder.path().join("ca.pem"), world.ca_pem()).unwrap();
        Self {
            world,
            folder,
            _runtime: runtime,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `mcp-census scan` of the world's list. Its names are one site, so the lane is made wide.
    pub(crate) fn scan(&self, out: &str, gap: &str, further: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-census"));
        command
            .arg("scan")
            .arg(self.path("list.csv"))
            .arg("--out")
            .arg(self.path(out));
        command.args([
            "--allow-net",
            "127.0.0.0/8",
            "--dns-server",
            &self.world.dns().to_string(),
            "--contact",
            "mailto:you@example.test",
        ]);
        command.arg("--ca-cert").arg(self.path("ca.pem"));
        command
            .args([
                "--gap",
                gap,
                "--depth",
                "64",
                "--per-address",
                "0",
                "--rate",
                "0",
                "--timeout",
                "2s",
            ])
            .args(further);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_path(path.join("results.csv"))
        .unwrap()
        .deserialize()
        .map(Result::unwrap)
        .collect()
}

/// What was sent, by endpoint, attempt, leg and URL, as the evidence has it.
fn asked(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path.join("evidence.ndjson")).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines
        .map(|it| {
            format!(
                "{} {} {} {}",
                it["endpoint"], it["attempt"], it["leg"], it["request"]["url"]
            )
        })
        .collect()
}

/// Waits until a file has grown past a size. Bounded.
fn grown(path: &Path, bytes: u64) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        if fs::metadata(path).is_ok_and(|it| it.len() > bytes) {
            return true;
        }
        std::thread::yield_now();
    }
    false
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_killed_scan_goes_on_where_it_was_and_asks_nothing_twice() {
    let ground = Ground::new();
    let out = ground.path("run");
    let mut child = ground.scan("run", "0", &[]).spawn().unwrap();
    for size in [40_000, 400_000] {
        assert!(
            grown(&out.join("evidence.ndjson"), size),
            "the scan writes its evidence as it goes"
        );
        kill(&mut child);
        child = ground.scan("run", "0", &["--resume"]).spawn().unwrap();
    }
    assert!(child.wait().unwrap().success());

    let names: Vec<String> = rows(&out)
        .into_iter()
        .map(|mut row| row.remove("name").unwrap())
        .collect();
    let offered: Vec<String> = ground
        .world
        .targets()
        .iter()
        .map(|it| it.name.clone())
        .collect();
    assert_eq!(
        names, offered,
        "every input row has one line, in the order of the input"
    );
    let all = asked(&out);
    assert_eq!(
        all.iter().collect::<BTreeSet<_>>().len(),
        all.len(),
        "nothing that was written was asked again"
    );
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["complete"], true);
}

#[test]
fn a_report_is_byte_for_byte_what_the_scan_wrote() {
    let ground = Ground::new();
    assert!(
        ground
            .scan("run", "0", &["--limit", "200"])
            .status()
            .unwrap()
            .success()
    );
    let out = ground.path("run");
    let read = |name: &str| fs::read(out.join(name)).unwrap();
    let tables = [
        "results.csv",
        "findings.csv",
        "summary.csv",
        "summary.md",
        "summary.json",
        "datapackage.json",
        "report.html",
    ];
    let before: Vec<Vec<u8>> = tables.iter().map(|name| read(name)).collect();
    for name in tables {
        fs::remove_file(out.join(name)).unwrap();
    }
    let status = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .arg("report")
        .arg(&out)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(
        tables.iter().map(|name| read(name)).collect::<Vec<_>>(),
        before
    );
    let rows = rows(&out);
    assert_eq!(rows.len(), 1100);
    assert!(
        rows[..100]
            .iter()
            .all(|row| row["input_rank"].parse::<usize>().is_ok()),
        "the list's own columns are carried through"
    );
    assert!(rows.iter().any(|row| row["detail"] == "sampled_out"));
}

#[test]
fn an_interrupted_scan_drains_and_leaves_a_whole_run() {
    let ground = Ground::new();
    let out = ground.path("run");
    let mut child = ground.scan("run", "5ms", &[]).spawn().unwrap();
    assert!(grown(&out.join("evidence.ndjson"), 40_000));
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let rows = rows(&out);
    assert_eq!(rows.len(), 1100);
    assert!(rows.iter().any(|row| row["outcome"] == "success"));
    assert!(
        rows.iter()
            .any(|row| row["detail"] == "interrupted" && row["verdict"] == "unmeasured")
    );
}

#[test]
fn the_servers_see_a_gap_between_any_two_requests_of_a_site_and_every_session_closed() {
    let ground = Ground::new();
    let gap = Duration::from_millis(40);
    let further = ["--limit", "60", "--confirm", "1"];
    assert!(
        ground
            .scan("run", "40ms", &further)
            .status()
            .unwrap()
            .success()
    );
    let seen = ground.world.requests();
    let mut arrivals: Vec<Instant> = seen.iter().map(|it| it.at).collect();
    arrivals.sort();
    assert!(arrivals.len() >= 60);
    // A start is paced, its arrival is up to the machine: ten in a row tell, and one alone may be late.
    let fastest = arrivals
        .windows(10)
        .map(|ten| ten[9] - ten[0])
        .min()
        .unwrap();
    assert!(fastest * 2 >= gap * 9, "ten requests within {fastest:?}");
    // The message to an HTTP+SSE stream waits for its turn as well, though its stream is open.
    let mut messages = 0;
    for opened in seen.iter().filter(|it| it.method == "GET") {
        let posted = seen
            .iter()
            .find(|it| it.name == opened.name && it.method == "POST" && it.at > opened.at);
        if let Some(posted) = posted {
            assert!((posted.at - opened.at) * 4 >= gap, "{}", opened.name);
            messages += 1;
        }
    }
    assert!(messages > 0);
    assert_eq!(ground.world.open_sessions(), 0);
}

#[test]
fn the_shards_of_a_list_are_disjoint_and_cover_it() {
    let ground = Ground::new();
    let mut asked = BTreeMap::new();
    for shard in ["1/3", "2/3", "3/3"] {
        let out = format!("shard-{}", &shard[..1]);
        assert!(
            ground
                .scan(&out, "0", &["--shard", shard])
                .status()
                .unwrap()
                .success()
        );
        let rows = rows(&ground.path(&out));
        assert_eq!(
            rows.len(),
            1100,
            "every input row has its line in every shard"
        );
        for row in rows
            .iter()
            .filter(|row| row["detail"] != "other_shard" && row["outcome"] != "unprobeable")
        {
            *asked.entry(row["name"].clone()).or_insert(0) += 1;
        }
    }
    // The demo's names are one site to a scan that is not told otherwise, so one shard has them all.
    assert!(asked.len() > 1000 && asked.values().all(|times| *times == 1));
}

#[test]
fn a_site_is_sampled_by_the_seed_and_what_is_left_out_is_said() {
    let ground = Ground::new();
    assert!(
        ground
            .scan("run", "0", &["--max-per-site", "5"])
            .status()
            .unwrap()
            .success()
    );
    let rows = rows(&ground.path("run"));
    let count = |detail: &str| rows.iter().filter(|row| row["detail"] == detail).count();
    let unprobeable = rows
        .iter()
        .filter(|row| row["outcome"] == "unprobeable")
        .count();
    assert_eq!(count("sampled_out"), 1100 - unprobeable - 5);
}

#[test]
fn a_run_is_held_against_the_checks_and_a_baseline() {
    let ground = Ground::new();
    let budget = ["--profile", "compliance", "--limit", "40"];
    assert!(
        ground
            .scan("held", "0", &budget)
            .status()
            .unwrap()
            .success()
    );
    let run = ground.path("held");
    let findings: Vec<BTreeMap<String, String>> = csv::Reader::from_path(run.join("findings.csv"))
        .unwrap()
        .deserialize()
        .map(Result::unwrap)
        .collect();
    let of_checks = findings.iter().filter(|it| it["level"] != "note");
    let mut by_server: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in of_checks {
        *by_server.entry(&finding["url"]).or_default() += 1;
    }
    let measured = rows(&run)
        .iter()
        .filter(|it| it["verdict"] != "unmeasured")
        .count();
    assert!(measured >= 20 && by_server.len() <= measured);
    assert!(
        by_server.values().all(|count| *count == 70),
        "{by_server:?}"
    );
    for row in rows(&run) {
        assert!(row["requests"].parse::<usize>().unwrap() <= 8, "{row:?}");
        assert_ne!(row["session"], "left", "{row:?}");
    }

    let (junit, sarif) = (ground.path("checks.xml"), ground.path("checks.sarif"));
    let baseline = ground.path("known.csv");
    let report = |further: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-census"));
        command
            .arg("report")
            .arg(&run)
            .arg("--baseline")
            .arg(&baseline);
        command
            .arg("--junit")
            .arg(&junit)
            .arg("--sarif")
            .arg(&sarif);
        command
            .args(further)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().unwrap().code()
    };
    assert_eq!(report(&[]), Some(1), "there is no baseline yet");
    assert_eq!(report(&["--update-baseline"]), Some(0));
    assert_eq!(report(&[]), Some(0), "what is known is accepted");
    let failed = findings.iter().any(|it| it["status"] == "fail");
    fs::write(&baseline, "url,check\n").unwrap();
    assert_eq!(report(&[]), Some(if failed { 3 } else { 0 }));
    assert!(fs::read_to_string(&junit).unwrap().contains("<testsuite "));
    let sarif: serde_json::Value = serde_json::from_slice(&fs::read(&sarif).unwrap()).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
}

#[test]
fn a_range_that_is_left_alone_covers_what_a_name_resolves_to() {
    let ground = Ground::new();
    let file = ground.path("exclude.txt");
    fs::write(&file, "127.0.0.0/8\n").unwrap();
    let further = ["--limit", "20", "--exclude", file.to_str().unwrap()];
    assert!(
        ground
            .scan("run", "0", &further)
            .status()
            .unwrap()
            .success()
    );
    let details: BTreeSet<String> = rows(&ground.path("run"))
        .into_iter()
        .filter(|row| row["verdict"] != "unmeasured")
        .map(|row| row["detail"].clone())
        .collect();
    assert!(details.contains("excluded"), "{details:?}");
    assert!(ground.world.requests().is_empty());
}
