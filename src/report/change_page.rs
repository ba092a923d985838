//! What changed between two runs as a page for a browser: one file, no script, nothing asked of anybody. What it says
//! is `change`'s; here it is laid out.

use std::fmt::Write as _;

use super::change::{Sheet, headline, sheets};
use super::html::chart::{Bar, Tone, parts};
use super::html::{STYLE, escaped, hash};
use super::percent;
use crate::diff::{Aspect, Diff, Shift};
use crate::outcome::Verdict;
use crate::stats::fraction;
use crate::tally::{grouped, plain};

/// Changes that a page lists; the CSV has all.
const LISTED: usize = 5000;

/// Rows that are shown unfolded.
const UNFOLDED: usize = 200;

/// The difference as one page.
#[must_use]
pub fn change_page(diff: &Diff) -> String {
    let [before, after] = &diff.labels;
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; base-uri \
         'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>MCP census: what changed</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <h1>MCP census: what changed</h1>\n<p class=\"headline\"><span>{}</span></p>\n\
         <p class=\"caveat\">Before: <bdi>{}</bdi>. After: <bdi>{}</bdi>.</p>\n</header>\n<main>\n",
        hash(STYLE),
        escaped(&headline(diff)),
        escaped(&plain(before)),
        escaped(&plain(after)),
    );
    out.push_str(&verdicts(diff));
    for sheet in sheets(diff, LISTED) {
        section(&mut out, &sheet);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// The verdicts of each run as a bar, one over the other, and what each colour is.
fn verdicts(diff: &Diff) -> String {
    let shifts: Vec<(Verdict, &Shift)> = diff
        .shifts
        .iter()
        .filter(|it| it.aspect == Aspect::Verdict)
        .filter_map(|it| Some((Verdict::named(it.value)?, it)))
        .collect();
    let bar = |title: &str, run: usize| {
        let of_parts: Vec<Bar> = shifts
            .iter()
            .map(|(verdict, shift)| Bar {
                label: verdict.to_string(),
                count: shift.whole[run].0,
                said: grouped(shift.whole[run].0),
                tone: Tone::Of(*verdict),
            })
            .collect();
        parts(title, &of_parts)
    };
    let mut out = format!(
        "<section>\n<h2>Verdicts</h2>\n<div class=\"before-after\"><span>before</span>{}<span>after</span>{}</div>\n\
         <ul class=\"legend\">\n",
        bar("Verdicts before", 0),
        bar("Verdicts after", 1),
    );
    for (verdict, shift) in &shifts {
        let [before, after] = shift.whole.map(|(count, of)| {
            let share = percent(fraction(count, of));
            format!("{} ({share})", grouped(count))
        });
        let _ = writeln!(
            out,
            "<li class=\"{verdict}\"><b>{verdict}</b> <span class=\"about\">{before} before, {after} after</span></li>",
        );
    }
    let [before, after] = diff
        .shifts
        .first()
        .map_or([0, 0], |it| it.whole.map(|(_, of)| of));
    let _ = writeln!(
        out,
        "</ul>\n<p class=\"basis\">Unit: endpoints; shares of all that each run measured, {} before and {} after.</p>\n</section>",
        grouped(before),
        grouped(after),
    );
    out
}

fn section(out: &mut String, sheet: &Sheet) {
    let folds = sheet.rows.len() > UNFOLDED;
    let _ = writeln!(
        out,
        "<section class=\"changes\">\n<h2>{}</h2>",
        escaped(sheet.heading)
    );
    if folds {
        let _ = writeln!(out, "<details><summary>{} rows</summary>", sheet.rows.len());
    }
    if !sheet.rows.is_empty() {
        table(out, sheet);
    }
    if !sheet.remark.is_empty() {
        let _ = writeln!(out, "<p class=\"basis\">{}</p>", escaped(&sheet.remark));
    }
    out.push_str(if folds {
        "</details>\n</section>\n"
    } else {
        "</section>\n"
    });
}

fn table(out: &mut String, sheet: &Sheet) {
    out.push_str("<div class=\"scroll\"><table><thead><tr>");
    for column in &sheet.columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escaped(column));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &sheet.rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td><bdi>{}</bdi></td>", escaped(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}
