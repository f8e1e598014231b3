//! What is different between two records, field by field, in words for people.

use semel::record::Record;

/// The fields that differ, each with what was seen and what was expected.
pub(super) fn difference(seen: &Record, expected: &Record) -> String {
    let mut fields = Vec::new();
    macro_rules! compare {
        ($($field:ident)*) => {
            $(if seen.$field != expected.$field {
                let name = stringify!($field);
                fields.push(format!("{name} is {:?} instead of {:?}", seen.$field, expected.$field));
            })*
        };
    }
    compare!(key fingerprint state attempt pardoned lapse retention);
    compare!(first_seen_at changed_at first_event mismatches duplicates version);
    fields.join(", ")
}
