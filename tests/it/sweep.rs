//! `sweep` as people run it, against servers on loopback: killed at any point, stopped, reloaded, and with a network or
//! a disk that fails.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcp_census::mcp::INITIALIZE_ID;
use mcp_census::periodic::history::{self, Line, Status};

use crate::loopback::{Loopback, answer};

/// A folder with a list, a file of sweeps, and a server that every row names.
pub(crate) struct Ground {
    folder: tempfile::TempDir,
    pub(crate) server: Loopback,
}

pub(crate) fn greeting() -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{INITIALIZE_ID},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
    );
    answer("200 OK", "Content-Type: application/json\r\n", &body)
}

impl Ground {
    /// Rows, what the server answers, and what the file says of the sweep beyond.
    pub(crate) fn new(
        rows: usize,
        says: impl Fn(&str, usize) -> Vec<u8> + Send + 'static,
        further: &str,
    ) -> Self {
        let server = Loopback::serving(says);
        let folder = tempfile::tempdir().unwrap();
        let list: Vec<String> = (0..rows)
            .map(|row| format!("{}/{row}", server.at))
            .collect();
        fs::write(folder.path().join("list.txt"), list.join("\n")).unwrap();
        let ground = Self { folder, server };
        ground.write(further);
        ground
    }

    pub(crate) fn write(&self, further: &str) {
        let text = format!(
            "[sweep.all]\nlists = [\"list.txt\"]\nself_check = false\n{further}\n[sweep.all.scan]\n\
             allow_net = [\"127.0.0.0/8\"]\ngap = \"0\"\nper_address = 0\nrate = 0\nconfirm = 1\ntimeout = \"5s\"\n"
        );
        fs::write(self.path("sweeps.toml"), text).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn sweep(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-census"));
        command
            .arg("sweep")
            .args(args)
            .current_dir(self.folder.path());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn once(&self) -> Output {
        self.sweep(&["--once", "all"]).output().unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        let text = fs::read_to_string(self.path("reports/history.csv")).unwrap_or_default();
        history::read(&text).unwrap()
    }

    pub(crate) fn runs(&self) -> BTreeSet<String> {
        let Ok(folder) = fs::read_dir(self.path("reports")) else {
            return BTreeSet::new();
        };
        folder
            .filter(|it| it.as_ref().unwrap().path().is_dir())
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until something is so. Bounded.
pub(crate) fn until(what: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Sends a signal, as `kill` does.
fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args(["-s", name, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Kills sweeps at random points. Afterwards every run has one line, every line its run, and nothing was asked twice.
fn survives_kills(kills: usize) {
    let ground = Ground::new(30, |_, _| greeting(), "every = \"1h\"");
    let mut drawn: u64 = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..kills {
        let mut child = ground
            .sweep(&["--once", "all"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drawn = drawn
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis((drawn >> 33) % 250));
        // Past its end there is nobody to kill.
        let _ = child.kill();
        child.wait().unwrap();
    }
    let last = ground.once();
    assert!(last.status.success(), "{}", said(&last));
    let lines = ground.lines();
    let named: Vec<String> = lines.iter().map(|it| it.run.clone()).collect();
    let distinct: BTreeSet<String> = named.iter().cloned().collect();
    assert_eq!(
        named.len(),
        distinct.len(),
        "no run is told twice: {named:#?}"
    );
    assert_eq!(distinct, ground.runs(), "no run is lost");
    for line in &lines {
        assert_eq!(
            line.status,
            Some(Status::Complete),
            "it was finished: {line:#?}"
        );
        assert_eq!(line.working, 30);
        let run = ground.path("reports").join(&line.run);
        let evidence = fs::read_to_string(run.join("evidence.ndjson")).unwrap();
        let asked = evidence
            .lines()
            .filter(|it| it.contains("\"leg\":\"initialize\""))
            .count();
        assert_eq!(asked, 30, "{}", line.run);
        assert!(run.join("report.html").exists());
    }
    assert!(ground.path("reports/index.html").exists() && ground.path("reports/all.svg").exists());
}

#[test]
fn sweeps_that_are_killed_lose_nothing_and_do_nothing_twice() {
    survives_kills(10);
}

#[test]
#[ignore = "the same, for longer"]
fn a_hundred_kills_lose_nothing() {
    survives_kills(100);
}

#[cfg(unix)]
#[test]
fn a_sweep_that_is_asked_to_stop_drains_and_the_next_start_finishes_its_run() {
    let held = Arc::new(AtomicBool::new(true));
    let holding = Arc::clone(&held);
    let ground = Ground::new(
        20,
        move |_, number| {
            // The sixth answer comes when the program has been told to stop.
            while number == 5 && holding.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(2));
            }
            greeting()
        },
        "every = \"1s\"",
    );
    let child = ground.sweep(&[]).spawn().unwrap();
    assert!(until(|| ground.server.asked().len() > 5));
    signal(&child, "TERM");
    std::thread::sleep(Duration::from_millis(100));
    held.store(false, Ordering::SeqCst);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(ground.lines().is_empty(), "it is not over");
    let begun = ground.runs();
    assert_eq!(begun.len(), 1);
    ground.write("every = \"1h\"");
    let finished = ground.once();
    assert!(finished.status.success(), "{}", said(&finished));
    let lines = ground.lines();
    assert_eq!(
        (lines[0].status, lines[0].resumed),
        (Some(Status::Complete), 1)
    );
    assert_eq!(lines[0].run, *begun.first().unwrap());
    let evidence = fs::read_to_string(
        ground
            .path("reports")
            .join(&lines[0].run)
            .join("evidence.ndjson"),
    )
    .unwrap();
    assert_eq!(
        evidence
            .lines()
            .filter(|it| it.contains("\"leg\":\"initialize\""))
            .count(),
        20
    );
}

#[cfg(unix)]
#[test]
fn a_hang_up_reads_the_file_again_and_a_mistake_in_it_changes_nothing() {
    let ground = Ground::new(1, |_, _| greeting(), "every = \"300d\"");
    let mut child = ground.sweep(&[]).spawn().unwrap();
    let mut log = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut hear = |word: &str| {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert!(
                std::io::BufRead::read_line(&mut log, &mut line).unwrap() > 0,
                "{word} was not said"
            );
        }
        line
    };
    assert!(until(|| ground.path("reports/.all.since.json").exists()));
    ground.write("evry = \"1s\"");
    signal(&child, "HUP");
    assert!(hear("stays in force").contains("sweeps.toml, line 4: unknown field `evry`"));
    ground.write("every = \"1s\"");
    signal(&child, "HUP");
    hear("read again");
    assert!(until(|| ground.lines().len() >= 2), "the new rhythm holds");
    signal(&child, "TERM");
    assert!(child.wait().unwrap().success());
}

#[test]
fn two_processes_do_not_run_one_sweep_at_once() {
    let held = Arc::new(AtomicBool::new(true));
    let holding = Arc::clone(&held);
    let ground = Ground::new(
        2,
        move |_, _| {
            while holding.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(2));
            }
            greeting()
        },
        "every = \"1h\"",
    );
    let first = ground.sweep(&["--once", "all"]).spawn().unwrap();
    assert!(until(|| !ground.server.asked().is_empty()));
    let second = ground.once();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        said(&second).contains("another process runs it now"),
        "{}",
        said(&second)
    );
    held.store(false, Ordering::SeqCst);
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success(), "{}", said(&first));
    assert_eq!((ground.lines().len(), ground.runs().len()), (1, 1));
}

#[test]
fn what_is_measured_while_the_controls_fail_counts_for_nobody() {
    // After twenty answers the network goes, for the control and for everyone, until the control was asked five times.
    let (mut asked, mut refused) = (0, 0);
    let says = std::sync::Mutex::new(move |request: &str| {
        let is_control = request.contains("control");
        if !is_control {
            std::thread::sleep(Duration::from_millis(15));
            asked += 1;
        }
        let is_gone = asked > 20 && refused < 5;
        refused += usize::from(is_gone && is_control);
        if is_gone { Vec::new() } else { greeting() }
    });
    let ground = Ground::new(60, move |request, _| (says.lock().unwrap())(request), "");
    let gone = ground.server.at.clone();
    ground.write(&format!(
        "every = \"1h\"\ncontrols = [\"{gone}/control\"]\ncontrol_every = \"20ms\""
    ));
    // Asked once: who is confirmed when the network is back is measured after all.
    let text = fs::read_to_string(ground.path("sweeps.toml")).unwrap();
    let once = text.replace("confirm = 1", "confirm = 0");
    fs::write(ground.path("sweeps.toml"), once).unwrap();
    let output = ground.once();
    let line = &ground.lines()[0];
    assert_eq!(line.status, Some(Status::Complete), "{}", said(&output));
    assert!(line.unmeasured >= 1, "{line:#?}");
    assert_eq!(line.down, 0, "it was us: {line:#?}");
    assert_eq!(line.working + line.unmeasured, 60, "{line:#?}");
    let run = ground.path("reports").join(&line.run);
    let results = fs::read_to_string(run.join("results.csv")).unwrap();
    assert!(results.contains("unmeasured,instrument_doubt"), "{results}");
    let report = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .arg("report")
        .arg(&run)
        .output()
        .unwrap();
    assert!(report.status.success());
    assert_eq!(
        fs::read_to_string(run.join("results.csv")).unwrap(),
        results,
        "read again, it is the same"
    );
}

#[test]
fn a_run_is_given_up_when_the_instrument_stays_in_doubt() {
    let ground = Ground::new(
        3,
        |request, _| {
            if request.contains("control") {
                Vec::new()
            } else {
                greeting()
            }
        },
        "",
    );
    let at = ground.server.at.clone();
    ground.write(&format!(
        "every = \"1h\"\ncontrols = [\"{at}/control\"]\ncontrol_every = \"20ms\"\ngive_up_after = \"200ms\""
    ));
    let output = ground.once();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let line = &ground.lines()[0];
    assert_eq!(
        (line.status, line.reason.as_str()),
        (Some(Status::Incomplete), "instrument")
    );
    assert_eq!((line.unmeasured, line.down), (3, 0));
    assert!(
        ground
            .server
            .asked()
            .iter()
            .all(|it| it.contains("control")),
        "nobody was asked"
    );
}

#[test]
fn a_list_is_swept_without_a_file() {
    let ground = Ground::new(2, |_, _| greeting(), "every = \"1h\"");
    let list = [
        "list.txt",
        "--every",
        "1s",
        "--name",
        "typed",
        "--no-self-check",
        "--allow-net",
        "127.0.0.0/8",
        "--gap",
        "0",
    ];
    let mut child = ground.sweep(&list).stderr(Stdio::null()).spawn().unwrap();
    assert!(until(|| ground.lines().len() >= 2));
    child.kill().unwrap();
    child.wait().unwrap();
    let line = &ground.lines()[0];
    assert_eq!((line.sweep.as_str(), line.working), ("typed", 2));
    let wanting = ground.sweep(&["list.txt"]).output().unwrap();
    assert!(
        said(&wanting).contains("when does it start?"),
        "{}",
        said(&wanting)
    );
}

/// A name server on loopback that fails every question (RFC 1035 §4.1.1: response code 2).
fn failing_name_server() -> std::net::SocketAddr {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut question = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut question) {
            question[2] |= 0x80;
            question[3] = question[3] & 0xf0 | 2;
            let _ = socket.send_to(&question[..length], from);
        }
    });
    at
}

#[test]
fn a_name_server_that_fails_is_nobodys_fault_but_ours() {
    let ground = Ground::new(1, |_, _| greeting(), "");
    let list: Vec<String> = (0..60)
        .map(|row| format!("https://s{row}.test/mcp"))
        .collect();
    fs::write(ground.path("list.txt"), list.join("\n")).unwrap();
    let text = format!(
        "[sweep.all]\nlists = [\"list.txt\"]\nself_check = false\nevery = \"1h\"\ncontrol_every = \"20ms\"\n\
         give_up_after = \"2s\"\n[sweep.all.scan]\ndns_server = \"{}\"\ncontact = \"me\"\n",
        failing_name_server()
    );
    fs::write(ground.path("sweeps.toml"), text).unwrap();
    let output = ground.once();
    let lines = ground.lines();
    let line = lines.first().unwrap_or_else(|| panic!("{}", said(&output)));
    assert_eq!((line.unmeasured, line.down), (60, 0), "{line:#?}");
}

/// A page of a registry with so many servers, all of them at one address.
fn page(at: &str, servers: usize) -> Vec<u8> {
    let entry = |number: usize| {
        serde_json::json!({
            "server": { "name": format!("a/{number}"), "version": "1.0.0",
                "remotes": [{ "type": "streamable-http", "url": format!("{at}/{number}") }] },
            "_meta": { "io.modelcontextprotocol.registry/official": { "status": "active", "isLatest": true } },
        })
    };
    let entries: Vec<_> = (0..servers).map(entry).collect();
    let body = serde_json::json!({ "servers": entries, "metadata": { "count": servers } });
    answer(
        "200 OK",
        "Content-Type: application/json\r\n",
        &body.to_string(),
    )
}

#[test]
fn a_registrys_list_is_fetched_anew_for_each_run_and_frozen_there() {
    let at = Arc::new(std::sync::Mutex::new(String::new()));
    let (known, fetched) = (Arc::clone(&at), AtomicUsize::new(0));
    let ground = Ground::new(
        1,
        move |request, _| {
            if request.starts_with("GET") {
                page(
                    &known.lock().unwrap(),
                    2 + fetched.fetch_add(1, Ordering::SeqCst),
                )
            } else {
                greeting()
            }
        },
        "",
    );
    at.lock().unwrap().clone_from(&ground.server.at);
    let text = format!(
        "[sweep.all]\nlists = [\"registry:{}\"]\nself_check = false\nevery = \"1h\"\n[sweep.all.scan]\n\
         allow_net = [\"127.0.0.0/8\"]\ngap = \"0\"\n",
        ground.server.at
    );
    fs::write(ground.path("sweeps.toml"), text).unwrap();
    for _ in 0..2 {
        let output = ground.once();
        assert!(output.status.success(), "{}", said(&output));
    }
    let lines = ground.lines();
    assert_eq!([lines[0].working, lines[1].working], [2, 3]);
    assert_ne!(lines[0].population, lines[1].population);
    assert_eq!(lines[1].breaks, "population");
    for line in &lines {
        assert!(
            ground
                .path("reports")
                .join(&line.run)
                .join("list-0.ndjson")
                .exists()
        );
    }
}

#[test]
fn tables_stay_when_evidence_goes_and_are_not_made_anew_of_nothing() {
    let ground = Ground::new(
        2,
        |_, _| greeting(),
        "every = \"300d\"\n[sweep.all.retention]\nruns = 1",
    );
    for _ in 0..2 {
        assert!(ground.once().status.success());
    }
    let runs: Vec<PathBuf> = ground
        .runs()
        .iter()
        .map(|it| ground.path("reports").join(it))
        .collect();
    let has = |run: &Path, name: &str| run.join(name).exists();
    assert!(
        !has(&runs[0], "evidence.ndjson")
            && has(&runs[0], "summary.json")
            && has(&runs[0], "results.csv")
    );
    assert!(has(&runs[1], "evidence.ndjson"));
    let report = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .arg("report")
        .arg(&runs[0])
        .output()
        .unwrap();
    assert_eq!(report.status.code(), Some(1));
    assert!(said(&report).contains("evidence"), "{}", said(&report));
}

/// A small disk of its own, where this process may mount one.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: &Path) -> Option<Self> {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1200k", "tmpfs"])
            .arg(at)
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|it| it.success());
        if !mounted {
            let _ = writeln!(
                std::io::stderr(),
                "no disk can be mounted here: a full one was not tried"
            );
        }
        mounted.then(|| Self(at.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_told_the_run_is_incomplete_and_the_next_one_starts() {
    let ground = Ground::new(40, |_, _| greeting(), "every = \"300d\"");
    let reports = ground.path("reports");
    fs::create_dir(&reports).unwrap();
    let Some(_disk) = Disk::mount(&reports) else {
        return;
    };
    // Room for a manifest and a part of the evidence.
    let ballast = reports.join("ballast");
    fs::write(&ballast, vec![0; 1148 << 10]).unwrap();
    let full = ground.once();
    assert_eq!(full.status.code(), Some(1), "{}", said(&full));
    assert!(
        said(&full).contains("No space left on device"),
        "{}",
        said(&full)
    );
    fs::remove_file(&ballast).unwrap();
    // What was left is finished first, if it can be.
    while ground.lines().len() < 2 {
        let next = ground.once();
        assert!(next.status.success(), "{}", said(&next));
    }
    let lines = ground.lines();
    let first = &lines[0];
    // It was closed with what there was, or finished by the next start: whichever could be written.
    assert!(
        first.status != Some(Status::Complete) && first.reason == "not_written"
            || first.resumed == 1,
        "{first:#?}"
    );
    let last = lines.last().unwrap();
    assert_eq!(
        (lines.len(), last.status, last.working),
        (2, Some(Status::Complete), 40)
    );
}
