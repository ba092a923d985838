//! `merge`: shards of one list come to what one machine would have seen; vantages to what any of them did.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use mcp_census::inquiry::{BUDGET, Opening, Profile, Terms};
use mcp_census::manifest::{ListFile, Manifest, Parameters};
use mcp_census::mcp::{ASKED_VERSION, Identity};
use mcp_census::probe::{Limits, Prober, Reach};
use mcp_census::road::Pace;
use mcp_census::roll::{Freezer, Listed};
use mcp_census::scan::{self, Headers, Run, Stop};
use mcp_census::store::{RunDir, file};
use mcp_census::target::{AddressPolicy, Shard, Suffixes};
use mcp_census::world::mix::Mix;
use mcp_census::world::{DEMO, World};

/// Requests in flight of a run.
const WIDTH: usize = 16;

fn identity() -> Identity {
    Identity {
        contact: Some("https://demo.test/about".to_owned()),
    }
}

/// The run of a world's list, or of a shard of it, in which each of the world's names is a site of its own.
pub(crate) fn run(world: &World, path: &Path, shard: Option<Shard>) -> Run {
    let nets = ["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
    let policy = AddressPolicy::opening(nets.into());
    let suffixes = Suffixes::default().with(DEMO);
    let mut freezer = Freezer::new(policy.clone()).with_shard(shard, &suffixes);
    let dir = RunDir::create(path).unwrap();
    dir.replace(file::TARGETS, |to| {
        for (line, offered) in (1..).zip(world.targets()) {
            let entry = freezer.freeze(Listed {
                line,
                name: offered.name.clone(),
                url: offered.url.clone(),
                transport: mcp_census::list::transport(&offered.transport),
                ..Listed::default()
            });
            serde_json::to_writer(&mut *to, &entry)?;
            to.write_all(b"\n")?;
        }
        Ok(())
    })
    .unwrap();
    let targets = freezer.into_targets();
    let parameters = Parameters {
        protocol_version: ASKED_VERSION.to_owned(),
        opening: Opening::Initialize,
        profile: Profile::Census,
        budget: BUDGET,
        contact: identity().contact,
        width: WIDTH,
        depth: 2,
        gap_ms: 0,
        rate: 0,
        per_address: 0,
        timeout_ms: 4000,
        connect_timeout_ms: 3000,
        confirm: 0,
        dns_server: Some(world.dns().to_string()),
        ca_cert: Vec::new(),
        allow_net: vec!["127.0.0.0/8".into(), "::1/128".into()],
        excluded: Vec::new(),
        intrusive: false,
        mine: Vec::new(),
    };
    let list = ListFile {
        path: "demo".into(),
        format: "demo".into(),
        sha256: "aa".into(),
        rows: world.targets().len() as u64,
        partial: false,
        headers_sent: Vec::new(),
        extra_columns: Vec::new(),
    };
    let manifest = Manifest {
        lists: vec![list],
        suffixes: vec![DEMO.to_owned()],
        shard,
        rows: world.targets().len() as u64,
        endpoints: targets.len() as u64,
        ..Manifest::begun(jiff::Timestamp::now(), Vec::new(), parameters)
    };
    let reach = Reach {
        limits: Limits {
            connect: Duration::from_secs(3),
            total: Duration::from_secs(4),
        },
        policy: policy.into(),
        dns_server: Some(world.dns()),
        questions: mcp_census::resolve::QUESTIONS,
        extra_roots: vec![world.ca_pem().to_owned()],
    };
    Run {
        dir,
        manifest,
        targets,
        headers: Headers::default(),
        terms: Terms {
            identity: identity(),
            version: ASKED_VERSION.to_owned(),
            confirm: 0,
            profile: Profile::Census,
            budget: BUDGET,
            opening: Opening::Initialize,
            own: None,
        },
        pace: Pace {
            width: WIDTH,
            depth: 2,
            gap: Duration::ZERO,
            rate: None,
            per_address: None,
        },
        prober: Prober::new(reach, identity()).unwrap(),
        watch: std::sync::Arc::default(),
    }
}

fn census(arguments: &[&str], runs: &[PathBuf], out: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .args(arguments)
        .args(runs)
        .arg("--out")
        .arg(out)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_path(path.join("results.csv"))
        .unwrap()
        .deserialize()
        .map(Result::unwrap)
        .collect()
}

/// Rows without what a clock says.
fn timeless(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut rows = rows(path);
    for row in &mut rows {
        row.retain(|name, _| !name.ends_with("_ms") && name != "started_at");
        let findings = row.get_mut("findings").unwrap();
        let kept: Vec<&str> = findings
            .split(';')
            .filter(|it| *it != "slow_first_byte")
            .collect();
        *findings = kept.join(";");
    }
    rows
}

#[test]
fn sixteen_shards_come_to_the_run_of_one_machine_row_for_row() {
    const SHARDS: u64 = 16;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let parts: Vec<PathBuf> = (1..=SHARDS).map(|part| path(&format!("s{part}"))).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let world = World::demo(&Mix::embedded()).await.unwrap();
        let whole = scan::run(run(&world, &path("whole"), None), Stop::default(), false);
        assert!(whole.await.unwrap().complete);
        // A few at a time: a name server and a machine that are asked too much at once are not what is tried here.
        for some in (1..=SHARDS).collect::<Vec<_>>().chunks(4) {
            let mut scans = tokio::task::JoinSet::new();
            for &part in some {
                let shard = Shard { part, of: SHARDS };
                let of_shard = run(&world, &path(&format!("s{part}")), Some(shard));
                assert!(
                    (20..200).contains(&of_shard.targets.len()),
                    "shards are of a size"
                );
                scans.spawn(scan::run(of_shard, Stop::default(), false));
            }
            while let Some(scanned) = scans.join_next().await {
                assert!(scanned.unwrap().unwrap().complete);
            }
        }
    });
    let merged = path("merged");
    let output = census(&["merge"], &parts, &merged);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let whole = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .arg("report")
        .arg(path("whole"))
        .output()
        .unwrap();
    assert!(whole.status.success());
    let (one, many) = (timeless(&path("whole")), timeless(&merged));
    assert_eq!(one.len(), 1100);
    for (one, many) in one.iter().zip(&many) {
        assert_eq!(one, many);
    }
    assert_eq!(one.len(), many.len());
    let manifest: Manifest =
        serde_json::from_slice(&fs::read(merged.join("manifest.json")).unwrap()).unwrap();
    assert_eq!((manifest.parts.len(), manifest.complete), (16, true));

    // It is a run like any other.
    let before = fs::read(merged.join("summary.json")).unwrap();
    let again = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .arg("report")
        .arg(&merged)
        .output()
        .unwrap();
    assert!(again.status.success());
    assert_eq!(fs::read(merged.join("summary.json")).unwrap(), before);
    let diff = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .arg("diff")
        .args([path("whole"), merged.clone()])
        .output()
        .unwrap();
    let said = text(&diff.stdout).replace('\n', " ");
    assert!(
        said.contains(" 0 changed, 0 appeared, 0 are gone"),
        "{said}"
    );
    let resumed = census(&["scan", "--resume"], &[], &merged);
    assert!(text(&resumed.stderr).contains("was merged from other runs"));

    // What is missing, or there twice, is named.
    for (runs, said) in [
        (parts[..15].to_vec(), "shard 16/16 is missing"),
        (
            [&parts[..2], &parts[4..]].concat(),
            "shard 3/16 is missing, and with it 4/16",
        ),
        (
            [&parts[..], &parts[..1]].concat(),
            "are both shard 1/16: shards are disjoint",
        ),
        ([&parts[..], &[path("whole")]].concat(), "is no shard"),
        (vec![path("whole")], "one run is whole already"),
    ] {
        let out = path("refused");
        let output = census(&["merge"], &runs, &out);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text(&output.stderr).contains(said),
            "{}",
            text(&output.stderr)
        );
        assert!(!out.exists(), "nothing is left of what was refused");
    }
}

/// The run of one place over three servers, of which this place sees each as given: `Some` answers with that status
/// and body, `None` refuses the connection.
fn seen_from(folder: &Path, place: &str, answers: &[Option<(u16, &str)>]) -> PathBuf {
    let out = folder.join(place);
    fs::create_dir(&out).unwrap();
    let mut freezer = Freezer::default();
    let mut evidence = String::new();
    let mut list = String::new();
    for (number, answer) in answers.iter().enumerate() {
        let url = format!("https://s{number}.example{number}.test/mcp");
        let entry = freezer.freeze(Listed {
            line: number as u64 + 1,
            name: format!("s{number}"),
            url: url.clone(),
            ..Listed::default()
        });
        list += &(serde_json::to_string(&entry).unwrap() + "\n");
        let request = identity().initialize(&url.parse().unwrap(), ASKED_VERSION);
        let reply = match answer {
            Some((status, body)) => serde_json::json!({"answer": {
                "version": "HTTP/1.1", "status": status, "headers": [["content-type", "application/json"]],
                "body": body, "end": "complete",
            }}),
            None => serde_json::json!({"fault": {"connect": "refused"}}),
        };
        let exchange = serde_json::json!({
            "endpoint": number, "attempt": 0, "leg": "initialize", "started_at": "2026-11-30T12:00:00Z",
            "request": request, "reply": reply,
        });
        evidence += &(exchange.to_string() + "\n");
    }
    fs::write(out.join("targets.ndjson"), list).unwrap();
    fs::write(out.join("evidence.ndjson"), evidence).unwrap();
    let manifest = serde_json::json!({
        "tool": "mcp-census 0.1.0", "rules_version": 1, "command": [], "vantage": place,
        "lists": [{"path": "l", "format": "csv", "sha256": "aa", "rows": answers.len()}], "seed": 0,
        "parameters": {"protocol_version": ASKED_VERSION, "width": 1, "depth": 1, "gap_ms": 0, "rate": 0,
            "timeout_ms": 1000, "connect_timeout_ms": 500, "confirm": 0},
        "started_at": "2026-11-30T12:00:00Z", "ended_at": "2026-11-30T12:01:00Z", "complete": true,
        "rows": answers.len(), "endpoints": answers.len(), "requests": answers.len(), "most_asked": null,
    });
    fs::write(out.join("manifest.json"), manifest.to_string()).unwrap();
    out
}

#[test]
fn a_row_works_where_any_vantage_says_so_and_is_down_only_where_all_do() {
    let folder = tempfile::tempdir().unwrap();
    let greeting = serde_json::json!({"jsonrpc": "2.0", "id": mcp_census::mcp::INITIALIZE_ID, "result": {
        "protocolVersion": ASKED_VERSION, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"},
    }})
    .to_string();
    let works = Some((200, greeting.as_str()));
    let gone = Some((404, ""));
    // Busy: it measures nothing, and contradicts nobody.
    let busy = Some((429, ""));
    let north = seen_from(folder.path(), "north", &[works, None, None, gone, busy]);
    let south = seen_from(folder.path(), "south", &[None, None, busy, works, gone]);
    let out = folder.path().join("both");
    let output = census(
        &["merge", "--table", "disagreement"],
        &[north.clone(), south.clone()],
        &out,
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let seen: Vec<[String; 4]> = rows(&out)
        .into_iter()
        .map(|mut row| {
            ["verdict", "findings", "at_north", "at_south"].map(|it| row.remove(it).unwrap())
        })
        .collect();
    let want = [
        ["working", "regional:working,down", "working", "down"],
        ["down", "", "down", "down"],
        ["unmeasured", "", "down", "unmeasured"],
        ["working", "regional:not_mcp,working", "not_mcp", "working"],
        ["not_mcp", "", "unmeasured", "not_mcp"],
    ];
    assert_eq!(seen, want.map(|it| it.map(str::to_owned)));
    crate::recompute::holds(&out);
    let table = text(&output.stdout);
    for line in [
        "all that measured it agree         1  33.3 %",
        "they disagree                      2  66.7 %",
        "north: not_mcp, south: working     1  33.3 %",
        "north: working, south: down        1  33.3 %",
        "north alone: working               1  25.0 %",
    ] {
        assert!(table.contains(line), "{line}\n{table}");
    }
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("down only if it is from all"));

    let same = census(
        &["merge"],
        &[north.clone(), north.clone()],
        &folder.path().join("x"),
    );
    assert!(text(&same.stderr).contains("both asked from north"));
    let whole = census(&["merge"], &[out, south], &folder.path().join("x"));
    assert!(text(&whole.stderr).contains("of several vantages already"));
    let manifest = north.join("manifest.json");
    let other = fs::read_to_string(&manifest)
        .unwrap()
        .replace(ASKED_VERSION, "2025-06-18");
    fs::write(&manifest, other).unwrap();
    let otherwise = census(
        &["merge"],
        &[north, folder.path().join("south")],
        &folder.path().join("x"),
    );
    assert!(
        text(&otherwise.stderr).contains("were made with another protocol_version"),
        "{}",
        text(&otherwise.stderr)
    );
}
