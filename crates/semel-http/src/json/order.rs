//! The order of members: by the UTF-16 code units of their names (RFC 8785, 3.2.3).

use std::cmp::Ordering;

use super::text::characters;

/// Orders two names, each the inside of a string in its canonical form.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if is_ordered_by_bytes(a) && is_ordered_by_bytes(b) {
        return a.cmp(b);
    }
    units(a).cmp(units(b))
}

/// Bytes of UTF-8 are in the order of UTF-16 but for escapes and for characters beyond the basic plane, which UTF-16
/// sorts before some of that plane.
fn is_ordered_by_bytes(name: &[u8]) -> bool {
    !name.iter().any(|byte| *byte == b'\\' || *byte >= 0xF0)
}

fn units(name: &[u8]) -> impl Iterator<Item = u16> {
    let name = str::from_utf8(name).unwrap_or_default();
    characters(name).flat_map(|character| {
        let mut units = [0; 2];
        let count = character.encode_utf16(&mut units).len();
        units.into_iter().take(count)
    })
}

#[cfg(test)]
mod tests {
    use super::super::text::push;
    use super::*;

    fn canonical(name: &str) -> Vec<u8> {
        let mut written = Vec::new();
        name.chars().for_each(|character| push(character, &mut written));
        written
    }

    #[test]
    fn names_are_in_the_order_of_their_utf16_units() {
        let names = [
            "", "\0", "\n", "\r", "\u{1f}", " ", "!", "\"", "#", "1", "A", "\\", "a", "a\n", "a\"", "aa",
            "ab", "\u{7f}", "é", "ö", "€", "\u{d7ff}", "😀", "𐀀", "\u{e000}", "דּ", "\u{ffff}",
        ];
        for a in names {
            for b in names {
                let expected = a.encode_utf16().cmp(b.encode_utf16());
                assert_eq!(compare(&canonical(a), &canonical(b)), expected, "{a:?} and {b:?}");
            }
        }
    }

    #[test]
    fn the_order_is_not_that_of_bytes_beyond_the_basic_plane() {
        assert_eq!(compare("😀".as_bytes(), "\u{e000}".as_bytes()), Ordering::Less);
        assert_eq!("😀".cmp("\u{e000}"), Ordering::Greater);
    }
}
