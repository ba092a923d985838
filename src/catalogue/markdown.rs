//! The catalogue as a Markdown document: `data/checks.md` is what this writes, and a test holds it to that.

use std::fmt::Write as _;

use super::rule::{Part, Rule};
use super::table::rules;

/// The whole catalogue, a table for each part.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(
        "# Checks of the specification\n\n\
         Written by the catalogue's own tables; `mcp-census explain CHECK` says more of each, how the specification \
         is read where it contradicts itself included. A check is applied to the revision a server negotiated and \
         to no other. Cost is in requests, at most, beyond those of the checks before it.\n",
    );
    for &part in Part::ALL {
        let _ = write!(
            text,
            "\n## {part}\n\n{}\n\n| # | check | level | revisions | demand | section | cost |\n|---|---|---|---|---|---|---|\n",
            part.about()
        );
        for rule in rules().filter(|it| it.part == part) {
            text.push_str(&line(rule));
        }
    }
    text
}

fn line(rule: &Rule) -> String {
    format!(
        "| {} | `{}` | {} | {} | {} | {} | {} |\n",
        rule.number,
        rule.id,
        rule.level,
        rule.revisions(),
        rule.id.about(),
        rule.section,
        rule.cost,
    )
}
