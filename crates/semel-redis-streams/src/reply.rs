//! The server's answers, parsed.

use redis::Value;

use crate::message::{Entry, EntryId};

/// The parts of a list.
pub(crate) fn list(value: &Value) -> Option<&[Value]> {
    if let Value::Array(items) = value { Some(items) } else { None }
}

/// A text, as bytes.
pub(crate) fn bytes(value: &Value) -> Option<&[u8]> {
    if let Value::SimpleString(text) = value {
        return Some(text.as_bytes());
    }
    if let Value::BulkString(bytes) = value { Some(bytes) } else { None }
}

/// A number.
pub(crate) fn number(value: &Value) -> Option<u64> {
    if let Value::Int(number) = value {
        return u64::try_from(*number).ok();
    }
    std::str::from_utf8(bytes(value)?).ok()?.parse().ok()
}

/// The id of an entry.
pub(crate) fn id(value: &Value) -> Option<EntryId> {
    std::str::from_utf8(bytes(value)?).ok()?.parse().ok()
}

/// Entries: `[[id, [field, value, …]], …]`.
pub(crate) fn entries(value: &Value) -> Option<Vec<Entry>> {
    list(value)?.iter().map(entry).collect()
}

fn entry(value: &Value) -> Option<Entry> {
    let [at, fields] = list(value)? else { return None };
    let fields = if *fields == Value::Nil { None } else { Some(pairs(fields)?) };
    Some(Entry { id: id(at)?, fields, deliveries: None })
}

fn pairs(value: &Value) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let pair = |pair: &[Value]| match pair {
        [name, value] => Some((bytes(name)?.to_vec(), bytes(value)?.to_vec())),
        _ => None,
    };
    list(value)?.chunks(2).map(pair).collect()
}

/// What stands under a name: `[name, value, …]`.
pub(crate) fn under<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    list(value)?.chunks(2).find_map(|pair| match pair {
        [key, value] if bytes(key) == Some(name.as_bytes()) => Some(value),
        _ => None,
    })
}
