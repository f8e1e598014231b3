//! The digest of a request: two requests under one key must agree on it.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::error::{Error, Result};
use crate::finite::{Finite, NotSerialized};
use crate::key::length_prefixed;

/// A 32-byte digest of a request. Compared in constant time; prints as nothing.
#[derive(Clone, Copy)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint with these bytes, for callers that digest requests themselves.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest itself.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Digests parts so that where one ends matters: `["ab", "c"]` and `["a", "bc"]` differ.
    pub fn of_parts<P>(parts: P) -> Self
    where
        P: IntoIterator<Item: AsRef<[u8]>>,
    {
        let mut digest = Sha256::new();
        for part in parts {
            length_prefixed(&mut digest, part.as_ref());
        }
        Self(digest.finalize().into())
    }

    /// Digests any serializable request. The order of map members does not matter; everything else does. A number that
    /// is not finite is refused: JSON would take it for `null`.
    pub fn of<T: Serialize + ?Sized>(request: &T) -> Result<Self> {
        if request.serialize(Finite).is_err_and(|error| error == NotSerialized::NotFinite) {
            return Err(Error::invalid(
                "the request holds a number that is not finite, which JSON cannot tell from null; give a \
                 fingerprint of your own",
            ));
        }
        let value = serde_json::to_value(request).map_err(|error| {
            Error::invalid("the request cannot be written as JSON; give a fingerprint of your own")
                .caused_by(error)
        })?;
        let mut digest = Sha256::new();
        feed(&mut digest, &value);
        Ok(Self(digest.finalize().into()))
    }
}

/// Feeds a value with a tag for its type and its length, so that no two values feed the same bytes.
/// Members are sorted here, because `serde_json` keeps insertion order when any crate asks it to.
fn feed(digest: &mut Sha256, value: &Value) {
    match value {
        Value::Null => digest.update(b"z"),
        Value::Bool(false) => digest.update(b"f"),
        Value::Bool(true) => digest.update(b"t"),
        Value::Number(number) => {
            digest.update(b"n");
            length_prefixed(digest, number.to_string().as_bytes());
        }
        Value::String(text) => {
            digest.update(b"s");
            length_prefixed(digest, text.as_bytes());
        }
        Value::Array(items) => {
            digest.update(b"a");
            digest.update((items.len() as u64).to_be_bytes());
            for item in items {
                feed(digest, item);
            }
        }
        Value::Object(members) => {
            digest.update(b"o");
            digest.update((members.len() as u64).to_be_bytes());
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in sorted {
                length_prefixed(digest, name.as_bytes());
                feed(digest, member);
            }
        }
    }
}

impl PartialEq for Fingerprint {
    fn eq(&self, other: &Self) -> bool {
        // A comparison that stops at the first difference would tell a caller how much of a
        // stranger's request it has guessed.
        let differences = words(&self.0).into_iter().zip(words(&other.0));
        differences.fold(0, |sum, (this, that)| sum | (this ^ that)).ct_eq(&0).into()
    }
}

/// The bytes, eight at a time.
fn words(bytes: &[u8; 32]) -> [u64; 4] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| words.get(at).copied().map_or(0, u64::from_le_bytes))
}

impl Eq for Fingerprint {}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(32 bytes)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;

    fn of(value: &Value) -> Fingerprint {
        Fingerprint::of(value).unwrap()
    }

    #[test]
    fn member_order_does_not_matter_and_everything_else_does() {
        let many: HashMap<String, u32> = (0..50).map(|n| (format!("k{n}"), n)).collect();
        let again: HashMap<String, u32> = (0..50).rev().map(|n| (format!("k{n}"), n)).collect();
        assert_eq!(Fingerprint::of(&many).unwrap(), Fingerprint::of(&again).unwrap());
        let distinct = [
            json!(null),
            json!(false),
            json!(true),
            json!(0),
            json!("0"),
            json!(""),
            json!([]),
            json!({}),
            json!([[]]),
            json!([1, 2]),
            json!([2, 1]),
            json!({"a": 1}),
            json!({"a": "1"}),
            json!({"b": 1}),
            json!({"a": null}),
            json!("n1"),
            json!(1.5),
            json!([null]),
            json!(["a", "bc"]),
            json!(["ab", "c"]),
        ];
        for (i, a) in distinct.iter().enumerate() {
            for (j, b) in distinct.iter().enumerate() {
                assert_eq!(of(a) == of(b), i == j, "{a} and {b}");
            }
        }
    }

    #[test]
    fn where_one_part_ends_matters() {
        assert_ne!(Fingerprint::of_parts(["ab", "c"]), Fingerprint::of_parts(["a", "bc"]));
        assert_ne!(Fingerprint::of_parts(["a"]), Fingerprint::of_parts(["a", ""]));
        assert_eq!(Fingerprint::of_parts(["a", "b"]), Fingerprint::of_parts([b"a", b"b"]));
    }

    #[test]
    fn a_request_that_is_no_json_is_refused_with_a_way_out() {
        let error = Fingerprint::of(&HashMap::from([((1, 2), 3)])).unwrap_err();
        assert!(error.to_string().contains("fingerprint of your own"));
    }

    #[test]
    fn a_number_that_is_not_finite_is_refused_wherever_it_stands_and_is_never_taken_for_null() {
        #[derive(Serialize)]
        struct Charge {
            amounts: Vec<f64>,
            limit: Option<f32>,
        }
        let charge = |amount, limit| Fingerprint::of(&Charge { amounts: vec![1.0, amount], limit });
        assert!(charge(2.0, Some(3.0)).is_ok() && charge(2.0, None).is_ok());
        for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(charge(wrong, None).unwrap_err().to_string().contains("not finite"));
            assert!(Fingerprint::of(&HashMap::from([("a", (1, [wrong]))])).is_err());
        }
        assert!(charge(2.0, Some(f32::NAN)).is_err());
        assert_ne!(Fingerprint::of(&Some(0.0)).unwrap(), Fingerprint::of(&None::<f64>).unwrap());
    }

    #[test]
    fn debug_output_never_shows_the_digest() {
        assert_eq!(format!("{:?}", Fingerprint::from_bytes([7; 32])), "Fingerprint(32 bytes)");
    }
}
