//! Numbers as hex digits, both ways, without an allocation.

use std::str;

/// Bytes as lower-case hex digits: twice as many as there are bytes.
pub(super) struct Hex<const N: usize>([[u8; 2]; N]);

impl<const N: usize> Hex<N> {
    pub(super) fn of(bytes: &[u8; N]) -> Self {
        let digit = |value: u8| match value {
            0..10 => b'0'.wrapping_add(value),
            _ => b'a'.wrapping_add(value).wrapping_sub(10),
        };
        Self(bytes.map(|byte| [digit(byte >> 4), digit(byte & 15)]))
    }

    pub(super) fn as_str(&self) -> &str {
        // Digits are ASCII.
        str::from_utf8(self.0.as_flattened()).unwrap_or_default()
    }
}

/// The bytes that these hex digits stand for; `None` if they are not exactly so many, or no digits.
pub fn read<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_back_as_they_were_written() {
        let bytes: [u8; 32] = std::array::from_fn(|at| u8::try_from(at).unwrap().wrapping_mul(9));
        assert_eq!(read::<32>(Hex::of(&bytes).as_str()), Some(bytes));
        assert_eq!(Hex::of(&[0x0f, 0xa0]).as_str(), "0fa0");
        assert_eq!(read::<2>("0FA0"), Some([0x0f, 0xa0]), "in capitals, too");
    }

    #[test]
    fn what_is_no_such_number_is_refused() {
        for digits in ["", "0", "0fa", "0fa0a", "0fa0a1", "+fa0", "0x0f", "0f 0", "0fg0", "é0"] {
            assert_eq!(read::<2>(digits), None, "{digits}");
        }
    }
}
