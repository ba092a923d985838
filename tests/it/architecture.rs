//! The layers hold: what is pure does no IO, reads no clock, and needs no runtime. The invariant is an absence.

use std::fs;
use std::path::Path;

/// Modules that are pure, as files or folders under `src`.
const PURE: [&str; 39] = [
    "body",
    "catalogue",
    "challenge",
    "classify",
    "coding",
    "diff",
    "envelope",
    "exchange",
    "exclude",
    "explain",
    "finding",
    "forecast",
    "hint",
    "inquiry",
    "json",
    "jsonrpc",
    "list",
    "manifest",
    "mcp",
    "names",
    "outcome",
    "periodic",
    "redirect",
    "report",
    "robots",
    "roll",
    "row",
    "sampling",
    "settle",
    "sse",
    "stats",
    "story",
    "tally",
    "target",
    "unseen",
    "vantage",
    "wrap",
    "platform",
    "revision",
];

/// What none of them may name.
const BANNED: [&str; 11] = [
    "tokio",
    "reqwest",
    "std::fs",
    "std::net::Tcp",
    "std::net::Udp",
    "std::process",
    "std::thread",
    "std::env::",
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
];

/// Modules of the shell: nothing pure may depend on them.
const SHELL: [&str; 16] = [
    "cli", "merge", "probe", "fault", "resolve", "lanes", "road", "scan", "store", "reckon",
    "registry", "world", "progress", "trust", "sweep", "watch",
];

fn files(path: &Path, found: &mut Vec<std::path::PathBuf>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|it| it == "rs") {
        found.push(path.to_owned());
    }
}

/// A file's code, without its tests and comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn what_is_pure_does_no_io() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for module in PURE {
        let mut found = Vec::new();
        files(&source.join(module), &mut found);
        if source.join(format!("{module}.rs")).exists() {
            found.push(source.join(format!("{module}.rs")));
        }
        for file in found
            .iter()
            .filter(|file| file.file_name().is_none_or(|name| name != "tests.rs"))
        {
            let code = code(file);
            for banned in BANNED {
                assert!(!code.contains(banned), "{} names {banned}", file.display());
            }
            for shell in SHELL {
                assert!(
                    !code.contains(&format!("crate::{shell}::")),
                    "{} depends on {shell}",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn every_file_says_what_it_is() {
    let mut found = Vec::new();
    files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    assert!(found.len() > 30);
    for file in found {
        let text = fs::read_to_string(&file).unwrap();
        let is_tests = file.file_name().is_some_and(|name| name == "tests.rs");
        assert!(
            is_tests || text.starts_with("//! "),
            "{} does not say what it is",
            file.display()
        );
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        assert!(
            ![
                "util", "utils", "manager", "helper", "helpers", "common", "misc"
            ]
            .contains(&name.as_str()),
            "{name}"
        );
    }
}
