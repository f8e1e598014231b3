//! Lists that a row keeps as JSON, so that people can read and search them: references and past attempts.

use std::sync::Arc;

use semel::clock::Timestamp;
use semel::record::{AttemptEnd, EndedAttempt, HISTORY_MAX};
use semel::{Reference, Result};
use serde_json::{Value, json};

use crate::error::corrupt;
use crate::text::{escaped, unescaped};

/// The references of an outcome; `None` for none.
pub(crate) fn references_json(references: &[Reference]) -> Option<String> {
    let list = references
        .iter()
        .map(|reference| json!({"kind": escaped(&reference.kind), "id": escaped(&reference.id)}));
    list_json(list)
}

/// The references as kind and id.
pub(crate) fn references(text: &str) -> Result<Vec<(String, String)>> {
    let wrong = || corrupt("its references are not a list of kinds and ids");
    let reference = |item: &Value| Some((text_of(item, "kind")?, text_of(item, "id")?));
    list(text).ok_or_else(wrong)?.iter().map(|item| reference(item).ok_or_else(wrong)).collect()
}

/// The attempts before the one that the state speaks of; `None` for none.
pub(crate) fn past_attempts_json(attempts: &[EndedAttempt]) -> Option<String> {
    let list = attempts.iter().map(|attempt| {
        json!({
            "number": attempt.number,
            "owner": escaped(&attempt.owner),
            "from": attempt.from.as_micros(),
            "until": attempt.until.as_micros(),
            "end": attempt.end.as_str(),
            "reason": escaped(&attempt.reason),
        })
    });
    list_json(list)
}

pub(crate) fn past_attempts(text: &str) -> Result<Vec<EndedAttempt>> {
    let wrong = || corrupt("its past attempts are not a list of attempts");
    let items = list(text).ok_or_else(wrong)?;
    // One fewer than a history holds: the state speaks of the last one.
    if items.len() >= HISTORY_MAX {
        return Err(corrupt("it has more past attempts than are kept"));
    }
    items.iter().map(|item| past_attempt(item).ok_or_else(wrong)).collect()
}

fn past_attempt(item: &Value) -> Option<EndedAttempt> {
    let end = item.get("end")?.as_str()?;
    let ends = [AttemptEnd::Completed, AttemptEnd::Released, AttemptEnd::Lapsed, AttemptEnd::Held];
    let moment = |name: &str| item.get(name)?.as_u64().map(Timestamp::from_micros);
    Some(EndedAttempt {
        number: item.get("number")?.as_u64()?.try_into().ok()?,
        owner: Arc::from(text_of(item, "owner")?),
        from: moment("from")?,
        until: moment("until")?,
        end: ends.into_iter().find(|known| known.as_str() == end)?,
        reason: text_of(item, "reason")?.into(),
    })
}

fn list_json(items: impl Iterator<Item = Value>) -> Option<String> {
    let items: Vec<_> = items.collect();
    (!items.is_empty()).then(|| Value::Array(items).to_string())
}

fn list(text: &str) -> Option<Vec<Value>> {
    serde_json::from_str(text).ok()
}

fn text_of(item: &Value, name: &str) -> Option<String> {
    item.get(name)?.as_str().map(unescaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(number: u32, end: AttemptEnd) -> EndedAttempt {
        EndedAttempt {
            number,
            owner: "till\0 7".into(),
            from: Timestamp::from_micros(u64::from(number)),
            until: Timestamp::from_micros(i64::MAX.unsigned_abs()),
            end,
            reason: "\u{f8ff}\"".into(),
        }
    }

    #[test]
    fn past_attempts_come_back_whole() {
        let all = [AttemptEnd::Completed, AttemptEnd::Released, AttemptEnd::Lapsed, AttemptEnd::Held];
        let attempts: Vec<_> = (1..).zip(all).map(|(number, end)| attempt(number, end)).collect();
        let text = past_attempts_json(&attempts).unwrap();
        assert!(!text.contains("\\u0000"), "PostgreSQL refuses it: {text}");
        assert_eq!(past_attempts(&text).unwrap(), attempts);
        assert_eq!(past_attempts_json(&[]), None);
    }

    #[test]
    fn what_is_not_such_a_list_is_refused() {
        let eight: Vec<_> = (1..=8).map(|number| attempt(number, AttemptEnd::Lapsed)).collect();
        for text in ["{}", "[1]", "[{}]", "[{\"number\": -1}]", &past_attempts_json(&eight).unwrap()] {
            assert!(past_attempts(text).is_err(), "{text}");
        }
        for text in ["{}", "[\"charge\"]", "[{\"kind\": \"charge\"}]", "[{\"kind\": \"charge\", \"id\": 1}]"]
        {
            assert!(references(text).is_err(), "{text}");
        }
    }
}
