//! Characters of a stranger's text that a reader does not see: they hide, reorder, break lines, or act on a terminal.
//! What becomes of them is each output's affair.

/// Whether a character hides, or reorders or joins others, and shows nothing itself.
#[must_use]
pub const fn hides(it: char) -> bool {
    matches!(it,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Whether a character acts on what shows it: a control character, or a separator of lines.
#[must_use]
pub fn acts(it: char) -> bool {
    it.is_control() || matches!(it, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_neither_hides_nor_acts() {
        for it in [
            '\u{202e}',
            '\u{2066}',
            '\u{200b}',
            '\u{feff}',
            '\u{ad}',
            '\u{e0041}',
        ] {
            assert!(hides(it), "{it:?}");
        }
        for it in ['\n', '\u{1b}', '\u{9b}', '\u{7f}', '\0', '\u{2028}'] {
            assert!(acts(it), "{it:?}");
        }
        for it in ['a', '=', 'ä', '中', ' ', '\u{a0}', '😀', '\u{301}'] {
            assert!(!hides(it) && !acts(it), "{it:?}");
        }
    }
}
