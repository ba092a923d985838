//! What the words of an answer suggest: message families kept as data, in `data/message-families.json`.
//! A hint decides no outcome; at most it moves a JSON-RPC refusal from faulty to gated.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::outcome::Hint;

#[derive(Deserialize)]
struct Family {
    hint: Hint,
    /// In lower case.
    phrases: Vec<String>,
}

static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/message-families.json"))
        .expect("the table is ours, and a test reads it")
});

/// How much of a text is looked at, in bytes: a message says what it means at its start.
const LOOKED_AT: usize = 8 << 10;

/// The first family, in the order of the table, that a text belongs to.
#[must_use]
pub fn family(text: &str) -> Option<Hint> {
    let mut end = text.len().min(LOOKED_AT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text[..end].to_lowercase();
    FAMILIES
        .iter()
        .find(|family| {
            family
                .phrases
                .iter()
                .any(|phrase| text.contains(phrase.as_str()))
        })
        .map(|family| family.hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_and_in_lower_case() {
        assert!(
            FAMILIES
                .iter()
                .flat_map(|family| &family.phrases)
                .all(|phrase| *phrase == phrase.to_lowercase())
        );
    }

    #[test]
    fn a_message_belongs_to_one_family() {
        for (message, want) in [
            ("invalid api key", Some(Hint::AuthLike)),
            ("Authentication failed", Some(Hint::AuthLike)),
            ("Unauthorized", Some(Hint::AuthLike)),
            ("Session not found", Some(Hint::Session)),
            ("Unsupported MCP protocol version", Some(Hint::Version)),
            ("Payment required", Some(Hint::PaymentLike)),
            ("Missing Authentication Token", Some(Hint::AuthOrRoute)),
            ("Bad Request: Server not initialized", None),
            ("Unknown method: initialize", None),
            ("partial", None),
        ] {
            assert_eq!(family(message), want, "{message}");
        }
    }
}
