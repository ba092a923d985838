//! Sections of figures as text, CSV and Markdown. Words of a list are inert in each. What is said, is `forecast`'s
//! affair.

use std::fmt::Write as _;

use crate::report::escaped;
use crate::row::inert;
use crate::tally::grouped;
use crate::unseen;
use crate::wrap::wrap;

use super::{Figure, Line, Section};

/// The least width of a figure.
const FIGURE: usize = 10;

/// For a person at a terminal, so many columns wide. What a line has to say stands last, and is cut there.
pub(super) fn text(sections: &[Section], width: usize) -> String {
    let mut out = String::new();
    for section in told(sections) {
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "{}", section.title);
        let columns = shown_columns(section);
        if section.columns.len() > 1 {
            let headings = columns.iter().map(|at| section.columns[*at].1.to_owned());
            push_line(&mut out, headings, section.of, width);
        }
        for line in &section.lines {
            let figures = columns.iter().map(|at| for_people(&line.figures[*at]));
            push_line(&mut out, figures, said(line), width);
            for example in &line.examples {
                push_line(
                    &mut out,
                    std::iter::once(String::new()),
                    &format!("  {example}"),
                    width,
                );
            }
        }
        for note in &section.notes {
            let _ = writeln!(out, "{}", wrap(&plain(note), width - 2, "  "));
        }
    }
    out
}

fn push_line(out: &mut String, figures: impl Iterator<Item = String>, said: &str, width: usize) {
    let start = out.len();
    for figure in figures {
        let _ = write!(out, "{figure:>FIGURE$} ");
    }
    let left = width.saturating_sub(out.len() - start + 1);
    out.push(' ');
    let said = plain(said);
    if said.chars().count() > left {
        out.extend(said.chars().take(left.saturating_sub(3)));
        out.push_str("...");
    } else {
        out.push_str(&said);
    }
    out.push('\n');
}

/// For a spreadsheet: a line a figure, and a line an example.
pub(super) fn csv(sections: &[Section]) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    let mut record = |cells: [&str; 4]| {
        // The writer is memory, and every record has four fields.
        let _ = out.write_record(cells);
    };
    record(["table", "key", "measure", "value"]);
    for section in sections {
        for line in &section.lines {
            let key = inert(&line.key);
            for ((measure, _), figure) in section.columns.iter().zip(&line.figures) {
                let value = match figure {
                    Figure::Count(count) => count.to_string(),
                    Figure::Seconds(seconds) => format!("{seconds:.1}"),
                    Figure::Word(word) => inert(word),
                };
                record([section.name, &key, measure, &value]);
            }
            for example in &line.examples {
                record([section.name, &key, "example", &inert(example)]);
            }
        }
    }
    out.into_inner()
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or_default()
}

/// For a page that a forge renders.
pub(super) fn markdown(sections: &[Section]) -> String {
    let mut out = "# Dry run\n".to_owned();
    for section in told(sections) {
        let _ = writeln!(out, "\n## {}\n", section.title);
        let columns = shown_columns(section);
        let has_examples = section.lines.iter().any(|it| !it.examples.is_empty());
        let headings = columns.iter().map(|at| section.columns[*at].1);
        let mut head = vec![section.of];
        head.extend(headings);
        head.extend(has_examples.then_some("examples"));
        let rules = head.iter().enumerate().map(|(at, _)| {
            if at == 0 || (has_examples && at + 1 == head.len()) {
                "---"
            } else {
                "---:"
            }
        });
        let rules: Vec<&str> = rules.collect();
        let _ = writeln!(out, "| {} |\n|{}|", head.join(" | "), rules.join("|"));
        for line in &section.lines {
            let mut cells = vec![escaped(said(line).trim_start())];
            cells.extend(
                columns
                    .iter()
                    .map(|at| escaped(&for_people(&line.figures[*at]))),
            );
            if has_examples {
                let examples: Vec<String> = line.examples.iter().map(|it| escaped(it)).collect();
                cells.push(examples.join("<br>"));
            }
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        for note in &section.notes {
            let _ = writeln!(out, "\n{}", escaped(note));
        }
    }
    out
}

/// The sections that have something to tell.
fn told(sections: &[Section]) -> impl Iterator<Item = &Section> {
    sections.iter().filter(|it| !it.lines.is_empty())
}

/// The columns in which any line has something: of many, most are nought.
fn shown_columns(section: &Section) -> Vec<usize> {
    let has_any = |at: &usize| {
        section
            .lines
            .iter()
            .any(|line| !matches!(line.figures[*at], Figure::Count(0)))
    };
    let all = 0..section.columns.len();
    if section.columns.len() == 1 {
        all.collect()
    } else {
        all.filter(has_any).collect()
    }
}

fn said(line: &Line) -> &str {
    if line.says.is_empty() {
        &line.key
    } else {
        &line.says
    }
}

fn for_people(figure: &Figure) -> String {
    match figure {
        Figure::Count(count) => grouped(*count),
        Figure::Seconds(seconds) => time(*seconds),
        Figure::Word(word) => plain(word),
    }
}

/// A text on one line, inert on a terminal.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|it| !unseen::hides(*it))
        .map(|it| if unseen::acts(it) { ' ' } else { it })
        .collect()
}

/// A time as people write it.
pub(super) fn time(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time is not negative, and a cast saturates"
    )]
    let whole = seconds.ceil() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m{s:02}s"),
        (h, m, s) => format!("{h}h{m:02}m{s:02}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        Section {
            name: "lanes",
            title: "Lanes".to_owned(),
            of: "site",
            columns: &[
                ("endpoints", "endpoints"),
                ("none", "none"),
                ("seconds", "time"),
            ],
            lines: vec![Line {
                key: "=a|b\u{1b}.example".to_owned(),
                says: String::new(),
                figures: vec![
                    Figure::Count(1279),
                    Figure::Count(0),
                    Figure::Seconds(639.0),
                ],
                examples: vec![format!("https://a.example/{}", "x".repeat(90))],
            }],
            notes: vec!["Names are not looked up.".to_owned()],
        }
    }

    #[test]
    fn a_text_keeps_to_its_width_and_leaves_out_columns_of_noughts() {
        let text = text(&[section()], 80);
        assert!(text.lines().all(|it| it.chars().count() <= 80), "{text}");
        assert!(
            text.starts_with(
                "Lanes\n endpoints       time  site\n     1,279     10m39s  =a|b .example\n"
            ),
            "{text}"
        );
        assert!(!text.contains("none"), "{text}");
    }

    #[test]
    fn a_table_for_a_program_has_every_figure_and_nothing_acts_in_it() {
        let table = csv(&[section()]);
        assert!(
            table.contains("lanes,'=a|b .example,none,0\nlanes,'=a|b .example,seconds,639.0\n"),
            "{table}"
        );
        let page = markdown(&[section()]);
        assert!(
            page.contains("| =a\\|b .example | 1,279 | 10m39s | https&#58;//a.example/x"),
            "{page}"
        );
    }
}
