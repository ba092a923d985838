//! `diff` of two run directories, as people run it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The demo's sample as a run: with a manifest, and some of its cells changed.
fn run(
    folder: &Path,
    name: &str,
    edit: impl Fn(&str) -> String,
    manifest: &[(&str, &str)],
) -> PathBuf {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/demo/results.csv");
    let path = folder.join(name);
    fs::create_dir(&path).unwrap();
    fs::write(
        path.join("results.csv"),
        edit(&fs::read_to_string(sample).unwrap()),
    )
    .unwrap();
    let mut text = r#"{"tool":"mcp-census 0.1.0","rules_version":1,"command":[],"lists":[{"path":"l","format":"csv","sha256":"aa","rows":1100}],
        "seed":0,"parameters":{"protocol_version":"2025-11-25","opening":"initialize","profile":"census","budget":8,"width":1,"depth":1,"gap_ms":0,"rate":0,"per_address":1,
        "timeout_ms":1000,"connect_timeout_ms":500,"confirm":1},"started_at":"2026-11-30T12:00:00Z","ended_at":null,
        "complete":true,"rows":1100,"endpoints":1095,"requests":0,"most_asked":null}"#
        .to_owned();
    for (before, after) in manifest {
        assert!(text.contains(before), "{before}");
        text = text.replace(before, after);
    }
    fs::write(path.join("manifest.json"), text).unwrap();
    path
}

fn diff(before: &Path, after: &Path, further: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .arg("diff")
        .args([before, after])
        .args(further)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Everything that worked over `sse` is gone, and one server has another name.
fn weeks_later(results: &str) -> String {
    results
        .replace("success,sse,working", "not_found,404,not_mcp")
        .replace(
            "2024-11-05,amber-agenda,",
            "2024-11-05,\"=evil|\u{1b}[2J<b>`x`\",",
        )
}

#[test]
fn every_change_is_told_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let before = run(folder.path(), "before", str::to_owned, &[]);
    let after = run(folder.path(), "after", weeks_later, &[]);
    let moved = fs::read_to_string(before.join("results.csv"))
        .unwrap()
        .matches("success,sse,working")
        .count() as u64;
    assert!(moved > 20);

    let json: serde_json::Value =
        serde_json::from_slice(&diff(&before, &after, &["--format", "json"]).stdout).unwrap();
    let changes = json["changes"].as_array().unwrap();
    assert_eq!(
        changes.len() as u64,
        2 * moved + 1,
        "an outcome and a verdict of each, and a name"
    );
    let working = &json["shares"][0];
    assert_eq!(
        (&working["value"], &working["lost"], &working["gained"]),
        (&"working".into(), &moved.into(), &0.into())
    );
    assert!(working["p_mcnemar"].as_f64().unwrap() < 0.001);

    let csv = text(&diff(&before, &after, &["--format", "csv"]).stdout);
    let lines: Vec<csv::StringRecord> = csv::Reader::from_reader(csv.as_bytes())
        .records()
        .map(Result::unwrap)
        .collect();
    let count = lines.iter().filter(|it| &it[0] == "change").count();
    assert_eq!(count, changes.len());
    assert!(
        lines.iter().any(|it| it[5].starts_with("'=evil")),
        "a formula is neutralised"
    );

    let shown = text(&diff(&before, &after, &[]).stdout);
    assert!(
        shown.contains("significant") && shown.contains("working  not_mcp"),
        "{shown}"
    );
    let markdown = text(&diff(&before, &after, &["--format", "md"]).stdout);
    assert!(!markdown.contains("<b>"), "markup is inert");
    let html = text(&diff(&before, &after, &["--format", "html"]).stdout);
    for said in [
        "<h2>Shares</h2>",
        "significant",
        "Verdicts after",
        "&lt;b&gt;",
    ] {
        assert!(html.contains(said), "{said}");
    }
    assert!(!html.contains("<script"), "a page that runs nothing");
    for said in [shown, markdown, csv, html] {
        assert!(!said.contains('\u{1b}'));
    }

    let same = diff(&before, &before, &[]);
    let said = text(&same.stdout).replace('\n', " ");
    assert!(said.contains("0 changed, 0 appeared, 0 are gone"), "{said}");
}

#[test]
fn what_another_vantage_sees_is_set_apart() {
    let folder = tempfile::tempdir().unwrap();
    let before = run(folder.path(), "before", str::to_owned, &[]);
    let vantage = [("\"lists\"", "\"vantage\":\"elsewhere\",\"lists\"")];
    let after = run(folder.path(), "after", weeks_later, &vantage);
    let output = diff(&before, &after, &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["changes"], serde_json::json!([]));
    assert!(
        json["set_apart"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["cause"] == "vantage")
    );
    assert_eq!(json["instrument"][0]["after"], "elsewhere");
    assert!(
        json["shares"]
            .as_array()
            .unwrap()
            .iter()
            .all(|it| it["lost"] == 0)
    );
}

#[test]
fn other_lists_are_refused_unless_what_they_share_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let before = run(folder.path(), "before", str::to_owned, &[]);
    let shorter = |results: &str| {
        results
            .lines()
            .take(501)
            .fold(String::new(), |text, it| text + it + "\n")
    };
    let after = run(folder.path(), "after", shorter, &[("\"aa\"", "\"bb\"")]);
    let refused = diff(&before, &after, &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("--intersect"),
        "{}",
        text(&refused.stderr)
    );
    let output = diff(&before, &after, &["--intersect", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["common"], &json["appeared"]),
        (&500.into(), &serde_json::json!([]))
    );
    assert_eq!(json["gone"].as_array().unwrap().len(), 600);
}
