//! A registry on loopback that misbehaves in every way that registries do: the walk ends right or is taken up
//! again, and a list that is not whole is never passed off as one.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use crate::loopback::{Loopback, answer};

fn census(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn fetch(at: &str, out: &Path, further: &[&str]) -> Output {
    walking(at, out, further).output().unwrap()
}

fn walking(at: &str, out: &Path, further: &[&str]) -> Command {
    let base = [
        "fetch",
        "--registry",
        at,
        "--out",
        out.to_str().unwrap(),
        "--allow-net",
        "127.0.0.0/8",
        "--rate",
        "0",
        "--backoff",
        "1ms",
        "--tries",
        "4",
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-census"));
    command
        .args([&base[..], further].concat())
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn entry(name: &str, version: &str, url: &str, status: &str) -> Value {
    json!({
        "server": { "name": name, "version": version, "remotes": [{ "type": "streamable-http", "url": url }] },
        "_meta": { "io.modelcontextprotocol.registry/official": { "status": status, "isLatest": true } },
    })
}

/// An entry that a scan sends nothing for.
fn template(name: &str) -> Value {
    entry(name, "1.0.0", "https://{tenant}.example.test/mcp", "active")
}

fn page(entries: &[Value], next: Option<&str>) -> Vec<u8> {
    let body =
        json!({ "servers": entries, "metadata": { "count": entries.len(), "nextCursor": next } });
    answer(
        "200 OK",
        "Content-Type: application/json\r\n",
        &body.to_string(),
    )
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn names(list: &Path) -> Vec<String> {
    fs::read_to_string(list)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|it| Some(it["server"]["name"].as_str()?.to_owned()))
        .collect()
}

/// Whether a dry run says that the list is not whole, where it stands and where it has been copied to.
#[track_caller]
fn is_told_to_be_partial(list: &Path) -> bool {
    let copy = list.with_file_name("copied-elsewhere.ndjson");
    fs::copy(list, &copy).unwrap();
    let told = [list, &copy].map(|path| {
        let output = census(&[
            "scan",
            "--dry-run",
            "--format",
            "json",
            path.to_str().unwrap(),
        ]);
        assert!(output.status.success(), "{}", said(&output));
        let outlook: Value = serde_json::from_slice(&output.stdout).unwrap();
        outlook["lists"][0]["partial"] == true
    });
    assert_eq!(told[0], told[1]);
    told[0]
}

#[test]
fn a_walk_outlives_refusals_failures_and_pages_that_are_cut_short() {
    const ODD: &str = "a/b:1.0+x &\u{e9}";
    let server = Loopback::serving(|request, number| match number {
        0 => page(&[template("a/a"), template("a/b")], Some(ODD)),
        1 => answer("429 Too Many Requests", "Retry-After: 0\r\n", ""),
        2 => answer("500 Internal Server Error", "", "{}"),
        3 => answer("200 OK", "", "{\"servers\":[{\"server\":{\"na"),
        4 => page(&[], Some("next")),
        5 => page(&[template("b/a")], Some("")),
        _ => panic!("nothing more is asked: {request}"),
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("list.ndjson");
    let output = fetch(&server.at, &out, &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(names(&out), ["a/a", "a/b", "b/a"]);
    assert!(!is_told_to_be_partial(&out));
    let asked = server.asked();
    assert_eq!(asked[0], "GET /v0.1/servers?version=latest&limit=100");
    for request in &asked[1..5] {
        assert!(
            request.ends_with("&cursor=a%2Fb%3A1.0%2Bx%20%26%C3%A9"),
            "{request}"
        );
    }
    let meta = json_of(&folder.path().join("list.ndjson.meta.json"));
    assert_eq!(
        (
            &meta["complete"],
            &meta["entries"],
            meta["pages"].as_array().unwrap().len()
        ),
        (&json!(true), &json!(3), 3)
    );
    assert!(
        meta["pages"]
            .as_array()
            .unwrap()
            .iter()
            .all(|page| page["sha256"].as_str().unwrap().len() == 64)
    );
    assert!(!folder.path().join("list.ndjson.part").exists());
}

#[test]
fn a_walk_that_dies_half_way_goes_on_from_there() {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let server = Loopback::serving(move |request, _| {
        if request.ends_with("cursor=two") {
            page(&[template("c/a")], None)
        } else if request.ends_with("cursor=one") {
            if well.load(Ordering::Relaxed) {
                page(&[template("b/a")], Some("two"))
            } else {
                answer("503 Service Unavailable", "", "")
            }
        } else {
            page(&[template("a/a")], Some("one"))
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("list.ndjson");
    let output = fetch(&server.at, &out, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(
        said(&output).contains("not whole") && said(&output).contains("HTTP 503"),
        "{}",
        said(&output)
    );
    assert_eq!(names(&out), ["a/a"]);
    assert!(is_told_to_be_partial(&out));
    let run = folder.path().join("run");
    let scanned = census(&[
        "scan",
        out.to_str().unwrap(),
        "--out",
        run.to_str().unwrap(),
    ]);
    assert!(scanned.status.success(), "{}", said(&scanned));
    assert!(
        fs::read_to_string(run.join("summary.md"))
            .unwrap()
            .contains("The list is not whole")
    );

    is_well.store(true, Ordering::Relaxed);
    let before = server.asked().len();
    let output = fetch(&server.at, &out, &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(names(&out), ["a/a", "b/a", "c/a"]);
    assert_eq!(
        server.asked().len() - before,
        2,
        "the first page is not asked for again"
    );
    assert!(!is_told_to_be_partial(&out));

    // A whole list is not replaced by one that is not.
    is_well.store(false, Ordering::Relaxed);
    let output = fetch(&server.at, &out, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("stays as it was"),
        "{}",
        said(&output)
    );
    assert_eq!(names(&out), ["a/a", "b/a", "c/a"]);
    assert!(!is_told_to_be_partial(&out));
}

#[test]
fn a_walk_that_is_killed_goes_on_and_has_the_whole_list_with_nothing_twice() {
    const PAGES: usize = 12;
    let name = |page: usize, at: usize| format!("p{page:02}/s{at}");
    let (reached, at) = mpsc::channel();
    let (go, told) = mpsc::channel::<()>();
    let held = Mutex::new(vec![11, 7, 3]);
    let server = Loopback::serving(move |request, _| {
        let number: usize = request
            .rsplit_once("cursor=")
            .map_or(0, |(_, cursor)| cursor.parse().unwrap());
        let mut held = held.lock().unwrap();
        if held.last() == Some(&number) {
            held.pop();
            // The walk waits for this page when it is killed.
            reached.send(number).unwrap();
            told.recv().unwrap();
        }
        let entries: Vec<Value> = (0..3).map(|at| template(&name(number, at))).collect();
        let next = (number + 1 < PAGES).then(|| (number + 1).to_string());
        page(&entries, next.as_deref())
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("list.ndjson");
    for page in [3, 7, 11] {
        let mut walk = walking(&server.at, &out, &[]).spawn().unwrap();
        assert_eq!(at.recv_timeout(Duration::from_secs(20)), Ok(page));
        walk.kill().unwrap();
        walk.wait().unwrap();
        go.send(()).unwrap();
        assert!(
            !out.exists(),
            "what is not whole is not passed off as a list"
        );
        // A kill may fall in the middle of a line.
        let mut part = OpenOptions::new()
            .append(true)
            .open(folder.path().join("list.ndjson.part"))
            .unwrap();
        part.write_all(b"{\"server\":{\"name\":\"torn").unwrap();
    }
    let output = fetch(&server.at, &out, &[]);
    assert!(output.status.success(), "{}", said(&output));
    let whole: Vec<String> = (0..PAGES)
        .flat_map(|page| (0..3).map(move |at| name(page, at)))
        .collect();
    assert_eq!(names(&out), whole);
    assert!(!is_told_to_be_partial(&out));
    let meta = json_of(&folder.path().join("list.ndjson.meta.json"));
    assert_eq!(meta["pages"].as_array().unwrap().len(), PAGES);
    assert_eq!(meta["entries"], PAGES * 3);
    assert_eq!(
        server.asked().len(),
        PAGES + 3,
        "only the pages that were lost are asked for again"
    );
}

#[test]
fn a_cursor_that_comes_back_ends_the_walk_and_the_list_is_not_whole() {
    let server = Loopback::serving(|request, _| {
        let next = if request.ends_with("cursor=one") {
            "two"
        } else {
            "one"
        };
        page(&[template(&format!("a/{next}"))], Some(next))
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("list.ndjson");
    let output = fetch(&server.at, &out, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("repeats the cursor"),
        "{}",
        said(&output)
    );
    assert_eq!(server.asked().len(), 3);
    assert!(is_told_to_be_partial(&out));
}

#[test]
fn a_walk_that_is_told_to_stop_says_so_and_can_go_on() {
    let server = Loopback::serving(|request, _| {
        let number: u32 = request
            .rsplit("cursor=")
            .next()
            .and_then(|it| it.parse().ok())
            .unwrap_or(0);
        let next = (number < 3).then(|| (number + 1).to_string());
        page(&[template(&format!("a/{number}"))], next.as_deref())
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("list.ndjson");
    let output = fetch(&server.at, &out, &["--max-pages", "2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("--max-pages"), "{}", said(&output));
    assert!(is_told_to_be_partial(&out));
    let output = fetch(&server.at, &out, &["--max-servers", "3"]);
    assert!(said(&output).contains("--max-servers"), "{}", said(&output));
    assert!(fetch(&server.at, &out, &[]).status.success());
    assert_eq!(names(&out).len(), 4);
    assert_eq!(server.asked().len(), 4);
}

#[test]
fn what_is_no_registry_leaves_nothing_behind() {
    for (what, bytes) in [
        ("no server", page(&[], None)),
        (
            "web page",
            answer(
                "200 OK",
                "Content-Type: text/html\r\n",
                "<!doctype html><html></html>",
            ),
        ),
        ("other JSON", answer("200 OK", "", "{\"status\":\"ok\"}")),
        ("not found", answer("404 Not Found", "", "")),
        (
            "moved",
            answer(
                "301 Moved Permanently",
                "Location: https://elsewhere.test/\r\n",
                "",
            ),
        ),
    ] {
        let server = Loopback::serving(move |_, _| bytes.clone());
        let folder = tempfile::tempdir().unwrap();
        let output = fetch(&server.at, &folder.path().join("list.ndjson"), &[]);
        assert_eq!(output.status.code(), Some(1), "{what}");
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "{what}: {}", said(&output));
    }
    let folder = tempfile::tempdir().unwrap();
    let closed = census(&[
        "fetch",
        "--registry",
        "http://127.0.0.1:9",
        "--out",
        folder.path().join("x").to_str().unwrap(),
    ]);
    assert!(
        said(&closed).contains("not a public address"),
        "{}",
        said(&closed)
    );
}

#[test]
fn an_increment_is_worked_into_the_list() {
    let server = Loopback::serving(|request, _| {
        if request.contains("updated_since=2026-11-30T11%3A00%3A00Z") {
            page(
                &[
                    entry("a/a", "2.0.0", "https://{new}.test/mcp", "active"),
                    entry("a/b", "1.0.0", "https://{tenant}.test/mcp", "deleted"),
                    template("a/z"),
                ],
                None,
            )
        } else if request.contains("updated_since") {
            answer("500 Internal Server Error", "", "")
        } else {
            page(&[template("a/a"), template("a/b"), template("a/c")], None)
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("list.ndjson");
    let nothing_yet = fetch(&server.at, &out, &["--since", "last"]);
    assert!(
        said(&nothing_yet).contains("without --since first"),
        "{}",
        said(&nothing_yet)
    );
    assert!(fetch(&server.at, &out, &[]).status.success());
    let failed = fetch(&server.at, &out, &["--since", "last"]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(names(&out), ["a/a", "a/b", "a/c"]);
    assert!(!is_told_to_be_partial(&out));
    let output = fetch(&server.at, &out, &["--since", "2026-11-30T12:00:00Z"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(names(&out), ["a/a", "a/b", "a/c", "a/z"]);
    let outlook = census(&[
        "scan",
        "--dry-run",
        "--format",
        "json",
        out.to_str().unwrap(),
    ]);
    let outlook: Value = serde_json::from_slice(&outlook.stdout).unwrap();
    assert_eq!(outlook["unprobeable"]["deleted"]["rows"], 1);
    assert_eq!(
        outlook["rows"], 4,
        "the new version took the old one's place"
    );
}

#[test]
fn a_scan_of_a_registry_fetches_its_list_first() {
    let server = Loopback::serving(|_, number| match number {
        0 => page(&[template("a/a")], Some("one")),
        _ => answer("404 Not Found", "", ""),
    });
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let list = format!("registry:{}", server.at);
    let output = census(&[
        "scan",
        &list,
        "--allow-net",
        "127.0.0.0/8",
        "--out",
        run.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("not whole"), "{}", said(&output));
    let manifest = json_of(&run.join("manifest.json"));
    assert_eq!(manifest["lists"][0]["partial"], true);
    assert_eq!(manifest["rows"], 1);
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("The list is not whole"),
        "every table says so"
    );
    let dry = census(&["scan", "--dry-run", &list]);
    assert_eq!(dry.status.code(), Some(1));
}
