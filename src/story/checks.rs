//! The checks of one endpoint for a reader: what is broken in full, what is held to in short, what was not decided by
//! why. Each stands with its section of the specification.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::catalogue::{CheckId, Checked, Status};
use crate::explain;
use crate::outcome::Verdict;
use crate::row::Row;
use crate::tally;
use crate::wrap::wrap;

use super::{WIDTH, inert, labelled};

/// Where the text of a paragraph stands, in columns.
const INDENT: usize = 10;

/// The section; empty where nothing was held against the catalogue.
pub(super) fn told(checked: &[Checked]) -> String {
    if checked.is_empty() {
        return String::new();
    }
    if !checked.iter().any(|it| it.status.is_decided()) {
        return format!("\n{}\n", labelled("checks", &undecided(checked)));
    }
    let mut out = format!("\nchecks    {}\n", counts(checked));
    for status in [Status::Fail, Status::Warn] {
        for it in checked.iter().filter(|it| it.status == status) {
            let rule = it.check.rule();
            let head = format!("  {}", status.name());
            let name = format!("{} ({}; {})", it.check, rule.level, rule.section);
            let _ = writeln!(out, "{}", paragraph(&head, &name));
            let seen = if it.detail.is_empty() {
                it.check.about().to_owned()
            } else {
                format!("{} Seen: {}.", it.check.about(), inert(&it.detail))
            };
            let _ = writeln!(out, "{}", wrap(&seen, WIDTH, &" ".repeat(INDENT)));
        }
    }
    groups(&mut out, "pass", checked, |it| {
        (it.status == Status::Pass).then_some("")
    });
    for (name, is_it) in [
        (
            "not applicable",
            (|it| matches!(it, Status::NotApplicable(_))) as fn(Status) -> bool,
        ),
        ("not observed", |it| matches!(it, Status::NotObserved(_))),
    ] {
        groups(&mut out, name, checked, |it| {
            it.status.why().filter(|_| is_it(it.status))
        });
    }
    out
}

/// That none was decided, and why.
fn undecided(checked: &[Checked]) -> String {
    let mut whys: BTreeMap<&str, usize> = BTreeMap::new();
    for why in checked.iter().filter_map(|it| it.status.why()) {
        *whys.entry(why).or_default() += 1;
    }
    let whys: Vec<String> = whys
        .iter()
        .map(|(why, count)| format!("{why} {count}"))
        .collect();
    format!(
        "None of {} could be decided: {}. --json lists them.",
        checked.len(),
        whys.join(", ")
    )
}

/// How many there are of each status.
fn counts(checked: &[Checked]) -> String {
    let count = |name: &str| checked.iter().filter(|it| it.status.name() == name).count();
    format!(
        "{} pass, {} fail, {} warn; {} not applicable, {} not observed",
        count(Status::Pass.name()),
        count(Status::Fail.name()),
        count(Status::Warn.name()),
        count("not_applicable"),
        count("not_observed"),
    )
}

/// Checks in short: a paragraph for each reason, in it each section with its checks.
fn groups<'a>(
    out: &mut String,
    name: &str,
    checked: &'a [Checked],
    why: impl Fn(&'a Checked) -> Option<&'static str>,
) {
    let mut reasons: Vec<&str> = checked.iter().filter_map(&why).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        let mut sections: Vec<(&str, Vec<String>)> = Vec::new();
        for it in checked.iter().filter(|it| why(it) == Some(reason)) {
            let section = it.check.rule().section;
            match sections.iter_mut().find(|(known, _)| *known == section) {
                Some((_, names)) => names.push(it.check.to_string()),
                None => sections.push((section, vec![it.check.to_string()])),
            }
        }
        let parts: Vec<String> = sections
            .iter()
            .map(|(section, names)| format!("{} ({section})", names.join(", ")))
            .collect();
        let head = match reason {
            "" => format!("  {name}"),
            _ => format!("  {name}, {reason}:"),
        };
        let _ = writeln!(out, "{}", paragraph(&head, &parts.join("; ")));
    }
}

/// A paragraph after its head, later lines further in.
fn paragraph(head: &str, text: &str) -> String {
    let indent = " ".repeat(INDENT);
    let wrapped = if head.chars().count() < INDENT {
        let text = wrap(text, WIDTH, &indent);
        format!("{head:<INDENT$}{}", text.get(INDENT..).unwrap_or_default())
    } else {
        wrap(&format!("{} {text}", head.trim_start()), WIDTH, &indent)
    };
    // A head that is too long for its column begins where heads begin.
    match wrapped.strip_prefix(&indent) {
        Some(rest) => format!("  {rest}"),
        None => wrapped,
    }
}

/// What to change first, as a sentence or two: what keeps the endpoint from working, else the first demand that is
/// broken, else what the listing gets wrong, else a recommendation.
#[must_use]
pub fn change_first(row: &Row, checked: &[Checked]) -> String {
    let by_status = |status: Status| {
        checked
            .iter()
            .find(|it| it.status == status)
            .map(|it| remedy(it.check))
    };
    let of_listing = tally::mechanism(row).map(|it| format!("In the list: {}.", it.remedy()));
    if !matches!(row.verdict, Verdict::Working | Verdict::Gated) {
        return of_listing.unwrap_or_else(|| explain::advice(row.outcome).to_owned());
    }
    by_status(Status::Fail)
        .or(of_listing)
        .or_else(|| by_status(Status::Warn))
        .unwrap_or_else(|| "Nothing.".to_owned())
}

fn remedy(check: CheckId) -> String {
    format!("{check}: {}", check.rule().remedy)
}

/// A check with everything that is known of it.
pub(super) fn json(it: &Checked) -> Value {
    let rule = it.check.rule();
    json!({
        "check": it.check.name(),
        "number": rule.number,
        "level": rule.level.name(),
        "revisions": rule.revisions(),
        "section": rule.section,
        "demand": it.check.about(),
        "status": it.status.name(),
        "why": it.status.why(),
        "detail": it.detail,
        "remedy": rule.remedy,
    })
}
