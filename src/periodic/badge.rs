//! A badge: what share of a list works, as a small SVG to show on its page. It asks nobody for anything.

use std::fmt::Write as _;

use super::history::Line;
use crate::outcome::Verdict;
use crate::report::percent;

/// How wide a character is, in pixels, near enough: the text is fitted to it.
const CHARACTER: usize = 7;

/// The badge of a list, by its last measured run.
#[must_use]
pub fn badge(line: Option<&Line>) -> String {
    let share = line.and_then(|it| it.share_of(Verdict::Working));
    let said = share.map_or_else(|| "not measured".to_owned(), |it| percent(it.fraction));
    let colour = match share.map(|it| it.fraction) {
        None => "#8b949e",
        Some(share) if share >= 0.9 => "#2f8f5b",
        Some(share) if share >= 0.5 => "#b8860b",
        Some(_) => "#c2483f",
    };
    drawn("MCP working", &said, colour)
}

fn drawn(label: &str, said: &str, colour: &str) -> String {
    let width = |text: &str| text.chars().count() * CHARACTER + 12;
    let (left, right) = (width(label), width(said));
    let whole = left + right;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole}\" height=\"20\" role=\"img\" \
         aria-label=\"{label}: {said}\"><title>{label}: {said}</title>\
         <clipPath id=\"r\"><rect width=\"{whole}\" height=\"20\" rx=\"3\"/></clipPath><g clip-path=\"url(#r)\">\
         <rect width=\"{left}\" height=\"20\" fill=\"#40474e\"/>\
         <rect x=\"{left}\" width=\"{right}\" height=\"20\" fill=\"{colour}\"/></g>\
         <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\" text-anchor=\"middle\">"
    );
    for (text, middle, room) in [
        (label, left / 2, left - 12),
        (said, left + right / 2, right - 12),
    ] {
        let _ = write!(
            out,
            "<text x=\"{middle}\" y=\"14\" textLength=\"{room}\">{text}</text>"
        );
    }
    out.push_str("</g></svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_badge_says_the_share_and_asks_nobody() {
        let line = Line {
            working: 6,
            down: 2,
            ..Line::default()
        };
        let svg = badge(Some(&line));
        assert!(
            svg.contains(">75.0 %<") && svg.contains("MCP working: 75.0 %"),
            "{svg}"
        );
        assert!(!svg.contains("href") && !svg.contains("<image"));
        assert!(badge(None).contains("not measured"));
    }
}
