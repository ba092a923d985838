//! What changed between two runs as text, Markdown, CSV and JSON. What counts as a change, and whose it is, is
//! `diff`'s affair.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::markdown::escaped;
use super::{WIDTH, interval, percent};
use crate::diff::{Aspect, Cause, Change, Diff, Lone, Shift};
use crate::row::inert;
use crate::tally::{Share, grouped, plain};
use crate::unseen;
use crate::wrap::wrap;

/// Changes that a text lists; the other formats list all.
const LISTED: usize = 40;

/// The probability below which a change of a share is called significant.
const SIGNIFICANT: f64 = 0.05;

/// A heading, columns, rows, and a remark.
pub(super) struct Sheet {
    pub(super) heading: &'static str,
    pub(super) columns: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) remark: String,
}

/// The difference in columns for a terminal.
#[must_use]
pub fn change_text(diff: &Diff) -> String {
    let mut out = wrap(&headline(diff), WIDTH, "");
    out.push('\n');
    for sheet in sheets(diff, LISTED) {
        let _ = writeln!(out, "\n{}", sheet.heading);
        let widths: Vec<usize> = (0..sheet.columns.len())
            .map(|at| {
                let cells = sheet.rows.iter().map(|row| row[at].chars().count());
                cells.chain([sheet.columns[at].len()]).max().unwrap_or(0)
            })
            .collect();
        let heading = sheet.columns.iter().map(|it| (*it).to_owned()).collect();
        for row in std::iter::once(&heading).chain(&sheet.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
        if !sheet.remark.is_empty() {
            out.push_str(&wrap(&sheet.remark, WIDTH, ""));
            out.push('\n');
        }
    }
    out
}

/// The difference as Markdown, every change of it.
#[must_use]
pub fn change_markdown(diff: &Diff) -> String {
    let mut out = format!("# What changed\n\n**{}**\n", escaped(&headline(diff)));
    for sheet in sheets(diff, usize::MAX) {
        let _ = write!(out, "\n## {}\n\n", sheet.heading);
        let _ = writeln!(out, "| {} |", sheet.columns.join(" | "));
        let _ = writeln!(out, "|{}", "---|".repeat(sheet.columns.len()));
        for row in &sheet.rows {
            let cells: Vec<String> = row.iter().map(|it| escaped(it)).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        if !sheet.remark.is_empty() {
            let _ = writeln!(out, "\n{}", escaped(&sheet.remark));
        }
    }
    out
}

/// Every difference, a line each: `kind,endpoint,name,aspect,before,after,cause,of,p`. The kinds are `setting`,
/// `share` (its `before` and `after` are counts of `of`), `appeared`, `gone` and `change`; `cause` says why it is
/// not the world's, empty where it is.
#[must_use]
pub fn change_csv(diff: &Diff) -> String {
    let mut out = ::csv::Writer::from_writer(Vec::new());
    let mut write = |cells: [&str; 9]| {
        let cells = cells.map(|it| inert(&plain_whole(it)));
        // Memory takes every byte.
        let _ = out.write_record(cells);
    };
    write([
        "kind", "endpoint", "name", "aspect", "before", "after", "cause", "of", "p",
    ]);
    for it in &diff.instrument {
        let cause = it.cause.name();
        write([
            "setting",
            "",
            it.setting.name(),
            "",
            &it.before,
            &it.after,
            cause,
            "",
            "",
        ]);
    }
    for it in &diff.shifts {
        let [before, after, of] = [it.before, it.after, it.of].map(|it| it.to_string());
        let p = format!("{:.6}", it.p);
        write([
            "share",
            "",
            it.value,
            it.aspect.name(),
            &before,
            &after,
            "",
            &of,
            &p,
        ]);
    }
    for (kind, lones) in [("appeared", &diff.appeared), ("gone", &diff.gone)] {
        for it in lones {
            let (before, after) = if kind == "gone" {
                (it.outcome.name(), "")
            } else {
                ("", it.outcome.name())
            };
            let cause = it.cause.map_or("", Cause::name);
            write([
                kind,
                &it.endpoint,
                &it.name,
                "outcome",
                before,
                after,
                cause,
                "",
                "",
            ]);
        }
    }
    for it in &diff.changes {
        let cause = it.cause.map_or("", Cause::name);
        let aspect = it.aspect.name();
        write([
            "change",
            &it.endpoint,
            &it.name,
            aspect,
            &it.before,
            &it.after,
            cause,
            "",
            "",
        ]);
    }
    out.into_inner()
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// The difference as JSON. Changes that are the world's are in `changes`, others in `set_apart`, each with its `cause`.
#[must_use]
pub fn change_json(diff: &Diff) -> String {
    let lone = |it: &Lone| json!({ "endpoint": it.endpoint, "name": it.name, "outcome": it.outcome, "cause": it.cause });
    let change = |it: &Change| {
        let mut value = json!({
            "endpoint": it.endpoint, "name": it.name, "aspect": it.aspect, "before": it.before, "after": it.after,
        });
        if let Some(cause) = it.cause {
            value["cause"] = cause.name().into();
        }
        value
    };
    let shift = |it: &Shift| {
        let [before, after] = it.shares();
        json!({
            "aspect": it.aspect, "value": it.value, "of": it.of,
            "before": { "count": it.before, "share": before }, "after": { "count": it.after, "share": after },
            "gained": it.gained, "lost": it.lost, "p_mcnemar": round(it.p),
            "whole": it.whole.map(|(count, of)| json!({ "count": count, "share": Share::new(count, of) })),
            "p_two_proportions": it.p_whole.map(round),
        })
    };
    let settings: Vec<Value> = diff
        .instrument
        .iter()
        .map(|it| json!({ "name": it.setting, "cause": it.cause, "before": it.before, "after": it.after }))
        .collect();
    let apart = diff.changes.iter().filter(|it| it.cause.is_some());
    let value = json!({
        "runs": diff.labels,
        "common": diff.common,
        "instrument": settings,
        "shares": diff.shifts.iter().map(shift).collect::<Vec<_>>(),
        "appeared": diff.appeared.iter().map(lone).collect::<Vec<_>>(),
        "gone": diff.gone.iter().map(lone).collect::<Vec<_>>(),
        "changes": diff.of_the_world().map(change).collect::<Vec<_>>(),
        "set_apart": apart.map(change).collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&value).map_or_else(|_| String::new(), |text| text + "\n")
}

fn round(p: f64) -> f64 {
    (p * 1e6).round() / 1e6
}

pub(super) fn headline(diff: &Diff) -> String {
    let moved = |changes: &mut dyn Iterator<Item = &Change>| {
        let mut endpoints: Vec<&str> = changes.map(|it| it.endpoint.as_str()).collect();
        endpoints.dedup();
        grouped(endpoints.len() as u64)
    };
    let [before, after] = &diff.labels;
    format!(
        "{} endpoints in both {} and {}: {} changed, {} appeared, {} are gone. Set apart, as the instrument may have \
         made it: {} endpoints.",
        grouped(diff.common),
        plain(before),
        plain(after),
        moved(&mut diff.of_the_world()),
        grouped(diff.appeared.len() as u64),
        grouped(diff.gone.len() as u64),
        moved(&mut diff.changes.iter().filter(|it| it.cause.is_some())),
    )
}

/// A stranger's text of any length that does nothing to a reader.
fn plain_whole(text: &str) -> String {
    if text.chars().count() <= 100 {
        plain(text)
    } else {
        text.chars()
            .filter(|it| !unseen::hides(*it) && !unseen::acts(*it))
            .collect()
    }
}

pub(super) fn sheets(diff: &Diff, listed: usize) -> Vec<Sheet> {
    let mut sheets = Vec::new();
    if !diff.instrument.is_empty() {
        sheets.push(Sheet {
            heading: "The instrument was not the same",
            columns: vec!["setting", "before", "after", "can explain"],
            rows: diff
                .instrument
                .iter()
                .map(|it| {
                    let about = it.cause.about().to_owned();
                    vec![
                        it.setting.to_string(),
                        plain(&it.before),
                        plain(&it.after),
                        about,
                    ]
                })
                .collect(),
            remark: "Changes that this could have brought about are set apart, and in no share."
                .to_owned(),
        });
    }
    sheets.push(shares(diff));
    sheets.push(moves(diff));
    if !diff.set_apart().is_empty() {
        let rows = diff.set_apart().into_iter().map(|(cause, count)| {
            vec![cause.to_string(), grouped(count), cause.about().to_owned()]
        });
        sheets.push(Sheet {
            heading: "Set apart: not the world's, as far as we can tell",
            columns: vec!["cause", "changes", "meaning"],
            rows: rows.collect(),
            remark: String::new(),
        });
    }
    for (heading, lones) in [("Appeared", &diff.appeared), ("Gone", &diff.gone)] {
        if lones.is_empty() {
            continue;
        }
        sheets.push(Sheet {
            heading,
            columns: vec!["endpoint", "outcome", "cause"],
            rows: lones
                .iter()
                .take(listed)
                .map(|it| {
                    let cause = it.cause.map_or(String::new(), |it| it.to_string());
                    vec![plain(&it.endpoint), it.outcome.to_string(), cause]
                })
                .collect(),
            remark: further(lones.len(), listed),
        });
    }
    let changes: Vec<&Change> = diff.of_the_world().collect();
    if !changes.is_empty() {
        sheets.push(Sheet {
            heading: "What changed, by endpoint",
            columns: vec!["endpoint", "what", "before", "after"],
            rows: changes
                .iter()
                .take(listed)
                .map(|it| {
                    vec![
                        plain(&it.endpoint),
                        it.aspect.to_string(),
                        or_none(&it.before),
                        or_none(&it.after),
                    ]
                })
                .collect(),
            remark: further(changes.len(), listed),
        });
    }
    sheets
}

fn or_none(value: &str) -> String {
    if value.is_empty() {
        "none".to_owned()
    } else {
        plain(value)
    }
}

fn further(all: usize, listed: usize) -> String {
    match all.saturating_sub(listed) {
        0 => String::new(),
        more => format!(
            "{} further ones; --format csv has them all.",
            grouped(more as u64)
        ),
    }
}

fn shares(diff: &Diff) -> Sheet {
    let share = |it: Option<Share>| {
        it.map_or("none".to_owned(), |it| {
            format!("{} {}", percent(it.fraction), interval(&it))
        })
    };
    let is_told = |it: &&Shift| it.aspect == Aspect::Verdict || it.before != it.after;
    let rows = diff.shifts.iter().filter(is_told).map(|it| {
        let [before, after] = it.shares();
        vec![
            it.value.to_owned(),
            share(before),
            share(after),
            format!("+{} -{}", grouped(it.gained), grouped(it.lost)),
            probability(it.p),
            note(it).to_owned(),
            it.p_whole.map_or("none".to_owned(), probability),
        ]
    });
    let of = diff.shifts.first().map_or(0, |it| it.of);
    Sheet {
        heading: "Shares",
        columns: vec![
            "share",
            "before",
            "after",
            "came, went",
            "p",
            "change",
            "p whole",
        ],
        rows: rows.collect(),
        remark: format!(
            "Unit: endpoints; shares of {} that were measured in both runs and that the instrument did not move, with \
             the 95 % interval. p is McNemar's, of the same endpoints twice; p whole is of a two-proportion z test of all \
             that each run measured. Each p is for its share alone: of twenty shares one passes 0.05 by chance.",
            grouped(of)
        ),
    }
}

/// What the change of a share comes to, in words.
fn note(shift: &Shift) -> &'static str {
    if shift.gained + shift.lost == 0 {
        "none"
    } else if shift.p < SIGNIFICANT {
        "significant"
    } else {
        "could be chance"
    }
}

fn probability(p: f64) -> String {
    if p < 0.0001 {
        "<0.0001".to_owned()
    } else {
        format!("{p:.4}")
    }
}

/// From which verdict to which.
fn moves(diff: &Diff) -> Sheet {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for it in diff
        .of_the_world()
        .filter(|it| it.aspect == Aspect::Verdict)
    {
        *counts.entry((&it.before, &it.after)).or_default() += 1;
    }
    let mut rows: Vec<((&str, &str), u64)> = counts.into_iter().collect();
    rows.sort_by_key(|(key, count)| (std::cmp::Reverse(*count), *key));
    Sheet {
        heading: "Verdicts that changed",
        columns: vec!["before", "after", "endpoints"],
        remark: if rows.is_empty() {
            "None.".to_owned()
        } else {
            String::new()
        },
        rows: rows
            .into_iter()
            .map(|((before, after), count)| {
                vec![before.to_owned(), after.to_owned(), grouped(count)]
            })
            .collect(),
    }
}
