//! A text -> lines of a width, or its start.

/// Keeps words together when a text is broken into lines.
pub const TOGETHER: char = '\u{a0}';

/// Breaks a text into lines of at most `width` characters, each after `indent`. A longer word has a line to itself;
/// a percent sign stays with its number, and a no-break space is written as a space.
#[must_use]
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split([' ', '\n']).filter(|it| !it.is_empty()) {
        match words.last_mut() {
            Some(last) if word.starts_with('%') => {
                last.push(' ');
                last.push_str(word);
            }
            Some(_) | None => words.push(word.to_owned()),
        }
    }
    let mut wrapped = String::new();
    let mut length = 0;
    for word in words {
        let more = word.chars().count();
        if length > 0 && length + 1 + more <= width {
            wrapped.push(' ');
            length += 1 + more;
        } else {
            if length > 0 {
                wrapped.push('\n');
            }
            wrapped.push_str(indent);
            length = indent.chars().count() + more;
        }
        wrapped.push_str(&word.replace(TOGETHER, " "));
    }
    wrapped
}

/// Where the first so many characters of a text end, in bytes. `None` where there are no more than those.
#[must_use]
pub fn end_of(text: &str, characters: usize) -> Option<usize> {
    let start = text.as_bytes().get(..characters)?;
    if start.is_ascii() {
        // A character starts here, or the text ends.
        return (text.len() > characters).then_some(characters);
    }
    text.char_indices().nth(characters).map(|(end, _)| end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_broken_between_words() {
        assert_eq!(wrap("a bb ccc dddd", 6, " "), " a bb\n ccc\n dddd");
        assert_eq!(wrap("", 6, " "), "");
        assert_eq!(wrap("incomprehensible", 6, ""), "incomprehensible");
    }

    #[test]
    fn a_start_ends_between_characters() {
        for (text, most, end) in [
            ("abc", 2, Some(2)),
            ("abc", 3, None),
            ("abc", 4, None),
            ("abü", 2, Some(2)),
            ("äbc", 2, Some(3)),
            ("äöü", 3, None),
            ("", 0, None),
        ] {
            assert_eq!(end_of(text, most), end, "{text} {most}");
        }
    }
}
