//! README, `--help` and the types tell the same story.

use std::fs;
use std::process::Command;

use mcp_census::outcome::{Outcome, Verdict};

fn readme() -> String {
    fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap()
}

/// What stands between a pair of markers.
fn marked<'a>(text: &'a str, name: &str) -> &'a str {
    let (_, after) = text
        .split_once(&format!("<!-- {name} -->\n"))
        .unwrap_or_else(|| panic!("no marker {name}"));
    after
        .split_once(&format!("<!-- /{name} -->"))
        .unwrap_or_else(|| panic!("no end of {name}"))
        .0
}

#[track_caller]
fn holds(name: &str, want: &str) {
    let text = readme();
    assert_eq!(
        marked(&text, name).trim(),
        want.trim(),
        "put this between the {name} markers of README.md:\n{want}"
    );
}

fn table(head: &str, rows: impl Iterator<Item = (&'static str, String)>) -> String {
    let rows: Vec<String> = rows
        .map(|(name, about)| format!("| `{name}` | {about} |"))
        .collect();
    format!("| {head} | meaning |\n|---|---|\n{}\n", rows.join("\n"))
}

#[test]
fn the_column_dictionary_is_what_the_types_say() {
    let kept =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/reports/README.md")).unwrap();
    let want = mcp_census::report::readme();
    assert!(kept == want, "write this to reports/README.md:\n{want}");
}

#[test]
fn every_outcome_is_explained() {
    holds(
        "outcomes",
        &table(
            "outcome",
            Outcome::ALL
                .iter()
                .map(|it| (it.name(), it.about().to_owned())),
        ),
    );
}

#[test]
fn every_verdict_is_explained() {
    holds(
        "verdicts",
        &table(
            "verdict",
            Verdict::ALL
                .iter()
                .map(|it| (it.name(), it.about().to_owned())),
        ),
    );
}

#[test]
fn every_command_of_the_help_is_in_the_readme() {
    let help = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        // A description that goes on over several lines is set in further.
        .filter(|line| !line.starts_with("   "));
    let text = readme();
    let mut count = 0;
    for command in commands
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
    {
        assert!(
            text.contains(&format!("`{command}")),
            "the README does not tell of {command}"
        );
        count += 1;
    }
    assert!(count >= 9);
}

#[test]
fn every_flag_of_the_readme_is_in_the_help() {
    let mut help = String::new();
    for command in [
        "scan", "check", "sweep", "fetch", "report", "diff", "merge", "demo", "gauntlet",
    ] {
        let said = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
            .args([command, "--help"])
            .output()
            .unwrap();
        help += &String::from_utf8(said.stdout).unwrap();
    }
    let text = readme();
    let flags = text
        .split(|it: char| !(it.is_ascii_lowercase() || it == '-'))
        .filter(|word| word.starts_with("--") && word.len() > 3);
    // Cargo's, and the harness's.
    let others = ["--release", "--path", "--example", "--loops"];
    for flag in flags.filter(|flag| !others.contains(flag)) {
        assert!(help.contains(flag), "no command has {flag}");
    }
}

#[test]
fn the_sample_of_sweeps_is_one() {
    let told = Command::new(env!("CARGO_BIN_EXE_mcp-census"))
        .args(["sweep", "validate", "--config", "data/sweeps.toml"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.status.success(), "{said}");
    assert!(said.contains("2 sweeps"), "{said}");
}

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let sample = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/reports/demo/summary.txt"
    ))
    .unwrap();
    holds("demo", &format!("```text\n{}\n```", sample.trim_end()));
}
