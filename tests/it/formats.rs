//! What CI systems are given, held against schemas: JUnit XML and SARIF of a run over the servers of the checks.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use mcp_census::world::World;
use mcp_census::world::case;
use roxmltree::{Document, Node};
use serde_json::Value;

const SARIF: &str = include_str!("../data/sarif.schema.json");

/// Scans the servers of the checks, one that is not there, and one that is no address; gives both files.
fn scanned(folder: &Path) -> (String, Value) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let world = runtime.block_on(World::gauntlet(case::checks())).unwrap();
    let mut list = vec!["name,url\ntemplate,https://{tenant}.example/mcp".to_owned()];
    for offered in world.targets() {
        list.push(format!("{},{}", offered.name, offered.url));
    }
    let (path, junit, sarif) = (
        folder.join("list.csv"),
        folder.join("checks.xml"),
        folder.join("checks.sarif"),
    );
    fs::write(&path, list.join("\n")).unwrap();
    let authority = folder.join("ca.pem");
    fs::write(&authority, world.ca_pem()).unwrap();
    let known = folder.join("known.csv");
    fs::write(&known, "url,check\n").unwrap();
    let mut hosts: Vec<String> = Vec::new();
    for offered in world.targets() {
        let url = url::Url::parse(&offered.url).unwrap();
        hosts.push(url.host_str().unwrap().to_owned());
    }
    let status = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .args(["scan", path.to_str().unwrap(), "--profile", "compliance"])
        .args(["--intrusive", "--mine", &hosts.join(",")])
        .args(["--allow-net", "127.0.0.0/8", "--contact", "mailto:a@b.test"])
        .args(["--dns-server", &world.dns().to_string()])
        .args(["--gap", "0", "--rate", "0", "--per-address", "0"])
        .args(["--confirm", "0", "--timeout", "3s", "--depth", "64"])
        .arg("--out")
        .arg(folder.join("run"))
        .arg("--ca-cert")
        .arg(&authority)
        .arg("--junit")
        .arg(&junit)
        .arg("--sarif")
        .arg(&sarif)
        .arg("--baseline")
        .arg(&known)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3), "there are failures that are new");
    let sarif = fs::read_to_string(&sarif).unwrap();
    (
        fs::read_to_string(&junit).unwrap(),
        serde_json::from_str(&sarif).unwrap(),
    )
}

#[test]
fn what_ci_systems_are_given_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let (junit, sarif) = scanned(folder.path());
    holds_to_junit(&junit);
    xmllint(&folder.path().join("checks.xml"));
    holds_to_sarif(&sarif);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    // Every check that a served server breaks is told of.
    assert!(results.len() > 80, "{}", results.len());
    let notes = &sarif["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    assert_eq!(
        notes.as_array().unwrap().len(),
        1,
        "the template is no fault of a server's"
    );
}

fn holds_to_sarif(document: &Value) {
    let schema: Value = serde_json::from_str(SARIF).unwrap();
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.enable_format_assertions();
    compiler.add_resource("http://sarif.test/", schema).unwrap();
    let index = compiler
        .compile("http://sarif.test/", &mut schemas)
        .unwrap();
    let valid = schemas
        .validate(document, index)
        .map_err(|it| it.to_string());
    assert_eq!(valid, Ok(()));
    let rules = document["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap();
    for result in document["runs"][0]["results"].as_array().unwrap() {
        let at = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[at]["id"], result["ruleId"]);
    }
}

/// What `tests/data/junit.xsd` says, and that the counts are those of the cases.
fn holds_to_junit(text: &str) {
    let document = Document::parse(text).unwrap();
    let root = document.root_element();
    assert!(root.has_tag_name("testsuites"));
    named(root, &[], &["name", "tests", "failures", "errors"]);
    let mut all = [0; 3];
    for suite in elements(root) {
        assert!(suite.has_tag_name("testsuite"));
        let counts = ["tests", "failures", "errors", "skipped"];
        named(suite, &["name", "tests"], &counts);
        let mut found = [0; 4];
        for case in elements(suite) {
            assert!(case.has_tag_name("testcase"));
            named(case, &["name", "classname"], &[]);
            found[0] += 1;
            let inner: Vec<Node> = elements(case).collect();
            assert!(inner.len() <= 1, "{case:?}");
            for it in inner {
                match it.tag_name().name() {
                    "failure" => found[1] += 1,
                    "error" => found[2] += 1,
                    "skipped" => found[3] += 1,
                    other => assert_eq!(other, "system-out"),
                }
                named(it, &[], &["message", "type"]);
                assert_eq!(elements(it).count(), 0);
            }
        }
        for (name, count) in counts.iter().zip(found) {
            assert_eq!(suite.attribute(*name), Some(count.to_string().as_str()));
        }
        for (sum, count) in all.iter_mut().zip(found) {
            *sum += count;
        }
    }
    for (name, count) in ["tests", "failures", "errors"].iter().zip(all) {
        assert_eq!(root.attribute(*name), Some(count.to_string().as_str()));
    }
    assert!(all[1] > 40 && all[2] == 1, "{all:?}");
}

fn elements<'a>(of: Node<'a, 'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    of.children().filter(Node::is_element)
}

/// The attributes that must stand there, and those that may beside them.
fn named(node: Node<'_, '_>, must: &[&str], may: &[&str]) {
    let names: Vec<&str> = node.attributes().map(|it| it.name()).collect();
    for name in must {
        assert!(names.contains(name), "{node:?} has no {name}");
    }
    for name in names {
        assert!(must.contains(&name) || may.contains(&name), "{name}");
    }
}

/// The schema itself, where there is a program that reads it; the structure was read before.
fn xmllint(file: &Path) {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/junit.xsd");
    let run = Command::new("xmllint")
        .args(["--noout", "--schema", schema])
        .arg(file)
        .output();
    if let Ok(output) = run {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
}
