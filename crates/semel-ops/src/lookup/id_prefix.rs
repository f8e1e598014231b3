//! The beginning of a record's id, as logs and tables show it.

use std::fmt;
use std::str::FromStr;

use semel::RecordId;

use crate::record_json::read_hex;

/// Fewer digits than these name hardly anything.
const DIGITS_MIN: usize = 4;
/// An id has so many.
const DIGITS_MAX: usize = 64;

/// How an id begins, in hex digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdPrefix(String);

impl IdPrefix {
    /// The id before the first that begins so; `None` if that is the very first.
    pub fn before_first(&self) -> Option<RecordId> {
        let mut bytes = self.padded('0');
        for byte in bytes.iter_mut().rev() {
            let (less, borrowed) = byte.overflowing_sub(1);
            *byte = less;
            if !borrowed {
                return Some(RecordId::from_bytes(bytes));
            }
        }
        None
    }

    /// The whole id, if all digits are given.
    pub fn whole(&self) -> Option<RecordId> {
        (self.0.len() == DIGITS_MAX).then(|| self.last())
    }

    /// The last id that begins so.
    pub fn last(&self) -> RecordId {
        RecordId::from_bytes(self.padded('f'))
    }

    fn padded(&self, filler: char) -> [u8; 32] {
        let digits: String = self.0.chars().chain(std::iter::repeat(filler)).take(DIGITS_MAX).collect();
        read_hex(&digits).unwrap_or_default()
    }
}

impl FromStr for IdPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim().to_ascii_lowercase();
        if text.len() < DIGITS_MIN || text.len() > DIGITS_MAX || !text.chars().all(|c| c.is_ascii_hexdigit())
        {
            return Err(format!(
                "`{text}` is no id: give {DIGITS_MIN} to {DIGITS_MAX} of its hex digits, or name the key by its scope, its \
                 operation and its name"
            ));
        }
        Ok(Self(text))
    }
}

impl fmt::Display for IdPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_stands_for_the_ids_between_its_bounds() {
        let prefix: IdPrefix = "3F2a".parse().expect("is fine");
        let before = prefix.before_first().expect("is not the first").to_string();
        assert!(before.starts_with("3f29ff") && before.ends_with("ff"), "{before}");
        assert!(prefix.last().to_string().starts_with("3f2aff"));
        let odd: IdPrefix = "3f2a9".parse().expect("is fine");
        assert!(odd.last().to_string().starts_with("3f2a9f"));
        assert_eq!("0000".parse::<IdPrefix>().expect("is fine").before_first(), None);
    }

    #[test]
    fn what_is_no_id_is_refused_with_what_is() {
        for text in ["", "3f2", "order-1042", &"a".repeat(65)] {
            let error = text.parse::<IdPrefix>().expect_err(text);
            assert!(error.contains("operation"), "{error}");
        }
    }
}
