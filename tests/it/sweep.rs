//! `sweep` as people run it, against servers on loopback: killed at any point, stopped, reloaded, told to hooks that
//! hang, asked for metrics, and with a network or a disk that fails.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mcp_census::mcp::INITIALIZE_ID;
use mcp_census::periodic::history::{self, Line, Status};

use crate::loopback::{Loopback, answer};

/// A folder with a list, a file of sweeps, and a server that every row names.
struct Ground {
    folder: tempfile::TempDir,
    server: Loopback,
}

fn greeting() -> Vec<u8> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{INITIALIZE_ID},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
    );
    answer("200 OK", "Content-Type: application/json\r\n", &body)
}

impl Ground {
    /// Rows, what the server answers, and what the file says of the sweep beyond.
    fn new(
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

    fn write(&self, further: &str) {
        let text = format!(
            "[sweep.all]\nlists = [\"list.txt\"]\nself_check = false\n{further}\n[sweep.all.scan]\n\
             allow_net = [\"127.0.0.0/8\"]\ngap = \"0\"\nper_address = 0\nrate = 0\nconfirm = 1\ntimeout = \"5s\"\n"
        );
        fs::write(self.path("sweeps.toml"), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn sweep(&self, args: &[&str]) -> Command {
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

    fn once(&self) -> Output {
        self.sweep(&["--once", "all"]).output().unwrap()
    }

    fn lines(&self) -> Vec<Line> {
        let text = fs::read_to_string(self.path("reports/history.csv")).unwrap_or_default();
        history::read(&text).unwrap()
    }

    fn runs(&self) -> BTreeSet<String> {
        let Ok(folder) = fs::read_dir(self.path("reports")) else {
            return BTreeSet::new();
        };
        folder
            .filter(|it| it.as_ref().unwrap().path().is_dir())
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until something is so. Bounded.
fn until(what: impl Fn() -> bool) -> bool {
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

/// A receiver that takes what it is posted, and answers, or does not.
fn receiver(
    answers: impl Fn(usize) -> Option<Vec<u8>> + Send + 'static,
) -> (
    SocketAddr,
    Arc<AtomicUsize>,
    std::sync::mpsc::Receiver<String>,
) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, (send, receive)) = (Arc::clone(&count), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let number = counted.fetch_add(1, Ordering::SeqCst);
            let Some(answer) = answers(number) else {
                kept.push(stream);
                continue;
            };
            stream
                .set_read_timeout(Some(Duration::from_secs(5)))
                .unwrap();
            let (mut text, mut block) = (Vec::new(), [0; 4096]);
            let whole = |text: &[u8]| {
                let text = String::from_utf8_lossy(text);
                text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                    let length = head.lines().find_map(|it| {
                        it.to_lowercase()
                            .strip_prefix("content-length: ")?
                            .parse::<usize>()
                            .ok()
                    });
                    body.len() >= length.unwrap_or(0)
                })
            };
            while !whole(&text) {
                let length = stream.read(&mut block).unwrap();
                assert!(length > 0);
                text.extend_from_slice(&block[..length]);
            }
            let _ = send.send(String::from_utf8(text).unwrap());
            let _ = stream.write_all(&answer);
        }
    });
    (at, count, receive)
}

#[test]
fn hooks_that_hang_refuse_or_fail_delay_no_run() {
    let (hangs, hung, _kept) = receiver(|_| None);
    let (fails, failed, _heard) = receiver(|_| Some(answer("500 Internal Server Error", "", "")));
    let refuses = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    // An answer of its own each run: every other run the server is gone.
    let run = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&run);
    let ground = Ground::new(
        1,
        move |request, _| {
            if request.starts_with("POST") && asked.load(Ordering::SeqCst) % 2 == 1 {
                answer("404 Not Found", "", "")
            } else {
                greeting()
            }
        },
        &format!(
            "every = \"1s\"\n[sweep.all.on_change]\nwebhook = \"http://{hangs}/\"\ncommand = [\"sleep\", \"60\"]\ntimeout = \"20s\"\n\
             [sweep.all.on_regression]\nwebhook = \"http://{fails}/\"\nretries = 2\n\
             [sweep.all.on_failure]\nwebhook = \"http://{refuses}/\"\n[sweep.all.alert]\nleaves_working = \"1 of 1\"\n"
        ),
    );
    let mut child = ground.sweep(&[]).stderr(Stdio::null()).spawn().unwrap();
    let mut seen = 0;
    assert!(until(|| {
        let lines = ground.lines();
        if lines.len() > 1 {
            run.store(lines.len() / 2, Ordering::SeqCst);
        }
        lines.len() >= 7
    }));
    child.kill().unwrap();
    child.wait().unwrap();
    for line in ground.lines() {
        assert_eq!(line.status, Some(Status::Complete), "{line:#?}");
        assert!(line.late_s <= 1, "nobody waited for a hook: {line:#?}");
        seen += usize::from(line.alerts.contains("change"));
    }
    assert!(seen >= 1 && hung.load(Ordering::SeqCst) >= 1 && failed.load(Ordering::SeqCst) >= 1);
}

#[test]
fn a_webhook_is_signed_and_tried_again_and_a_program_reads_the_difference() {
    let (at, count, posts) = receiver(|number| {
        Some(if number == 0 {
            answer("503 Service Unavailable", "", "")
        } else {
            answer("204 No Content", "", "")
        })
    });
    let gone = Arc::new(AtomicBool::new(false));
    let is_gone = Arc::clone(&gone);
    let ground = Ground::new(
        1,
        move |_, _| {
            if is_gone.load(Ordering::SeqCst) {
                answer("404 Not Found", "", "")
            } else {
                greeting()
            }
        },
        "",
    );
    let program = "cat > told.json; env | grep ^SWEEP_ | sort > told.env";
    ground.write(&format!(
        "every = \"1h\"\n[sweep.all.alert]\nleaves_working = \"1 of 1\"\n[sweep.all.on_regression]\nwebhook = \"http://{at}/hook\"\n\
         secret_file = \"key\"\ncommand = [\"sh\", \"-c\", {program:?}]\n"
    ));
    fs::write(ground.path("key"), "a key\n").unwrap();
    assert!(ground.once().status.success());
    gone.store(true, Ordering::SeqCst);
    let output = ground.once();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert_eq!(count.load(Ordering::SeqCst), 2, "once refused, once taken");
    let posts: Vec<String> = posts.try_iter().collect();
    let (meta, body) = posts[1].split_once("\r\n\r\n").unwrap();
    assert!(meta.starts_with("POST /hook"), "{meta}");
    assert!(meta.contains("x-mcp-census-event: regression"), "{meta}");
    let signature = hmac_of(b"a key", body.as_bytes());
    assert!(
        meta.contains(&format!("x-mcp-census-signature: sha256={signature}")),
        "{meta}"
    );
    let told: serde_json::Value =
        serde_json::from_slice(&fs::read(ground.path("told.json")).unwrap()).unwrap();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(body).unwrap(),
        told
    );
    assert_eq!(
        (&told["event"], &told["changes"][0]["after"]),
        (&"regression".into(), &"not_found".into())
    );
    assert_eq!(told["run"]["not_mcp"], 1);
    let facts = fs::read_to_string(ground.path("told.env")).unwrap();
    assert!(
        facts.contains("SWEEP_EVENT=regression\n") && facts.contains("SWEEP_NAME=all\n"),
        "{facts}"
    );
}

/// RFC 2104, by hand.
fn hmac_of(key: &[u8], text: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    let pad = |with: u8| -> Vec<u8> {
        (0..64)
            .map(|at| key.get(at).copied().unwrap_or(0) ^ with)
            .collect()
    };
    let inner = Sha256::digest([pad(0x36), text.to_vec()].concat());
    let outer = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
    let hex = outer.iter().map(|it| format!("{it:02x}"));
    hex.collect::<Vec<_>>().concat()
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

/// A GET, and its body.
fn get(at: &str, path: &str) -> Option<(String, String)> {
    let mut stream = TcpStream::connect(at).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.lines().next()?.to_owned(), body.to_owned()))
}

#[test]
fn metrics_are_served_and_written_and_a_prometheus_server_can_read_them() {
    let ground = Ground::new(3, |_, _| greeting(), "every = \"1s\"");
    let at = {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().to_string()
    };
    let port = at.rsplit_once(':').unwrap().1;
    let mut child = ground
        .sweep(&["--metrics", port, "--metrics-file", "census.prom"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(until(|| ground.lines().len() >= 2));
    let (status, text) = get(&at, "/metrics").unwrap();
    let (well, _) = get(&at, "/healthz").unwrap();
    let (other, _) = get(&at, "/").unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        (status.as_str(), well.as_str()),
        ("HTTP/1.1 200 OK", "HTTP/1.1 200 OK")
    );
    assert!(other.contains("404"));
    for line in [
        "mcp_census_sweep_last_run_rows{sweep=\"all\",verdict=\"working\"} 3",
        "mcp_census_sweep_last_run_success{sweep=\"all\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
    let total = |name: &str| -> f64 {
        let line = text.lines().find(|it| it.starts_with(name)).unwrap();
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    assert!(total("mcp_census_requests_total") >= 6.0);
    assert!(total("mcp_census_probe_duration_seconds_count") >= 6.0);
    assert!(total("mcp_census_lane_wait_seconds_count") >= 6.0);
    let file = fs::read_to_string(ground.path("census.prom")).unwrap();
    assert!(file.contains("mcp_census_build_info"));
    promtool(&text);
}

/// Lets `promtool` check metrics, where it is installed.
fn promtool(text: &str) {
    let tool = std::env::var_os("PROMTOOL").unwrap_or_else(|| "promtool".into());
    let spawned = Command::new(tool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        let _ = writeln!(
            std::io::stderr(),
            "promtool is not installed: the metrics were not checked by it"
        );
        return;
    };
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        said(&output)
    );
}

#[test]
fn validate_tells_the_next_starts_and_what_is_wrong() {
    let ground = Ground::new(
        1,
        |_, _| greeting(),
        "cron = \"30 2 * * *\"\ntime_zone = \"Europe/Berlin\"",
    );
    let told = ground.sweep(&["validate"]).output().unwrap();
    assert!(told.status.success(), "{}", said(&told));
    let text = String::from_utf8(told.stdout).unwrap();
    assert_eq!(
        text.lines().filter(|it| it.contains(" CE")).count(),
        5,
        "{text}"
    );
    for (written, says) in [
        (
            "cron = \"30 2 * *\"",
            "sweeps.toml, line 4: a cron expression has five fields",
        ),
        ("evry = \"1h\"", "sweeps.toml, line 4: unknown field `evry`"),
        (
            "every = \"1h\"\n[sweep.all.scan]\nwidht = 3\n[x]",
            "sweeps.toml, line ",
        ),
    ] {
        ground.write(written);
        let told = ground.sweep(&["validate"]).output().unwrap();
        assert_eq!(told.status.code(), Some(1));
        assert!(said(&told).contains(says), "{}", said(&told));
    }
    fs::write(
        ground.path("sweeps.toml"),
        "[sweep.all]\nlists = [\"list.txt\"]\nevery = \"1h\"\n[sweep.all.scan]\nwidth = 3\ngap = \"soon\"\nwidht = 3\n",
    )
    .unwrap();
    let told = said(&ground.sweep(&["validate"]).output().unwrap());
    assert!(
        told.contains("line 6: invalid value 'soon' for '--gap <DUR>'"),
        "{told}"
    );
    let typed = ground.sweep(&["--gap", "7s", "validate"]).output().unwrap();
    assert!(
        said(&typed).contains("[sweep.NAME.scan]"),
        "{}",
        said(&typed)
    );
}

#[test]
fn the_units_that_are_printed_are_what_systemd_takes() {
    let ground = Ground::new(
        1,
        |_, _| greeting(),
        "cron = \"*/30 3 1,15 * mon\"\ntime_zone = \"Europe/Berlin\"\njitter = \"10m\"",
    );
    let output = ground.sweep(&["print-systemd", "all"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("RandomizedDelaySec=600") && text.contains("NoNewPrivileges=yes"),
        "{text}"
    );
    let (service, timer) = text
        .split_once("# /etc/systemd/system/mcp-census-all.timer")
        .unwrap();
    let units = tempfile::tempdir().unwrap();
    let paths = [("service", service), ("timer", timer)].map(|(kind, text)| {
        let path = units.path().join(format!("mcp-census-all.{kind}"));
        fs::write(&path, text).unwrap();
        path
    });
    let Ok(verified) = Command::new("systemd-analyze")
        .arg("verify")
        .args(&paths)
        .output()
    else {
        let _ = writeln!(
            std::io::stderr(),
            "systemd-analyze is not installed: the units were not verified"
        );
        return;
    };
    assert!(
        verified.status.success() && verified.stderr.is_empty(),
        "{}",
        said(&verified)
    );
    for event in timer
        .lines()
        .filter_map(|it| it.strip_prefix("OnCalendar="))
    {
        let read = Command::new("systemd-analyze")
            .args(["calendar", event])
            .output()
            .unwrap();
        assert!(read.status.success(), "{event}: {}", said(&read));
    }
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
    let next = ground.once();
    assert!(next.status.success(), "{}", said(&next));
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
