//! The command line as people meet it: mistakes, pipes that close, places that cannot be written.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

fn census(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-census"));
    command.args(args).stdin(Stdio::null());
    command
}

fn fed(args: &[&str], input: &str) -> Output {
    let mut child = census(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Scans a list that names nothing to connect to; gives what it said, its exit code, and the run directory.
fn scan(list: &str, further: &[&str]) -> (Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    fs::write(&path, list).unwrap();
    let out = folder.path().join("run");
    let args = [
        &[
            "scan",
            path.to_str().unwrap(),
            "--out",
            out.to_str().unwrap(),
            "--dns-server",
            "127.0.0.1:1",
        ],
        further,
    ]
    .concat();
    (census(&args).output().unwrap(), folder)
}

#[test]
fn a_bad_row_is_named_and_becomes_a_row() {
    let list = "name,url,team\na,https://{tenant}.example.test/mcp,red\nb\nc,wss://c.example.test/mcp,blue\n";
    let (output, folder) = scan(list, &[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains("list.csv, line 3"),
        "{}",
        text(&output.stderr)
    );
    let results = fs::read_to_string(folder.path().join("run/results.csv")).unwrap();
    let details: Vec<&str> = results
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(8).unwrap())
        .collect();
    assert_eq!(details, ["template", "bad_row", "scheme"]);
    assert!(
        results.lines().next().unwrap().ends_with(",input_team")
            && results.lines().nth(1).unwrap().ends_with(",red")
    );
}

#[test]
fn what_cannot_be_done_is_said_in_a_sentence() {
    let (empty, folder) = scan("name,url\n", &[]);
    assert_eq!(empty.status.code(), Some(1));
    assert!(
        text(&empty.stderr).contains("has no rows"),
        "{}",
        text(&empty.stderr)
    );
    assert!(
        !folder.path().join("run").exists(),
        "nothing was measured, so nothing is left"
    );

    let (columns, _) = scan("name,address\na,b\n", &[]);
    assert_eq!(columns.status.code(), Some(1));
    assert!(
        text(&columns.stderr).contains("url"),
        "{}",
        text(&columns.stderr)
    );

    let missing = census(&[
        "scan",
        "/no/such/list.csv",
        "--out",
        "/tmp/unused-by-this-test",
    ])
    .output()
    .unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("cannot read /no/such/list.csv"));

    let unwritable = census(&["scan", "-", "--out", "/proc/nope"])
        .output()
        .unwrap();
    assert_eq!(unwritable.status.code(), Some(1));
    assert!(
        text(&unwritable.stderr).contains("/proc/nope"),
        "{}",
        text(&unwritable.stderr)
    );

    assert_eq!(census(&["scan"]).output().unwrap().status.code(), Some(2));
    assert_eq!(
        census(&["scan", "x.csv", "--gap", "soon"])
            .output()
            .unwrap()
            .status
            .code(),
        Some(2)
    );
    assert_eq!(
        census(&["report", "/proc"]).output().unwrap().status.code(),
        Some(1)
    );
}

#[test]
fn a_census_of_strangers_says_who_takes_it() {
    let rows: Vec<String> = (0..11)
        .map(|n| format!("https://site-{n}.example{n}.test/mcp"))
        .collect();
    let (output, folder) = scan(&format!("url\n{}\n", rows.join("\n")), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("--contact"),
        "{}",
        text(&output.stderr)
    );
    assert!(!folder.path().join("run").exists());
}

#[test]
fn an_excluded_host_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("excluded.txt");
    fs::write(&list, "# left out\nexample.test  # all of it\n").unwrap();
    let (output, run) = scan(
        "url\nhttps://mcp.example.test/mcp\n",
        &["--exclude", list.to_str().unwrap()],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        fs::read_to_string(run.path().join("run/results.csv"))
            .unwrap()
            .contains(",excluded,unprobeable,")
    );
    let checked = |url: &str| {
        census(&["check", url, "--exclude", list.to_str().unwrap()])
            .output()
            .unwrap()
    };
    let refused = checked("https://mcp.example.test/mcp");
    assert_eq!(refused.status.code(), Some(3));
    let why = text(&refused.stderr);
    assert!(
        why.contains("not asked") && why.contains("excluded.txt, line 2: example.test"),
        "{why}"
    );
    assert!(
        text(&refused.stdout).contains("excluded"),
        "{}",
        text(&refused.stdout)
    );
    fs::write(&list, "not a host\n").unwrap();
    assert_eq!(checked("https://a.test/").status.code(), Some(1));
    let (output, _) = scan(
        "url\nhttps://mcp.example.test/mcp\n",
        &["--exclude", list.to_str().unwrap()],
    );
    assert!(
        text(&output.stderr).contains("line 1"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_pipe_that_closes_early_is_no_failure() {
    let mut child = census(&["explain", "-32001", "-32601", "success"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn messages_are_sorted_and_answered_line_by_line() {
    let sorted = fed(
        &["jsonrpc", "classify"],
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n\
         {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n\
         {\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"x\"}\n[]\n{\"tools\":[]}\nnonsense\n",
    );
    assert_eq!(
        text(&sorted.stdout),
        "request\nnotification\nresult\nerror\ninvalid\ninvalid\ninvalid\ninvalid\n"
    );
    let answered = fed(
        &[
            "jsonrpc",
            "answer",
            "--supports",
            "tools/list",
            "--supports",
            "tools/call",
        ],
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n{\"jsonrpc\":\"2.0\",\"id\":\"x-1\",\"method\":\"initialize\"}\n",
    );
    let refusal = r#"{"jsonrpc": "2.0", "id": "x-1", "error": {"code": -32601, "message": "Method not found"}}"#;
    assert_eq!(text(&answered.stdout), format!("supported\n{refusal}\n"));
}

#[test]
fn every_word_of_the_census_can_be_explained() {
    for word in [
        "-32001",
        "-32020",
        "auth_required",
        "gated",
        "error_id_null",
    ] {
        let output = census(&["explain", word]).output().unwrap();
        assert!(
            output.status.success() && output.stdout.len() > 80,
            "{word}"
        );
        assert!(
            text(&output.stdout)
                .lines()
                .all(|line| line.chars().count() <= 80),
            "{word}"
        );
    }
    assert_eq!(
        census(&["explain", "no_such_word"])
            .output()
            .unwrap()
            .status
            .code(),
        Some(1)
    );
}
