//! Strings: every escape read, and only those written that must be.

use std::iter;

/// Reads the string that `rest` begins with, appends it in its canonical form, quotes included, and returns what
/// comes after it. `is_left_out`: half of a surrogate pair does not matter.
pub(super) fn string<'a>(rest: &'a [u8], written: &mut Vec<u8>, is_left_out: bool) -> Option<&'a [u8]> {
    let mut rest = rest.strip_prefix(b"\"")?;
    written.push(b'"');
    loop {
        let plain = rest.iter().position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\')?;
        let (run, special) = rest.split_at_checked(plain)?;
        written.extend_from_slice(run);
        // A control character has to be escaped in JSON, so it is neither of these.
        match special.split_first()? {
            (b'"', after) => {
                written.push(b'"');
                return Some(after);
            }
            (b'\\', escaped) => {
                let (character, after) = escape(escaped, is_left_out)?;
                push(character, written);
                rest = after;
            }
            _ => return None,
        }
    }
}

/// What an escape means, and what comes after it.
fn escape(rest: &[u8], is_left_out: bool) -> Option<(char, &[u8])> {
    let (first, after) = rest.split_first()?;
    let character = match first {
        plain @ (b'"' | b'\\' | b'/') => char::from(*plain),
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(after, is_left_out),
        _ => return None,
    };
    Some((character, after))
}

fn unicode(rest: &[u8], is_left_out: bool) -> Option<(char, &[u8])> {
    let (unit, after) = four_digits(rest)?;
    let low = || four_digits(after.strip_prefix(b"\\u")?).filter(|(low, _)| matches!(low, 0xDC00..=0xDFFF));
    match (unit, is_left_out) {
        (0xD800..=0xDBFF, _) if let Some((low, after)) = low() => {
            let character = char::decode_utf16([unit, low]).next()?.ok()?;
            Some((character, after))
        }
        (0xD800..=0xDFFF, true) => Some((char::REPLACEMENT_CHARACTER, after)),
        // Half of a pair is no character, so this is `None` for one.
        _ => Some((char::from_u32(u32::from(unit))?, after)),
    }
}

fn four_digits(rest: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, after) = rest.split_first_chunk::<4>()?;
    let unit = digits.iter().try_fold(0_u16, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })?;
    Some((unit, after))
}

/// Appends a character as RFC 8785 wants it: short escapes where there are any, lower-case digits where not.
pub(super) fn push(character: char, written: &mut Vec<u8>) {
    let short = match character {
        '"' => b'"',
        '\\' => b'\\',
        '\u{8}' => b'b',
        '\u{c}' => b'f',
        '\n' => b'n',
        '\r' => b'r',
        '\t' => b't',
        '\0'..='\u{1f}' => {
            written.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            return;
        }
        _ => {
            written.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return;
        }
    };
    written.extend_from_slice(&[b'\\', short]);
}

/// The characters that the inside of a canonical string stands for.
pub(super) fn characters(inside: &str) -> impl Iterator<Item = char> {
    let mut rest = inside;
    iter::from_fn(move || {
        let mut characters = rest.chars();
        let first = characters.next()?;
        rest = characters.as_str();
        if first != '\\' {
            return Some(first);
        }
        let (character, after) = escape(rest.as_bytes(), false)?;
        rest = rest.get(rest.len().checked_sub(after.len())?..)?;
        Some(character)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Option<(String, &str)> {
        let mut written = Vec::new();
        let rest = string(text.as_bytes(), &mut written, false)?;
        Some((String::from_utf8(written).unwrap(), str::from_utf8(rest).unwrap()))
    }

    #[test]
    fn only_what_must_be_escaped_is_escaped() {
        let text = r#""\u0041\/\u00e9\u20ac\ud83d\ude00\u007f\u2028""#;
        assert_eq!(canonical(text).unwrap().0, "\"A/é€😀\u{7f}\u{2028}\"");
        let text = r#""\u0022\u005c\u0008\u000c\u000A\u000d\u0009\u0000\u001F""#;
        assert_eq!(canonical(text).unwrap().0, r#""\"\\\b\f\n\r\t\u0000\u001f""#);
    }

    #[test]
    fn what_follows_the_closing_quote_is_handed_back() {
        assert_eq!(canonical("\"a\\\"\":1").unwrap(), ("\"a\\\"\"".to_owned(), ":1"));
    }

    #[test]
    fn strings_that_are_no_json_are_refused() {
        for text in [
            "a",
            "\"",
            "\"a",
            "\"\n\"",
            "\"\u{1f}\"",
            "\"\\",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\\u+123\"",
            "\"\\u12é\"",
            "\"\\U0041\"",
        ] {
            assert_eq!(canonical(text), None, "{text:?}");
        }
    }

    #[test]
    fn half_of_a_surrogate_pair_matters_unless_it_is_left_out() {
        for text in [
            r#""\ud800""#,
            r#""\udc00""#,
            r#""\ud800\ud800""#,
            r#""\ud800\u0041""#,
            r#""\ud800x""#,
            r#""\ude00\ud83d""#,
        ] {
            assert_eq!(canonical(text), None, "{text}");
            assert!(string(text.as_bytes(), &mut Vec::new(), true).is_some(), "{text}");
        }
    }
}
