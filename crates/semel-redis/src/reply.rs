//! What the servers' answers mean.

use redis::Value;
use semel::clock::Timestamp;

use crate::error::{Failure, ServerResult};

/// An answer, of the few kinds that our commands have.
pub(crate) enum ReplyValue {
    Nothing,
    Number(u64),
    Bytes(Vec<u8>),
    Many(Vec<Value>),
    Other,
}

impl From<Value> for ReplyValue {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other kinds of answers are never asked for")]
    fn from(value: Value) -> Self {
        match value {
            Value::Nil => Self::Nothing,
            Value::Int(number) => u64::try_from(number).map_or(Self::Other, Self::Number),
            Value::BulkString(bytes) => Self::Bytes(bytes),
            Value::Array(values) => Self::Many(values),
            Value::SimpleString(text) | Value::VerbatimString { text, .. } => Self::Bytes(text.into_bytes()),
            _ => Self::Other,
        }
    }
}

/// The answer as a list.
pub(crate) fn list(answer: Value, what: &str) -> ServerResult<Vec<Value>> {
    match answer.into() {
        ReplyValue::Many(values) => Ok(values),
        ReplyValue::Nothing | ReplyValue::Number(_) | ReplyValue::Bytes(_) | ReplyValue::Other => {
            Err(Failure::unexpected_reply(what))
        }
    }
}

/// The answer as text; `None` if it is something else.
pub(crate) fn text(answer: Value) -> Option<String> {
    match answer.into() {
        ReplyValue::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        ReplyValue::Nothing | ReplyValue::Number(_) | ReplyValue::Many(_) | ReplyValue::Other => None,
    }
}

/// A number, whether it came as one or as text.
pub(crate) fn number(answer: Value) -> Option<u64> {
    match answer.into() {
        ReplyValue::Number(number) => Some(number),
        ReplyValue::Bytes(digits) => std::str::from_utf8(&digits).ok()?.parse().ok(),
        ReplyValue::Nothing | ReplyValue::Many(_) | ReplyValue::Other => None,
    }
}

/// The answer to TIME: seconds and microseconds.
pub(crate) fn time(answer: Value) -> ServerResult<Timestamp> {
    let [seconds, micros] = numbers(answer)?;
    Ok(Timestamp::from_micros(seconds.saturating_mul(1_000_000).saturating_add(micros)))
}

/// The numbers of an answer that is nothing else.
pub(crate) fn numbers<const N: usize>(answer: Value) -> ServerResult<[u64; N]> {
    let numbers: Option<Vec<u64>> = list(answer, "numbers")?.into_iter().map(number).collect();
    numbers.and_then(|numbers| numbers.try_into().ok()).ok_or_else(|| Failure::unexpected_reply("numbers"))
}
