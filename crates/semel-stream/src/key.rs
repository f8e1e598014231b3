//! What makes two events the same one.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::event::Event;

/// A function that says what the key of an event is.
pub type KeyFunction = Arc<dyn Fn(&Event) -> Option<String> + Send + Sync>;

/// Where the key of an event comes from: what makes two events the same one.
///
/// A number and a string never give the same key: `7` is the key `7`, and `"7"` is the key `"7"` with its quotes, wherever
/// the key is a JSON value. Objects, arrays and truth values are no keys.
#[derive(Clone, Default)]
pub enum EventKey {
    /// The broker's own id of the event.
    #[default]
    Broker,
    /// A header, as it stands there.
    Header(Box<str>),
    /// A field of the event's metadata: the object under `metadata` in a JSON payload, or the payload's own field if there
    /// is no such object.
    Metadata(Box<str>),
    /// A JSON pointer into the payload: `/order/id`.
    Pointer(Box<str>),
    /// Whatever a function says; `None` if the event has no key.
    Function(KeyFunction),
}

/// What becomes of an event without a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissingKey {
    /// Stop and say so: somebody must look.
    #[default]
    Stop,
    /// To the dead letters, and on.
    DeadLetter,
    /// Process it without protection: as often as it is delivered.
    Unprotected,
}

/// Why an event has no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// It says nothing there, or `null`.
    Missing,
    /// What it says there cannot be a key.
    Unfit(&'static str),
}

impl EventKey {
    /// The key of an event.
    pub fn of<'a>(&self, event: &'a Event) -> Result<Cow<'a, str>, KeyFault> {
        let key = match self {
            Self::Broker => event.id.as_deref().map(Cow::Borrowed),
            Self::Header(name) => event.header_value(name).map(Cow::Borrowed),
            Self::Metadata(field) => {
                let payload = parsed(event)?;
                let place =
                    payload.get("metadata").filter(|metadata| metadata.is_object()).unwrap_or(&payload);
                in_json(place.get(&**field))?.map(Cow::Owned)
            }
            Self::Pointer(pointer) => in_json(parsed(event)?.pointer(pointer))?.map(Cow::Owned),
            Self::Function(key) => key(event).map(Cow::Owned),
        };
        key.filter(|key| !key.trim().is_empty()).ok_or(KeyFault::Missing)
    }
}

fn parsed(event: &Event) -> Result<Value, KeyFault> {
    serde_json::from_slice(&event.payload).map_err(|_| KeyFault::Unfit("the payload is not JSON"))
}

fn in_json(value: Option<&Value>) -> Result<Option<String>, KeyFault> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(value @ (Value::String(_) | Value::Number(_))) => Ok(Some(value.to_string())),
        Some(Value::Bool(_)) => Err(KeyFault::Unfit("a truth value is no key")),
        Some(Value::Array(_)) => Err(KeyFault::Unfit("an array is no key")),
        Some(Value::Object(_)) => Err(KeyFault::Unfit("an object is no key")),
    }
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the event has no key"),
            Self::Unfit(why) => f.write_str(why),
        }
    }
}

impl fmt::Debug for EventKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broker => f.write_str("Broker"),
            Self::Header(name) => write!(f, "Header({name})"),
            Self::Metadata(field) => write!(f, "Metadata({field})"),
            Self::Pointer(pointer) => write!(f, "Pointer({pointer})"),
            Self::Function(_) => f.write_str("Function(…)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: &EventKey, payload: &str) -> Result<String, KeyFault> {
        let event = Event::new("s", "broker-1", payload.to_owned()).header("Message-Id", "h-1");
        source.of(&event).map(Cow::into_owned)
    }

    #[test]
    fn a_key_comes_from_where_it_is_said_to() {
        let metadata = EventKey::Metadata("idempotency_key".into());
        let pointer = EventKey::Pointer("/order/id".into());
        let length = EventKey::Function(Arc::new(|event| Some(event.payload.len().to_string())));
        assert_eq!(key(&EventKey::Broker, "").unwrap(), "broker-1");
        assert_eq!(key(&EventKey::Header("message-id".into()), "").unwrap(), "h-1");
        assert_eq!(key(&metadata, r#"{"metadata":{"idempotency_key":"k"}}"#).unwrap(), r#""k""#);
        assert_eq!(key(&metadata, r#"{"idempotency_key":"k"}"#).unwrap(), r#""k""#);
        assert_eq!(key(&pointer, r#"{"order":{"id":"o"}}"#).unwrap(), r#""o""#);
        assert_eq!(key(&length, "1234").unwrap(), "4");
    }

    #[test]
    fn a_number_and_a_string_are_never_the_same_key() {
        let pointer = EventKey::Pointer("/id".into());
        assert_ne!(key(&pointer, r#"{"id":7}"#), key(&pointer, r#"{"id":"7"}"#));
        assert_eq!(key(&pointer, r#"{"id":7}"#).unwrap(), "7");
    }

    #[test]
    fn what_is_missing_null_or_empty_is_no_key_and_never_a_shared_one() {
        let pointer = EventKey::Pointer("/id".into());
        for payload in ["{}", r#"{"id":null}"#, r#"{"id":""}"#, r#"{"id":"  "}"#] {
            assert_eq!(key(&pointer, payload), Err(KeyFault::Missing), "{payload}");
        }
        for payload in ["", "no json", r#"{"id":true}"#, r#"{"id":[1]}"#, r#"{"id":{}}"#] {
            assert!(matches!(key(&pointer, payload), Err(KeyFault::Unfit(_))), "{payload}");
        }
        let none = EventKey::Function(Arc::new(|_| None));
        assert_eq!(key(&none, ""), Err(KeyFault::Missing));
    }
}
