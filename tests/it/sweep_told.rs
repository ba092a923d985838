//! What `sweep` tells others: hooks that hang, refuse or fail, signed webhooks, metrics, units for systemd, and what is
//! wrong with its file.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use mcp_census::periodic::history::Status;

use crate::loopback::answer;
use crate::sweep::{Ground, greeting, said, until};

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
fn a_failure_that_the_baseline_does_not_have_is_a_regression() {
    let ground = Ground::new(
        1,
        |_, _| greeting(),
        "every = \"1h\"\nprofile = \"compliance\"\nbaseline = \"known.csv\"",
    );
    let without = ground.once();
    assert!(said(&without).contains("known.csv"), "{}", said(&without));
    let scan = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .args([
            "scan",
            "list.txt",
            "--allow-net",
            "127.0.0.0/8",
            "--gap",
            "0",
            "--profile",
            "compliance",
        ])
        .args([
            "--baseline",
            "known.csv",
            "--update-baseline",
            "--out",
            "once",
        ])
        .current_dir(ground.path(""))
        .output()
        .unwrap();
    assert!(scan.status.success(), "{}", said(&scan));
    let accepted = ground.once();
    assert_eq!(accepted.status.code(), Some(0), "{}", said(&accepted));
    let known = fs::read_to_string(ground.path("known.csv")).unwrap();
    let fewer: Vec<&str> = known.lines().filter(|it| !it.contains("ping.")).collect();
    assert!(fewer.len() < known.lines().count(), "{known}");
    fs::write(ground.path("known.csv"), fewer.join("\n")).unwrap();
    let regressed = ground.once();
    assert_eq!(regressed.status.code(), Some(3), "{}", said(&regressed));
    assert_eq!(ground.lines().last().unwrap().alerts, "regression");
}
