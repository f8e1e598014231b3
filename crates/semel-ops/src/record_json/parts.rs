//! Ids, moments, spans and hex digits, as JSON has them.

use std::time::Duration;

use semel::RecordId;
use semel::clock::Timestamp;
use serde::{Serialize, Serializer};

use crate::format::moment::{Rfc3339, rfc3339};

/// What identifies a record: a digest of its key, in 64 hex digits.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^[0-9a-f]{64}$",
    example = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"))]
pub struct Id(pub RecordId);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Hex::of(self.0.as_bytes()).as_str())
    }
}

/// A moment on the store's clock, in UTC, to the microsecond.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String, format = DateTime, example = "2026-11-16T02:14:26.123456Z"))]
pub struct Moment(pub Timestamp);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match Rfc3339::of(self.0) {
            Some(text) => serializer.serialize_str(text.as_str()),
            None => serializer.serialize_str(&rfc3339(self.0)),
        }
    }
}

/// A span in whole milliseconds.
pub fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes as lower-case hex digits, twice as many as there are bytes, without an allocation.
struct Hex<const N: usize>([[u8; 2]; N]);

impl<const N: usize> Hex<N> {
    fn of(bytes: &[u8; N]) -> Self {
        let digit = |value: u8| match value {
            0..10 => b'0'.wrapping_add(value),
            _ => b'a'.wrapping_add(value).wrapping_sub(10),
        };
        Self(bytes.map(|byte| [digit(byte >> 4), digit(byte & 15)]))
    }

    fn as_str(&self) -> &str {
        // Digits are ASCII.
        std::str::from_utf8(self.0.as_flattened()).unwrap_or_default()
    }
}

/// The bytes that these hex digits stand for; `None` if they are not exactly so many, or no digits.
pub fn read_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
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
        assert_eq!(read_hex::<32>(Hex::of(&bytes).as_str()), Some(bytes));
        assert_eq!(Hex::of(&[0x0f, 0xa0]).as_str(), "0fa0");
        assert_eq!(read_hex::<2>("0FA0"), Some([0x0f, 0xa0]), "in capitals, too");
    }

    #[test]
    fn what_is_no_such_number_is_refused() {
        for digits in ["", "0", "0fa", "0fa0a", "0fa0a1", "+fa0", "0x0f", "0f 0", "0fg0", "é0"] {
            assert_eq!(read_hex::<2>(digits), None, "{digits}");
        }
    }
}
