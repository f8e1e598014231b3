//! What strangers wrote, made safe to show.

/// The text in one line without control characters: an owner or a reason must not move the cursor.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmless(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_unicode());
        }
    }
    shown
}

/// Whether text may be printed as it is, line breaks and tabs included.
pub(crate) fn is_printable(text: &str) -> bool {
    text.chars().all(|c| matches!(c, '\n' | '\t') || is_harmless(c))
}

fn is_harmless(c: char) -> bool {
    // Marks that turn the direction of writing can make a line read as another one.
    !c.is_control()
        && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_the_cursor_is_shown() {
        assert_eq!(shown("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\u{a}c");
        assert_eq!(shown("zürich · 東京"), "zürich · 東京");
        assert_eq!(shown("x\u{202e}y"), "x\\u{202e}y");
    }

    #[test]
    fn text_with_line_breaks_is_printable_and_text_with_escapes_is_not() {
        assert!(is_printable("{\n\t\"a\": 1\n}"));
        assert!(!is_printable("a\u{1b}[2J"));
        assert!(!is_printable("\0"));
    }
}
