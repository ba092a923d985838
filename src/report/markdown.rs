//! A summary as Markdown that a forge renders. A cell may hold what a stranger's server said: nothing in it acts.

use std::fmt::Write as _;

use super::grid::grid;
use super::{bounds, caveats, headline};
use crate::tally::{Summary, Table, TableName};

/// `summary.md`: the headline and every table.
#[must_use]
pub fn markdown(summary: &Summary) -> String {
    let mut out = format!("# MCP census\n\n**{}**\n\n", ours(&headline(summary)));
    for said in caveats(summary) {
        let _ = writeln!(out, "{}\n", escaped(&said));
    }
    let _ = writeln!(out, "{}", ours(&bounds(&summary.not_measured)));
    for of_table in &summary.tables {
        out.push('\n');
        out.push_str(&table(of_table));
    }
    out
}

/// One table under its heading.
pub(super) fn table(table: &Table) -> String {
    let mut out = format!(
        "## {}\n\n`{}`, {}.\n\n",
        heading(table),
        table.name,
        table.basis()
    );
    if table.lines.is_empty() {
        out.push_str("None.\n");
    } else {
        let grid = grid(table);
        let headings: Vec<String> = grid.columns.iter().map(|it| ours(&it.heading)).collect();
        let rules: Vec<&str> = grid
            .columns
            .iter()
            .map(|it| if it.right { "---:" } else { "---" })
            .collect();
        let _ = writeln!(out, "| {} |\n|{}|", headings.join(" | "), rules.join("|"));
        for row in &grid.rows {
            let last = row.len().saturating_sub(usize::from(grid.explains));
            let cells: Vec<String> = row
                .iter()
                .enumerate()
                .map(|(at, cell)| {
                    // Figures and explanations are our own words; only the sites of a concentration are not.
                    let is_ours = grid.columns[at].right
                        || (at == last && table.name != TableName::Concentration);
                    if is_ours { ours(cell) } else { escaped(cell) }
                })
                .collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    if let Some(left_out) = &table.not_measured {
        let _ = writeln!(out, "\n{}", ours(&bounds(left_out)));
    }
    out
}

/// A table's heading: our own words, and the version that was asked for.
fn heading(table: &Table) -> String {
    let own = table.name.about().trim_end_matches('.');
    let added = table.title.strip_prefix(own).unwrap_or_default();
    format!("{}{}", ours(own), escaped(added))
}

/// Our own words: code spans and brackets are meant.
fn ours(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

/// A text with nothing in it that Markdown or HTML would act on: no markup, no link, no mention.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for (at, it) in text.char_indices() {
        match it {
            '|' => out.push_str("\\|"),
            '\\' => out.push_str("&#92;"),
            '`' => out.push_str("&#96;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '*' | '[' | ']' | '~' | '@' | '#' | '$' => {
                let _ = write!(out, "&#{};", u32::from(it));
            }
            '_' if !is_inside_word(text, at) => out.push_str("&#95;"),
            // A forge makes links of these by itself.
            ':' if text[at..].starts_with("://") => out.push_str("&#58;"),
            '.' if text[..at].to_ascii_lowercase().ends_with("www") => out.push_str("&#46;"),
            it if it.is_control() => out.push(' '),
            it => out.push(it),
        }
    }
    out
}

/// An underscore between letters or digits emphasizes nothing.
fn is_inside_word(text: &str, at: usize) -> bool {
    let is_word = |it: Option<char>| it.is_some_and(char::is_alphanumeric);
    is_word(text[..at].chars().next_back()) && is_word(text[at + 1..].chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_acts_on_nothing() {
        for (cell, want) in [
            ("jsonrpc_error", "jsonrpc_error"),
            ("a|b", "a\\|b"),
            ("a\\|b", "a&#92;\\|b"),
            ("`x`", "&#96;x&#96;"),
            ("<img src=x>", "&lt;img src=x&gt;"),
            ("![x](https://a)", "!&#91;x&#93;(https&#58;//a)"),
            ("**b** _i_", "&#42;&#42;b&#42;&#42; &#95;i&#95;"),
            ("a\nb", "a b"),
            ("@all #1 www.a.b", "&#64;all &#35;1 www&#46;a.b"),
            ("&lt;", "&amp;lt;"),
        ] {
            assert_eq!(escaped(cell), want);
        }
    }
}
