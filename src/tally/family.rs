//! Messages that say the same: what is particular to one server or one moment is taken out of an error message.
//! What a message suggests is `hint`'s affair.

use crate::row::Row;
use crate::wrap::end_of;

/// How much of a message names its family, in characters.
const CUT: usize = 60;

/// The family of a row's JSON-RPC error message: its hint or, where it has none, the message made alike.
#[must_use]
pub fn family(row: &Row) -> String {
    match row.hint {
        Some(hint) => hint.name().to_owned(),
        None => alike(row.rpc_message.as_deref().unwrap_or_default()),
    }
}

/// A message in lower case, numbers and identifiers `#`, addresses `url`, cut at sixty characters.
fn alike(message: &str) -> String {
    let mut words = Vec::new();
    let mut length = 0;
    for word in message.split(|it: char| it.is_whitespace() || it.is_control()) {
        if word.is_empty() {
            continue;
        }
        let word = alike_word(word);
        length += word.chars().count() + 1;
        words.push(word);
        if length > CUT {
            break;
        }
    }
    let text = words.join(" ");
    if text.is_empty() {
        return "no message".to_owned();
    }
    match end_of(&text, CUT) {
        Some(end) => format!("{}...", text[..end].trim_end()),
        None => text,
    }
}

/// From this length on, a word with a digit in it is an identifier: a date, a UUID, a token.
const IDENTIFIER: usize = 8;

fn alike_word(word: &str) -> String {
    if word.contains("://") {
        return "url".to_owned();
    }
    if !word.contains(|it: char| it.is_ascii_digit()) {
        return word.to_lowercase();
    }
    if word.len() >= IDENTIFIER {
        return "#".to_owned();
    }
    let mut shown = String::new();
    for it in word.to_lowercase().chars() {
        if !it.is_ascii_digit() {
            shown.push(it);
        } else if !shown.ends_with('#') {
            shown.push('#');
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_say_the_same_are_one_family() {
        for (message, want) in [
            ("Unknown method: initialize", "unknown method: initialize"),
            (
                "Request 17 failed at 2026-11-30T01:02:03Z",
                "request # failed at #",
            ),
            ("Request 9 failed at  2025-01-02", "request # failed at #"),
            ("see https://a.example/x?k=1\nnow", "see url now"),
            ("", "no message"),
            (" \u{1}\n", "no message"),
        ] {
            assert_eq!(alike(message), want);
        }
        let long = "word ".repeat(1000);
        assert_eq!(alike(&long).chars().count(), 62);
        assert!(alike(&"é".repeat(500)).ends_with("..."));
    }
}
