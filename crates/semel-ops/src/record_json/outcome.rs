//! What a run produced: by its size alone, or with its bytes, as JSON or as base64.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel::record::Step;
use semel::{Outcome, Reference};
use semel_stream::DEAD_LETTER_KIND;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// How the bytes of an outcome are shown: they may be secret, and they may be many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Not at all; only how many there are.
    Hidden,
    /// As JSON if they are JSON text, else as base64.
    Json,
    /// As base64.
    Base64,
}

/// What a run produced.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StoredOutcome))]
pub struct OutcomeView<'a> {
    /// How the run ended: `success`, `failure`, or a word of the application's own.
    #[cfg_attr(feature = "openapi", schema(example = "success"))]
    pub kind: &'a str,
    /// How many bytes there are.
    pub bytes: usize,
    /// The bytes, if they are JSON text and may be seen: exactly as they were stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value, required = false))]
    pub json: Option<&'a RawValue>,
    /// The bytes as base64, if they are no JSON text or were asked for like this, and may be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub base64: Option<String>,
    /// What the run created, such as `charge ch_1`; in the order in which it was said.
    pub references: Vec<ReferenceView<'a>>,
    /// Details for people and tools.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    pub details: Option<Details<'a>>,
}

impl<'a> OutcomeView<'a> {
    /// The outcome, with as much of its bytes as the caller may see.
    pub fn of(outcome: &'a Outcome, content: Content) -> Self {
        let (json, base64) = shown(outcome.bytes(), content);
        Self {
            kind: outcome.kind().as_str(),
            bytes: outcome.bytes().len(),
            json,
            base64,
            references: outcome.references().iter().map(ReferenceView::of).collect(),
            details: outcome.details_json().map(|text| Details(details(outcome, text, content))),
        }
    }
}

/// Something that a run created or changed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StoredReference))]
pub struct ReferenceView<'a> {
    /// What it is.
    #[cfg_attr(feature = "openapi", schema(example = "charge"))]
    pub kind: &'a str,
    /// Which one.
    #[cfg_attr(feature = "openapi", schema(example = "ch_1"))]
    pub id: &'a str,
}

impl<'a> ReferenceView<'a> {
    fn of(reference: &'a Reference) -> Self {
        Self { kind: &reference.kind, id: &reference.id }
    }
}

/// The value of a finished step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = StepValue))]
pub struct StepView<'a> {
    /// What the work calls it.
    #[cfg_attr(feature = "openapi", schema(example = "charge"))]
    pub name: &'a str,
    /// The value, if it is JSON text: exactly as it was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = serde_json::Value, required = false))]
    pub json: Option<&'a RawValue>,
    /// The value as base64, if it is no JSON text or was asked for like this.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub base64: Option<String>,
}

impl<'a> StepView<'a> {
    /// The step, for whoever goes on with the run.
    pub fn of(step: &'a Step, content: Content) -> Self {
        let (json, base64) = shown(&step.value, content);
        Self { name: &step.name, json, base64 }
    }
}

/// Bytes as JSON or as base64.
fn shown(bytes: &[u8], content: Content) -> (Option<&RawValue>, Option<String>) {
    match content {
        Content::Hidden => (None, None),
        Content::Json => match json_text(bytes) {
            Some(json) => (Some(json), None),
            None => (None, Some(STANDARD.encode(bytes))),
        },
        Content::Base64 => (None, Some(STANDARD.encode(bytes))),
    }
}

/// The bytes as JSON, if that shows every one of them: room around a value would be lost on the way.
fn json_text(bytes: &[u8]) -> Option<&RawValue> {
    serde_json::from_slice::<&RawValue>(bytes).ok().filter(|json| json.get().len() == bytes.len())
}

/// The details that the caller may see. The headers of a dead letter are content of the event, as its payload is.
fn details<'a>(outcome: &Outcome, text: &'a str, content: Content) -> Cow<'a, str> {
    if content != Content::Hidden || outcome.kind().as_str() != DEAD_LETTER_KIND {
        return Cow::Borrowed(text);
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(mut members)) => {
            members.remove("headers");
            Cow::Owned(Value::Object(members).to_string())
        }
        _ => Cow::Borrowed(text),
    }
}

/// Details are JSON text; if they are not, the text itself is better than nothing.
#[derive(Clone, Debug)]
pub struct Details<'a>(Cow<'a, str>);

impl Serialize for Details<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match serde_json::from_str::<&RawValue>(&self.0) {
            Ok(json) => json.serialize(serializer),
            Err(_) => serializer.serialize_str(&self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use semel_stream::{DeadLetter, Event};

    use super::*;

    #[test]
    fn the_headers_of_a_dead_letter_are_shown_to_those_who_see_content_and_to_no_other() {
        let event = Arc::new(Event::new("orders", "e-1", "secret payload").header("authorization", "secret"));
        let letter = DeadLetter { event, key: None, attempts: 1, error: "too large".to_owned() };
        let outcome = letter.outcome(1_000);
        let shown = |content| serde_json::to_string(&OutcomeView::of(&outcome, content)).expect("is JSON");
        assert!(shown(Content::Base64).contains("authorization"));
        let hidden = shown(Content::Hidden);
        assert!(!hidden.contains("secret") && hidden.contains("too large"), "{hidden}");
    }
}
