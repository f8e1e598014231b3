//! What a run produced, as its caller sends it, and text that is read without a copy where it can be.

use std::borrow::Cow;
use std::ops::Deref;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel::OutcomeKind;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::api::problem::{Code, Problem};

/// The largest outcome.
const OUTCOME_BYTES_MAX: usize = 4 << 20;
/// The longest that the kind of an outcome may be.
const KIND_BYTES_MAX: usize = 64;
/// How many references an outcome may have.
const REFERENCES_MAX: usize = 100;
/// The longest that the kind or the id of a reference may be.
const REFERENCE_BYTES_MAX: usize = 1_024;

/// What a run produced. JSON is stored as its text, exactly as it came.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Outcome<'a> {
    /// How the run ended: `success` if not given, `failure`, or a word of the application's own.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, min_length = 1, max_length = 64, example = "success"))]
    kind: Option<Text<'a>>,
    /// The outcome as JSON of any kind; this or `base64`, at most 4 MiB.
    #[serde(borrow, default, deserialize_with = "given")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>, example = json!({"charge": "ch_1"})))]
    json: Option<&'a RawValue>,
    /// The outcome as bytes in base64; this or `json`.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    base64: Option<Text<'a>>,
    /// What the run created, such as `charge ch_1`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    references: Vec<Reference<'a>>,
    /// Details for people and tools.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<serde_json::Value>))]
    details: Option<&'a RawValue>,
}

/// Something that a run created or changed.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Reference<'a> {
    /// What it is.
    #[serde(borrow)]
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 1_024, example = "charge"))]
    kind: Text<'a>,
    /// Which one.
    #[cfg_attr(feature = "openapi", schema(value_type = String, min_length = 1, max_length = 1_024, example = "ch_1"))]
    id: Text<'a>,
}

impl Outcome<'_> {
    /// The outcome in the engine's words.
    pub(crate) fn outcome(&self) -> Result<semel::Outcome, Problem> {
        let kind = match self.kind.as_deref() {
            None => OutcomeKind::Success,
            Some(word) if word.is_empty() || word.len() > KIND_BYTES_MAX => {
                return Err(Problem::invalid("kind is a word of 1 to 64 bytes; `success` if it is left out"));
            }
            Some(word) => OutcomeKind::from_word(word),
        };
        let bytes = bytes_of(self.json, self.base64.as_deref())?;
        if self.references.len() > REFERENCES_MAX {
            let detail = format!("there are more than {REFERENCES_MAX} references; keep them elsewhere");
            return Err(Problem::invalid(detail));
        }
        let texts = self.references.iter().flat_map(|reference| [&*reference.kind, &*reference.id]);
        if texts.clone().any(|text| text.is_empty() || text.len() > REFERENCE_BYTES_MAX) {
            let detail = format!("kind and id of a reference have 1 to {REFERENCE_BYTES_MAX} bytes each");
            return Err(Problem::invalid(detail));
        }
        let details = self.details.map(RawValue::get);
        let note_bytes = texts.chain(details).map(str::len).fold(0, usize::saturating_add);
        if bytes.len().saturating_add(note_bytes) > OUTCOME_BYTES_MAX {
            return Err(too_large());
        }
        let mut outcome = semel::Outcome::new(kind, bytes);
        for Reference { kind, id } in &self.references {
            outcome = outcome.reference(&**kind, &**id);
        }
        if let Some(details) = details {
            outcome = outcome.details_text(details);
        }
        Ok(outcome)
    }
}

/// The bytes that are meant, given as JSON or as base64; none if neither is given.
pub(crate) fn bytes_of(json: Option<&RawValue>, base64: Option<&str>) -> Result<Vec<u8>, Problem> {
    let bytes = match (json, base64) {
        (None, None) => Vec::new(),
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("there is both json and base64; give one of them"));
        }
        (Some(json), None) => json.get().as_bytes().to_vec(),
        (None, Some(text)) => STANDARD
            .decode(text)
            .map_err(|error| Problem::invalid(format!("base64 cannot be read: {error}")))?,
    };
    if bytes.len() > OUTCOME_BYTES_MAX { Err(too_large()) } else { Ok(bytes) }
}

fn too_large() -> Problem {
    let detail = format!(
        "the outcome is larger than {OUTCOME_BYTES_MAX} bytes; keep it elsewhere and store where it is"
    );
    Problem::new(Code::TooLarge, detail)
}

/// Text, borrowed from the body unless it has escapes.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(value_type = String))]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Any JSON, exactly as it came. `null` is a value, too, and differs from none.
pub(crate) fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}
