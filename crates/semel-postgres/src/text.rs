//! Texts that PostgreSQL takes: it refuses the one character that Rust's strings may hold and its own may not.

use std::borrow::Cow;

/// From the private use area, so that hardly any text has to be longer than it is.
const ESCAPE: char = '\u{f8ff}';

/// The text without NUL, in a form that [`unescaped`] turns back.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\0', ESCAPE]) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len().saturating_add(8));
    for character in text.chars() {
        match character {
            '\0' => out.extend([ESCAPE, '0']),
            ESCAPE => out.extend([ESCAPE, ESCAPE]),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// The same in a form that differs from all these words, which mean something else where it is stored.
pub(crate) fn escaped_but_not<'a, const N: usize>(words: [&str; N], text: &'a str) -> Cow<'a, str> {
    if words.contains(&text) { Cow::Owned(format!("{ESCAPE}{text}")) } else { escaped(text) }
}

/// The text that was escaped.
pub(crate) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => out.push(characters.next().filter(|next| *next != '0').unwrap_or('\0')),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_none_holds_a_nul() {
        for text in ["", "plain", "a\0b", "\0", "\u{f8ff}", "\u{f8ff}0", "\0\u{f8ff}\0", "0\u{f8ff}\u{f8ff}0"]
        {
            let kept = escaped(text);
            assert!(!kept.contains('\0'), "{text:?}");
            assert_eq!(unescaped(&kept), text);
        }
    }

    #[test]
    fn a_text_that_is_a_word_with_a_meaning_is_kept_in_another_form() {
        for text in ["lapsed", "lapsed\0", "\u{f8ff}lapsed", "other"] {
            let kept = escaped_but_not(["lapsed"], text);
            assert_ne!(kept, "lapsed");
            assert_eq!(unescaped(&kept), text);
        }
    }

    #[test]
    fn a_plain_text_is_kept_as_it_is() {
        assert!(matches!(escaped("order-7 läuft"), Cow::Borrowed("order-7 läuft")));
    }
}
