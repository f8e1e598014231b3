//! What became of an event.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel_stream::{EventRecord, EventState, KeptLetter, KeptPayload};
use serde::Serialize;

use super::outcome::Content;
use super::parts::Moment;

/// What became of an event of a pipeline.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Receipt))]
pub struct ReceiptView<'a> {
    /// The key of the event, or its place if it has none.
    pub event: &'a str,
    /// Whether the event has a key.
    pub has_key: bool,
    /// `processed`, `dead_letter`, `running`, `released` or `held`.
    #[cfg_attr(feature = "openapi", schema(example = "processed"))]
    pub state: String,
    /// Since when.
    pub since: Moment,
    /// How often it was tried.
    pub attempts: u32,
    /// How often it was delivered again since.
    pub duplicates: u64,
    /// Who works on it, or why it was released or held.
    pub who_or_why: Option<&'a str>,
    /// How its run ended.
    pub kind: Option<&'a str>,
    /// Why it was put aside.
    pub error: Option<String>,
    /// Which requeue its last run was; 0 for the first run.
    pub requeue: u32,
    /// Whether it was requeued since, and waits for a consumer.
    pub is_waiting: bool,
    /// Whether the payload of a dead letter is kept, so that it can be requeued; `null` for any other event.
    pub payload_kept: Option<bool>,
    /// What its handler said, if that is text and may be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub output: Option<&'a str>,
    /// What its handler said, if that is no text and may be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = String, required = false))]
    pub output_base64: Option<String>,
}

impl<'a> ReceiptView<'a> {
    /// The event, with as much of its handler's output as the caller may see.
    pub fn of(event: &'a EventRecord, content: Content) -> Self {
        let outcome = event.outcome.as_ref();
        let letter = outcome.filter(|_| event.state == EventState::DeadLetter).and_then(KeptLetter::read);
        // The bytes of a dead letter are its payload, which no handler said.
        let bytes = outcome.map(|outcome| &**outcome.bytes());
        let bytes = bytes.filter(|_| content != Content::Hidden && letter.is_none());
        let output = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        Self {
            event: &event.event,
            has_key: event.has_key,
            state: event.state.as_str().replace(' ', "_"),
            since: Moment(event.since),
            attempts: event.attempts,
            duplicates: event.duplicates,
            who_or_why: event.who_or_why.as_deref(),
            kind: outcome.map(|outcome| outcome.kind().as_str()),
            payload_kept: letter.as_ref().map(|letter| matches!(letter.payload, KeptPayload::Whole(_))),
            error: letter.and_then(|letter| letter.error),
            requeue: event.requeue,
            is_waiting: event.is_waiting,
            output,
            output_base64: bytes.filter(|_| output.is_none()).map(|bytes| STANDARD.encode(bytes)),
        }
    }
}
