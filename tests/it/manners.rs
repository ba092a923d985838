//! What servers see of a scan whose list has one that asks for a rest and one that hangs: each host has an address
//! of its own, and notes when it is asked.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::loopback::answer;

/// What a host does when it is asked for the n-th time.
type Reply = fn(usize, i64) -> Option<Vec<u8>>;

/// A host, and when it was asked.
struct Host {
    url: String,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Host {
    /// A host with an address that nobody else has, in 127.0.0.0/8.
    fn at(number: u8, reply: Reply) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 99, 7, number), 0)).unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let number = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(Instant::now());
                    seen.len() - 1
                };
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(&stream);
                    let mut length = 0;
                    let mut line = String::new();
                    while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                        let lower = line.to_ascii_lowercase();
                        if let Some(value) = lower.strip_prefix("content-length:") {
                            length = value.trim().parse().unwrap();
                        }
                        line.clear();
                    }
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).unwrap();
                    let id = serde_json::from_slice(&body)
                        .map_or(0, |it: serde_json::Value| it["id"].as_i64().unwrap_or(0));
                    if let Some(bytes) = reply(number, id) {
                        let _ = (&stream).write_all(&bytes);
                    } else {
                        // Until the client has had enough.
                        let _ = reader.read(&mut [0]);
                    }
                });
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<Instant> {
        self.asked.lock().unwrap().clone()
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a reply is what it does, and some do nothing"
)]
fn works(_: usize, id: i64) -> Option<Vec<u8>> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"a","version":"1"}}}}}}"#
    );
    Some(answer(
        "200 OK",
        "Content-Type: application/json\r\n",
        &body,
    ))
}

/// An MCP server behind so many headers.
fn works_behind(headers: usize, id: i64) -> Option<Vec<u8>> {
    let whole = works(0, id)?;
    let (head, rest) = whole.split_at(whole.iter().position(|it| *it == b'\n')? + 1);
    let more = "X-More: and more\r\n".repeat(headers);
    Some([head, more.as_bytes(), rest].concat())
}

fn rests_once(number: usize, id: i64) -> Option<Vec<u8>> {
    if number > 0 {
        return works(number, id);
    }
    Some(answer("429 Too Many Requests", "Retry-After: 1\r\n", ""))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "a reply is what it does, and some do nothing"
)]
fn refuses(_: usize, _: i64) -> Option<Vec<u8>> {
    Some(answer("429 Too Many Requests", "Retry-After: 0\r\n", ""))
}

fn hangs(_: usize, _: i64) -> Option<Vec<u8>> {
    None
}

/// Scans so many endpoints of each host, and gives the rows' outcomes and details by URL.
fn scanned(hosts: &[&Host], each: usize, further: &[&str]) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.txt");
    let urls: Vec<String> = hosts
        .iter()
        .flat_map(|host| (0..each).map(|number| format!("{}?{number}", host.url)))
        .collect();
    fs::write(&list, urls.join("\n")).unwrap();
    let out = folder.path().join("run");
    let status = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .arg("scan")
        .arg(&list)
        .arg("--out")
        .arg(&out)
        .args(["--allow-net", "127.0.0.0/8", "--confirm", "0"])
        .args(["--timeout", "1500ms"])
        .args(further)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    csv::Reader::from_path(out.join("results.csv"))
        .unwrap()
        .deserialize()
        .map(|row| {
            let row: BTreeMap<String, String> = row.unwrap();
            (
                row["url"].clone(),
                format!("{}/{}", row["outcome"], row["detail"]),
            )
        })
        .collect()
}

#[test]
fn a_host_that_asks_for_a_rest_gets_it_and_slows_nobody_else() {
    let resting = Host::at(1, rests_once);
    let hanging = Host::at(2, hangs);
    let others: Vec<Host> = (3..13).map(|number| Host::at(number, works)).collect();
    let mut hosts = vec![&resting, &hanging];
    hosts.extend(&others);
    let rows = scanned(&hosts, 3, &["--gap", "20ms", "--width", "4"]);

    let rest = resting.asked();
    // Another request may have been on its way when the first was refused.
    let after = rest.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(after >= Duration::from_secs(1), "rested for {after:?}");
    let resumed = rest[rest.len() - 1];
    for other in &others {
        let asked = other.asked();
        assert_eq!(asked.len(), 3);
        assert!(asked[2] < resumed, "others were done while one rested");
        assert!(
            rows.iter()
                .filter(|it| it.0.starts_with(&other.url))
                .all(|it| it.1 == "success/json")
        );
    }
    let hung = rows.iter().filter(|it| it.0.starts_with(&hanging.url));
    assert!(hung.into_iter().all(|it| it.1 == "timeout/first_byte"));
}

#[test]
fn a_site_that_goes_on_refusing_is_left_alone_and_tried_once_more_at_the_end() {
    let refusing = Host::at(21, refuses);
    let rows = scanned(&[&refusing], 20, &["--gap", "20ms", "--depth", "1"]);
    let count = |said: &str| rows.values().filter(|it| *it == said).count();
    let asked = refusing.asked();
    assert_eq!(asked.len(), 6, "three times, and three times once more");
    assert_eq!(count("rate_limited/retry_after=0"), 6);
    assert_eq!(count("unmeasured/site_paused"), 14);
}

#[test]
fn an_address_has_a_cap_of_its_own_whatever_the_gap() {
    let host = Host::at(31, works);
    let rows = scanned(&[&host], 9, &["--gap", "0", "--per-address", "20"]);
    assert_eq!(rows.len(), 9);
    let asked = host.asked();
    let span = asked[8] - asked[0];
    assert!(
        span * 10 >= Duration::from_millis(8 * 50) * 9,
        "nine requests within {span:?}"
    );
}

#[test]
fn more_headers_than_usual_are_read_in_a_turn_of_their_own_and_too_many_are_not() {
    let usual = Host::at(41, |_, id| works_behind(90, id));
    let many = Host::at(42, |_, id| works_behind(300, id));
    let too_many = Host::at(43, |_, id| works_behind(2000, id));
    let rows = scanned(&[&usual, &many, &too_many], 1, &["--gap", "150ms"]);
    for (host, requests, said) in [
        (&usual, 1, "success/json"),
        (&many, 2, "success/json"),
        (&too_many, 2, "connection_dropped/headers_over_limit"),
    ] {
        assert_eq!(rows[&format!("{}?0", host.url)], said);
        let asked = host.asked();
        assert_eq!(asked.len(), requests, "{said}");
        for pair in asked.windows(2) {
            let gap = pair[1] - pair[0];
            assert!(
                gap >= Duration::from_millis(140),
                "asked again after {gap:?}"
            );
        }
    }
}
