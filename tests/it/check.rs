//! `check`: one endpoint explained, a change of a list gated, and what is wrong on purpose kept to one's own servers.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use mcp_census::catalogue::{CheckId, Part, rules};
use mcp_census::world::World;
use mcp_census::world::case;
use serde_json::Value;

use crate::loopback::{Loopback, answer};

/// The servers of the checks, and the runtime that they answer on.
struct Served {
    world: World,
    _runtime: tokio::runtime::Runtime,
}

impl Served {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let world = runtime.block_on(World::gauntlet(case::checks())).unwrap();
        Self {
            world,
            _runtime: runtime,
        }
    }

    fn url(&self, id: &str) -> String {
        let found = self.world.targets().iter().find(|it| it.name == id);
        found.unwrap().url.clone()
    }

    fn check(&self, args: &[&str]) -> Output {
        let dns = self.world.dns().to_string();
        check(&[&["--dns-server", &dns], args].concat())
    }

    /// How many requests a server has seen.
    fn seen(&self, id: &str) -> usize {
        let requests = self.world.requests();
        requests.iter().filter(|it| it.name == id).count()
    }
}

fn check(args: &[&str]) -> Output {
    let usual = [
        "check",
        "--allow-net",
        "127.0.0.0/8",
        "--gap",
        "0",
        "--rate",
        "0",
        "--per-address",
        "0",
        "--confirm",
        "0",
    ];
    Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .args(usual)
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn lines(output: &Output) -> Vec<Value> {
    text(&output.stdout)
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect()
}

fn written(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_endpoint_is_told_whole() {
    let served = Served::new();
    let url = served.url("good-json");
    let output = served.check(&[&url]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    for part in [
        "outcome   success (json)",
        "rule      A JSON-RPC result",
        "Decided by exchange 2.",
        "verdict   working",
        "  > POST http://good-json.gauntlet.test",
        "  < HTTP/1.1 200",
        "first byte ",
        "change    Nothing.",
        "\ncurl -i -X POST 'http://good-json",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    for rule in rules().filter(|it| it.part != Part::Intrusive) {
        assert!(told.contains(rule.id.name()), "{}", rule.id);
        // Its section may be broken over lines.
        let flat: Vec<&str> = told.split_whitespace().collect();
        assert!(flat.join(" ").contains(rule.section), "{}", rule.section);
    }
    let (story, _) = told.split_once("\ncurl ").unwrap();
    let wide: Vec<&str> = story.lines().filter(|it| it.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:?}");
}

#[test]
fn what_is_broken_is_told_with_what_to_change_first() {
    let served = Served::new();
    let output = served.check(&[&served.url("bad-init.content-type")]);
    // It works all the same: what clients can live with is no outcome.
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stdout);
    let fault = "  fail    init.content-type (MUST; transports, Sending Messages to the Server)\n";
    assert!(told.contains(fault), "{told}");
    assert!(
        told.contains("\nchange    init.content-type: Set Content-Type "),
        "{told}"
    );

    let gate = served.url("bad-tls.https");
    assert_eq!(served.check(&[&gate]).status.code(), Some(3));
    let accepted = served.check(&[&gate, "--accept", "gated"]);
    assert_eq!(accepted.status.code(), Some(0));
}

#[test]
fn where_nothing_answers_the_checks_are_no_wall_of_text() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?key=abcdefgh", closed.local_addr().unwrap());
    drop(closed);
    let output = check(&[&url]);
    assert_eq!(output.status.code(), Some(3));
    let told = text(&output.stdout);
    assert!(
        told.contains("outcome   connect_failure (refused)"),
        "{told}"
    );
    assert!(
        told.contains("checks    None of 70 could be decided: "),
        "{told}"
    );
    assert!(told.contains("change    Start the server"), "{told}");
    assert!(told.lines().count() < 40, "{told}");
    // What may be a secret is in no line of it, the one to copy included.
    assert!(!told.contains("abcdefgh"), "{told}");
}

#[test]
fn programs_are_told_the_same() {
    let served = Served::new();
    let url = served.url("bad-ping.empty-result");
    let output = served.check(&["--json", &url, "not-an-address"]);
    assert_eq!(output.status.code(), Some(3));
    let told = lines(&output);
    assert_eq!(told.len(), 2);
    let (one, other) = (&told[0], &told[1]);
    assert_eq!(one["row"]["verdict"], "working");
    assert_eq!(other["row"]["outcome"], "unprobeable");
    assert!(other["exchanges"].as_array().unwrap().is_empty());
    let decided = usize::try_from(one["decided_by"].as_u64().unwrap()).unwrap();
    assert_eq!(one["exchanges"][decided]["leg"], "initialize");
    assert!(one["curl"].as_str().unwrap().contains(&url));
    assert!(
        one["change_first"]
            .as_str()
            .unwrap()
            .starts_with("ping.empty-result: ")
    );
    let checks = one["checks"].as_array().unwrap();
    let polite = rules().filter(|it| it.part != Part::Intrusive).count();
    assert_eq!(checks.len(), polite);
    let ping = checks
        .iter()
        .find(|it| it["check"] == CheckId::PingEmptyResult.name())
        .unwrap();
    assert_eq!(
        (&ping["status"], &ping["section"]),
        (&"fail".into(), &"ping".into())
    );
}

#[test]
fn of_two_lists_only_what_changed_is_asked() {
    let served = Served::new();
    let folder = tempfile::tempdir().unwrap();
    let url = |id: &str| served.url(id);
    let (old, moved, gate) = (
        url("good-json"),
        url("good-2025-03-26"),
        url("bad-tls.https"),
    );
    let before = written(
        folder.path(),
        "old.csv",
        &format!("name,url\na,{old}\nb,{gate}\nc,https://{{tenant}}.example/mcp\n"),
    );
    // Another format, other names, another order, and the same endpoints.
    let same = written(
        folder.path(),
        "same.txt",
        &format!("{gate}\nhttps://{{tenant}}.example/mcp\n{old}\n"),
    );
    let output = served.check(&["--changed-from", &before, &same]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("3 rows: 0 new, 0 with another endpoint"));
    assert_eq!(served.seen("good-json"), 0);

    let after = written(
        folder.path(),
        "new.csv",
        &format!("name,url\na,{moved}\nb,{gate}\nd,{old}\ne,https://{{x}}.example/mcp\n"),
    );
    let output = served.check(&["--changed-from", &before, &after]);
    assert_eq!(output.status.code(), Some(3));
    let told = text(&output.stdout);
    let mut heads = told.lines().filter(|it| !it.starts_with(' '));
    assert_eq!(
        heads.next(),
        Some(format!("ok: changed, success (json): a {moved}").as_str())
    );
    assert!(
        heads
            .next()
            .unwrap()
            .starts_with("FAILED: new, unprobeable (template): e https://{x}"),
        "{told}"
    );
    assert!(told.contains("In the list: give the placeholder"), "{told}");
    assert_eq!(heads.next(), None);
    assert_eq!(
        (served.seen("good-json"), served.seen("bad-tls.https")),
        (0, 0)
    );

    let json = served.check(&["--json", "--changed-from", &before, &after]);
    let told = lines(&json);
    let changes: Vec<&Value> = told.iter().map(|it| &it["change"]).collect();
    assert_eq!(changes, ["changed", "new"]);
    assert_eq!(told[1]["line"], 5);
}

#[test]
fn lists_that_cannot_be_compared_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let list = written(
        folder.path(),
        "list.csv",
        "name,url\na,https://a.example/\n",
    );
    let page = written(folder.path(), "page.csv", "nothing here\nis an address\n");
    for (old, new, want) in [
        ("missing.csv", list.as_str(), "cannot read missing.csv"),
        (list.as_str(), "missing.csv", "cannot read missing.csv"),
        (list.as_str(), page.as_str(), "page.csv has no address"),
        (list.as_str(), "https://a.example/mcp", "is an address"),
    ] {
        let output = check(&["--changed-from", old, new]);
        assert_eq!(output.status.code(), Some(1), "{want}");
        let said = text(&output.stderr);
        assert!(said.contains(want), "{said}");
    }
    let two = check(&["--changed-from", &list, &list, &list]);
    assert!(text(&two.stderr).contains("one newer list, and 2 are named"));
}

#[test]
fn what_is_wrong_on_purpose_goes_to_ones_own_servers_alone() {
    let served = Served::new();
    let url = served.url("good-json");
    let refused = served.check(&["--intrusive", &url]);
    assert_eq!(refused.status.code(), Some(1));
    let said = text(&refused.stderr);
    assert!(
        said.contains("--mine does not name it") && said.contains("good-json.gauntlet.test"),
        "{said}"
    );
    assert_eq!(served.seen("good-json"), 0);

    let mine = ["--intrusive", "--json", "--mine", "good-json.gauntlet.test"];
    let output = served.check(&[&mine[..], &[&url]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let checks = lines(&output)[0]["checks"].as_array().unwrap().clone();
    assert_eq!(checks.len(), rules().count());
    let status = |name: &str| {
        let found = checks.iter().find(|it| it["check"] == name);
        found.unwrap()["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(status("neg.terminated-404"), "pass");
    assert_eq!(status("neg.missing-meta"), "not_applicable");

    // Without the flag nothing of it is sent.
    let before = served.seen("good-json");
    served.check(&[&url]);
    let requests = served.world.requests();
    let polite: Vec<_> = requests
        .iter()
        .filter(|it| it.name == "good-json")
        .skip(before)
        .collect();
    assert!(polite.len() <= 9, "{polite:?}");
    let census = served.check(&["--intrusive", "--profile", "census", "--mine", "x", &url]);
    assert_eq!(census.status.code(), Some(1));
}

#[test]
fn an_authorization_server_is_asked_once_for_a_whole_run() {
    let authority = Loopback::serving(|_, _| answer("404 Not Found", "", ""));
    let issuer = authority.at.clone();
    let gate = Loopback::serving(move |request, _| {
        let json = "Content-Type: application/json\r\n";
        if request.starts_with("GET /.well-known/oauth-protected-resource") {
            let body = format!("{{\"authorization_servers\":[\"{issuer}\"]}}");
            answer("200 OK", json, &body)
        } else {
            answer("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "")
        }
    });
    let urls: Vec<String> = (0..6).map(|n| format!("{}/{n}", gate.at)).collect();
    let mut args = vec!["--json", "--opening", "initialize"];
    args.extend(urls.iter().map(String::as_str));
    let output = check(&args);
    assert_eq!(
        authority.asked(),
        [
            "GET /.well-known/oauth-authorization-server",
            "GET /.well-known/openid-configuration"
        ]
    );
    let told = lines(&output);
    assert_eq!(told.len(), 6);
    let mut sent = 0;
    for row in &told {
        let legs: Vec<&str> = row["exchanges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["leg"].as_str().unwrap())
            .collect();
        assert_eq!(
            legs,
            [
                "initialize",
                "resource_metadata",
                "issuer_metadata",
                "issuer_metadata"
            ]
        );
        sent += row["row"]["requests"].as_u64().unwrap();
    }
    assert_eq!(sent, 6 * 2 + 2, "what was shared was not sent");
}

#[test]
fn an_issuer_that_is_left_alone_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let alone = written(folder.path(), "alone.txt", "auth.example\n");
    let gate = Loopback::serving(|request, _| {
        if request.starts_with("GET /.well-known/oauth-protected-resource") {
            let body = r#"{"authorization_servers":["https://login.auth.example/t"]}"#;
            answer("200 OK", "Content-Type: application/json\r\n", body)
        } else {
            answer("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "")
        }
    });
    let url = format!("{}/mcp", gate.at);
    let output = check(&["--json", "--exclude", &alone, &url]);
    let row = &lines(&output)[0];
    let replies: Vec<&Value> = row["exchanges"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["leg"] == "issuer_metadata")
        .map(|it| &it["reply"]["fault"])
        .collect();
    assert!(!replies.is_empty());
    assert!(replies.iter().all(|it| **it == "excluded"), "{replies:?}");
    let checks = row["checks"].as_array().unwrap();
    let metadata = checks
        .iter()
        .find(|it| it["check"] == "as.metadata")
        .unwrap();
    assert_eq!(
        metadata["status"], "not_observed",
        "nothing is held against it"
    );
}
