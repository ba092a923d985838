//! Lists: what a scan would do with one, what may not leave it, and where a registry's comes from.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::loopback::{Loopback, answer};

fn census(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The `detail` of every row of a run.
fn details(run: &Path) -> Vec<String> {
    csv::Reader::from_path(run.join("results.csv"))
        .unwrap()
        .deserialize::<std::collections::BTreeMap<String, String>>()
        .map(|row| row.unwrap()["detail"].clone())
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn written(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[track_caller]
fn foretold(args: &[&str]) -> Value {
    let output = census(&[&["scan", "--dry-run", "--format", "json"], args].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A registry's list with 40 endpoints on one host, templates, a duplicate, a taken-down and a deprecated server.
fn registry_list() -> String {
    let entry = |name: &str, status: &str, remotes: &str| {
        format!(
            r#"{{"server":{{"name":"{name}","version":"1.0.0","remotes":[{remotes}]}},"_meta":{{"io.modelcontextprotocol.registry/official":{{"status":"{status}","isLatest":true}}}}}}"#
        )
    };
    let remote = |kind: &str, url: &str| format!(r#"{{"type":"{kind}","url":"{url}"}}"#);
    let mut entries: Vec<String> = (0..40)
        .map(|n| {
            let remote = remote("streamable-http", &format!("https://big.test/{n}/mcp"));
            entry(&format!("test.big/{n}"), "active", &remote)
        })
        .collect();
    entries.push(entry(
        "test.a/one",
        "active",
        &[
            remote("sse", "https://a.test/sse"),
            remote("streamable-http", "https://{tenant}.a.test/mcp"),
        ]
        .join(","),
    ));
    entries.push(entry(
        "test.a/two",
        "deprecated",
        &remote("streamable-http", "https://BIG.test:443/0/mcp"),
    ));
    entries.push(entry(
        "test.a/three",
        "deleted",
        &remote("streamable-http", "https://spam.test/mcp"),
    ));
    format!(
        r#"{{"servers":[{}],"metadata":{{"count":43}}}}"#,
        entries.join(",")
    )
}

#[test]
fn a_dry_run_tells_what_a_scan_would_do_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let list = written(folder.path(), "registry.json", &registry_list());
    let outlook = foretold(&[&list]);
    for (key, want) in [
        ("rows", 44),
        ("rows_probed", 42),
        ("endpoints", 41),
        ("hosts", 2),
        ("sites", 2),
        ("duplicates", 1),
        ("deprecated", 1),
        ("requests_least", 41),
        ("requests_robots", 0),
    ] {
        assert_eq!(outlook[key], want, "{key}");
    }
    assert_eq!(outlook["lists"][0]["format"], "registry");
    assert_eq!(outlook["lists"][0]["servers"], 43);
    assert_eq!(outlook["unprobeable"]["deleted"]["rows"], 1);
    assert_eq!(
        outlook["unprobeable"]["template"]["examples"][0],
        "https://{tenant}.a.test/mcp"
    );
    assert_eq!(outlook["variables"][0][0], "{tenant}");
    assert_eq!(outlook["largest_lanes"][0]["site"], "big.test");
    assert_eq!(outlook["largest_lanes"][0]["endpoints"], 40);
    assert_eq!(outlook["floor"]["seconds"], 19.5);
    assert_eq!(foretold(&[&list, "--robots"])["requests_robots"], 2);
    assert_eq!(
        foretold(&[&list, "--confirm", "0"])["requests_confirming"],
        0
    );
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing is written"
    );

    let said = census(&["scan", "--dry-run", &list]);
    let said = text(&said.stdout);
    for words in [
        "44  rows\n",
        "42  rows that name an endpoint to be asked\n",
        "41  endpoints, each asked once\n",
        "{tenant}",
        "It takes at least 20s",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(said.lines().all(|it| it.chars().count() <= 80), "{said}");
}

#[test]
fn a_dry_run_is_told_in_every_format_that_it_has_and_in_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let list = written(folder.path(), "registry.json", &registry_list());
    let told = |further: &[&str]| census(&[&["scan", "--dry-run", &list], further].concat());
    let table = text(&told(&["--format", "csv"]).stdout);
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let records: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    for want in [
        ["counts", "endpoints", "count", "41"],
        ["unprobeable", "deleted", "rows", "1"],
        ["largest_lanes", "big.test", "endpoints", "40"],
        ["time", "largest_lane", "least_s", "19.5"],
        [
            "unprobeable",
            "template",
            "example",
            "https://{tenant}.a.test/mcp",
        ],
    ] {
        assert!(
            records.iter().any(|it| *it == want[..]),
            "{want:?}: {table}"
        );
    }
    let page = text(&told(&["--format", "md"]).stdout);
    assert!(page.contains("\n| big.test | 40 | "), "{page}");
    for further in [["--format", "html"], ["--table", "outcomes"]] {
        let refused = told(&further);
        assert_eq!(refused.status.code(), Some(1), "{further:?}");
        let why = text(&refused.stderr);
        assert!(
            why.contains(further[0]) && refused.stdout.is_empty(),
            "{why}"
        );
    }
}

#[test]
fn the_demo_takes_the_requests_that_its_forecast_expects() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/demo");
    let list = sample.join("results.csv");
    let outlook = foretold(&[list.to_str().unwrap()]);
    let summary = fs::read_to_string(sample.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    // A run counts the GET of an HTTP+SSE stream and the POST to the address in it as one.
    let streams = &outlook["transports"]["sse"];
    assert_eq!(
        outlook["requests_expected"].as_u64().unwrap(),
        summary["facts"]["requests"].as_u64().unwrap() + streams.as_u64().unwrap()
    );
}

#[test]
fn a_page_of_a_registry_is_not_passed_off_as_its_whole_list() {
    let folder = tempfile::tempdir().unwrap();
    let page = r#"{"servers":[{"server":{"name":"a/b","version":"1","remotes":[{"type":"sse","url":"https://{x}.test/sse"}]}}],"metadata":{"nextCursor":"a/b:1","count":1}}"#;
    let list = written(folder.path(), "page.json", page);
    assert_eq!(foretold(&[&list])["lists"][0]["partial"], true);
    let out = folder.path().join("run");
    let output = census(&["scan", &list, "--out", out.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for name in ["summary.md", "summary.json"] {
        let summary = fs::read_to_string(out.join(name)).unwrap();
        assert!(
            summary.contains("The list is not whole") || summary.contains("\"partial\": true"),
            "{name}: {summary}"
        );
    }
    assert!(text(&output.stdout).contains("The list is not whole"));
}

#[test]
fn what_a_client_is_configured_to_send_stays_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let list = written(
        folder.path(),
        "mcp.json",
        r#"{"mcpServers":{"acme":{"url":"ftp://u:hunter2@a.test/mcp?key=s3cretkey","headers":{"Authorization":"Bearer t0ken-value"}},
        "other":{"url":"https://u:hunter2@a.test/mcp?key=s3cretkey","headers":{"X-Key":"${HOME}"}}}}"#,
    );
    let said = census(&["scan", "--dry-run", &list]);
    let out = folder.path().join("run");
    let scanned = census(&["scan", &list, "--out", out.to_str().unwrap()]);
    assert!(scanned.status.success(), "{}", text(&scanned.stderr));
    let mut places = vec![
        text(&said.stdout),
        text(&said.stderr),
        text(&scanned.stdout),
    ];
    for file in fs::read_dir(&out).unwrap() {
        let path = file.unwrap().path();
        let read = fs::read_to_string(&path).unwrap();
        assert!(!read.contains("t0ken-value"), "{}", path.display());
        if !path.ends_with("targets.ndjson") {
            places.push(read);
        }
    }
    for place in places {
        for secret in ["hunter2", "s3cretkey", "t0ken-value"] {
            assert!(!place.contains(secret), "{place}");
        }
    }
}

#[test]
fn what_robots_txt_forbids_is_not_asked() {
    let server = Loopback::serving(|request, _| match request {
        "GET /robots.txt" => answer(
            "200 OK",
            "Content-Type: text/plain\r\n",
            "User-agent: *\nDisallow: /\n\nUser-agent: mcp-census\nDisallow: /private\n",
        ),
        _ => answer("404 Not Found", "", ""),
    });
    let folder = tempfile::tempdir().unwrap();
    let urls = ["private/mcp", "mcp", "private/sse"].map(|path| format!("{}/{path}", server.at));
    let list = written(folder.path(), "list.txt", &urls.join("\n"));
    let out = folder.path().join("run");
    let further = ["--allow-net", "127.0.0.0/8", "--gap", "0", "--confirm", "0"];
    let args = [
        &["scan", &list, "--robots", "--out", out.to_str().unwrap()],
        &further[..],
    ]
    .concat();
    let output = census(&args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(details(&out), ["robots", "404", "robots"]);
    let asked = server.asked();
    assert_eq!(
        asked.iter().filter(|it| *it == "GET /robots.txt").count(),
        1,
        "it is read once a host: {asked:?}"
    );
    assert!(!asked.iter().any(|it| it.contains("private")), "{asked:?}");
    let evidence = fs::read_to_string(out.join("evidence.ndjson")).unwrap();
    assert!(evidence.contains("Disallow: /private"));
}

/// A name server on loopback that knows of no name.
fn knows_no_name() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = socket.local_addr().unwrap().to_string();
    // It ends with the test's process.
    std::thread::spawn(move || {
        let mut message = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut message) {
            // A response, NXDOMAIN (RFC 1035 §4.1.1).
            message[2] |= 0x80;
            message[3] = 3;
            let _ = socket.send_to(&message[..length], from);
        }
    });
    at
}

#[test]
fn a_site_that_keeps_back_its_robots_txt_is_not_asked_and_one_that_has_none_is() {
    let dns = knows_no_name();
    let robots = |answer: &'static [u8]| {
        Loopback::serving(move |request, _| match request {
            "GET /robots.txt" => answer.to_vec(),
            _ => self::answer("404 Not Found", "", ""),
        })
    };
    for (what, bytes, detail) in [
        (
            "fails",
            &b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"[..],
            "site_paused",
        ),
        (
            "has enough",
            b"HTTP/1.1 429 X\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
            "site_paused",
        ),
        ("hangs up", b"", "site_paused"),
        (
            "breaks off",
            b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nUser-agent: *\n",
            "site_paused",
        ),
        (
            "has none",
            b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n",
            "404",
        ),
        (
            "tells nobody",
            b"HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n",
            "404",
        ),
    ] {
        let server = robots(bytes);
        let folder = tempfile::tempdir().unwrap();
        // Where a name leads nowhere there is nobody to ask, and the probe says so.
        let urls = format!("{}/mcp\nhttps://no-such-name.example.test/mcp", server.at);
        let list = written(folder.path(), "list.txt", &urls);
        let out = folder.path().join("run");
        let output = census(&[
            "scan",
            &list,
            "--robots",
            "--dns-server",
            &dns,
            "--allow-net",
            "127.0.0.0/8",
            "--gap",
            "0",
            "--confirm",
            "0",
            "--out",
            out.to_str().unwrap(),
        ]);
        assert!(output.status.success(), "{what}: {}", text(&output.stderr));
        assert_eq!(details(&out), [detail, "nxdomain"], "{what}");
        let asked = server.asked().iter().any(|it| it.ends_with("/mcp"));
        assert_eq!(asked, detail == "404", "{what}: {:?}", server.asked());
    }
}

#[test]
fn a_range_that_is_left_alone_is_not_connected_to() {
    let server = Loopback::serving(|_, _| answer("404 Not Found", "", ""));
    let folder = tempfile::tempdir().unwrap();
    let list = written(folder.path(), "list.txt", &format!("{}/mcp", server.at));
    let exclude = written(
        folder.path(),
        "exclude.txt",
        "# a network\n127.0.0.0/8 # all of it\n",
    );
    let out = folder.path().join("run");
    let output = census(&[
        "scan",
        &list,
        "--allow-net",
        "127.0.0.0/8",
        "--exclude",
        &exclude,
        "--out",
        out.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(details(&out), ["excluded"]);
    assert!(server.asked().is_empty());
    let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
    assert!(
        manifest.contains("127.0.0.0/8"),
        "a resumed run keeps to it"
    );
}

#[test]
fn configured_headers_are_sent_where_that_is_asked_for_and_written_nowhere_else() {
    let elsewhere = Loopback::serving(|_, _| answer("404 Not Found", "", ""));
    let to = format!("Location: {}/moved\r\n", elsewhere.at);
    let server = Loopback::serving(move |request, _| {
        if request.ends_with("/moved") {
            answer("307 Temporary Redirect", &to, "")
        } else {
            answer(
                "401 Unauthorized",
                "WWW-Authenticate: Bearer\r\n",
                "you sent t0ken-value",
            )
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let list = written(
        folder.path(),
        "mcp.json",
        &format!(
            r#"{{"mcpServers":{{"acme":{{"url":"{0}/mcp","headers":{{"Authorization":"Bearer t0ken-value","X-Env":"${{HOME}}","Accept":"x/y"}}}},
            "moved":{{"url":"{0}/moved","headers":{{"X-Key":"k3y-value"}}}}}}}}"#,
            server.at
        ),
    );
    let scan = |out: &Path, further: &[&str]| {
        let base = [
            "scan",
            &list,
            "--allow-net",
            "127.0.0.0/8",
            "--gap",
            "0",
            "--confirm",
            "0",
            "--out",
            out.to_str().unwrap(),
        ];
        let output = census(&[&base[..], further].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        output
    };
    scan(&folder.path().join("without"), &[]);
    let sent = server.headers().concat() + &elsewhere.headers().concat();
    assert!(!sent.contains("-value"), "{sent}");

    let out = folder.path().join("with");
    let output = scan(&out, &["--send-headers", &list]);
    let warning = text(&output.stderr);
    assert!(
        warning.contains("WARNING") && warning.contains("Authorization, X-Key"),
        "{warning}"
    );
    let sent = server.headers().concat();
    assert!(
        sent.contains("Bearer t0ken-value") && sent.contains("k3y-value"),
        "{sent}"
    );
    assert!(
        !sent.contains("X-Env") && !sent.to_ascii_lowercase().contains("x-env"),
        "{sent}"
    );
    assert!(
        !elsewhere.headers().concat().contains("k3y-value"),
        "a redirect to another origin takes no credentials along"
    );
    let mut places = vec![text(&output.stdout), warning];
    for file in fs::read_dir(&out).unwrap() {
        let path = file.unwrap().path();
        if !path.ends_with("targets.ndjson") {
            places.push(fs::read_to_string(&path).unwrap());
        }
    }
    for place in places {
        assert!(
            !place.contains("t0ken-value") && !place.contains("k3y-value"),
            "{place}"
        );
    }
}

#[test]
fn the_messages_of_a_stream_carry_configured_headers_to_its_own_origin_alone() {
    let elsewhere = Loopback::serving(|_, _| answer("202 Accepted", "", ""));
    let away = format!("event: endpoint\ndata: {}/messages\n\n", elsewhere.at);
    let server = Loopback::serving(move |request, _| {
        let stream = "Content-Type: text/event-stream\r\n";
        match request {
            "GET /sse" => answer("200 OK", stream, "event: endpoint\ndata: /messages?s=1\n\n"),
            "GET /away" => answer("200 OK", stream, &away),
            "POST /messages?s=1" => answer("202 Accepted", "", ""),
            _ => answer("404 Not Found", "", ""),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let list = written(
        folder.path(),
        "mcp.json",
        &format!(
            r#"{{"mcpServers":{{"here":{{"type":"sse","url":"{0}/sse","headers":{{"X-Key":"k3y-value"}}}},
            "away":{{"type":"sse","url":"{0}/away","headers":{{"X-Key":"k3y-away"}}}}}}}}"#,
            server.at
        ),
    );
    let out = folder.path().join("run");
    let output = census(&[
        "scan",
        &list,
        "--send-headers",
        &list,
        "--allow-net",
        "127.0.0.0/8",
        "--gap",
        "0",
        "--confirm",
        "0",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let sent: Vec<(String, String)> = server.asked().into_iter().zip(server.headers()).collect();
    let key = |request: &str| {
        let (_, headers) = sent.iter().find(|(asked, _)| asked == request).unwrap();
        ["k3y-value", "k3y-away"]
            .into_iter()
            .find(|it| headers.contains(it))
    };
    assert_eq!(key("GET /sse"), Some("k3y-value"));
    assert_eq!(key("POST /messages?s=1"), Some("k3y-value"));
    assert_eq!(key("GET /away"), Some("k3y-away"));
    let astray = elsewhere.headers().concat();
    assert!(!astray.contains("k3y"), "{astray}");
    let evidence = fs::read_to_string(out.join("evidence.ndjson")).unwrap();
    assert!(
        evidence.contains("\"sse_message\"") && !evidence.contains("k3y"),
        "{evidence}"
    );
}

#[test]
fn a_row_without_an_address_is_complained_of_by_file_and_line_and_a_file_that_is_no_list_once() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "# ours\nhttps://{x}.test/mcp\nwhat is this?key=s3cretvalue\n";
    let urls = written(folder.path(), "urls.txt", lines);
    let table = "name,url\na,https://{x}.test/mcp\nb,\nc,https://a b.test:99999/\n";
    let table = written(folder.path(), "list.csv", table);
    let broken = "{\"url\":\"https://{x}.test/mcp\"}\n{\"url\":\n\"https://{y}.test/mcp\"\n{\"url\":\"stdio\"}\n";
    let broken = written(folder.path(), "list.ndjson", broken);
    let said = census(&["scan", "--dry-run", &urls, &table, &broken]);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let complaints = text(&said.stderr);
    for words in [
        "urls.txt, line 3: \"what is this",
        "list.csv, line 3: there is no address; write one",
        "list.csv, line 4: \"https://a b.test:99999/\" is no valid address",
        "list.ndjson, line 2: ",
        "list.ndjson, line 4: \"stdio\" is no http or https address; write https://",
    ] {
        assert!(complaints.contains(words), "{words}: {complaints}");
    }
    assert_eq!(complaints.lines().count(), 5, "{complaints}");
    assert!(!complaints.contains("s3cretvalue"), "{complaints}");

    let cards = r#"{"servers":[{"card":{}},{"card":{}},{"card":{}}]}"#;
    let cards = written(folder.path(), "cards.json", cards);
    let refused = text(&census(&["scan", "--dry-run", &cards]).stderr);
    assert!(
        refused.lines().count() == 1 && refused.contains("3 of 3 entries give no server"),
        "{refused}"
    );
    let empty = written(folder.path(), "empty.json", "{}");
    let refused = census(&["scan", "--dry-run", &empty]);
    assert_eq!(refused.status.code(), Some(1), "no census is empty");
}
