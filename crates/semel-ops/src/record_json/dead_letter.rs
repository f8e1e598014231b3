//! Dead letters, and what became of those that were sent back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use semel_stream::{KeptLetter, KeptPayload, Requeue};
use serde::Serialize;

use super::outcome::Content;

/// What is kept of an event that was put aside.
#[derive(Debug, Serialize)]
pub struct LetterView<'a> {
    /// Why the last attempt failed, or why there was none.
    pub error: Option<&'a str>,
    /// How often it was tried.
    pub attempts: Option<u32>,
    /// Its key, if it has one.
    pub key: Option<&'a str>,
    /// Which stream it came from.
    pub stream: Option<&'a str>,
    /// Where in the stream; digits, because they may be many.
    pub position: Option<String>,
    /// The broker's own id of it.
    pub event_id: Option<&'a str>,
    /// Names and values, in their order.
    pub headers: Vec<(&'a str, &'a str)>,
    /// How long the payload is, if that is known.
    pub payload_bytes: Option<u64>,
    /// Whether the payload is kept: without it, the event cannot be requeued.
    pub payload_kept: bool,
    /// The digest of a payload that is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_sha256: Option<&'a str>,
    /// The payload, if it is text and may be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<&'a str>,
    /// The payload, if it is no text and may be seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

impl<'a> LetterView<'a> {
    /// The letter, with as much of its content as the caller may see.
    pub fn of(letter: &'a KeptLetter, content: Content) -> Self {
        let (kept, bytes, sha256) = match &letter.payload {
            KeptPayload::Whole(payload) => (Some(&**payload), Some(payload.len() as u64), None),
            KeptPayload::TooLarge { bytes, sha256 } => (None, Some(*bytes), Some(&**sha256)),
            KeptPayload::Unknown => (None, None, None),
        };
        let is_shown = content != Content::Hidden;
        let shown = kept.filter(|_| is_shown);
        let payload = shown.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let headers = letter.headers.iter().filter(|_| is_shown);
        Self {
            error: letter.error.as_deref(),
            attempts: letter.attempts,
            key: letter.key.as_deref(),
            stream: letter.stream.as_deref(),
            position: letter.position.map(|position| position.to_string()),
            event_id: letter.id.as_deref(),
            headers: headers.map(|header| (&*header.name, &*header.value)).collect(),
            payload_bytes: bytes,
            payload_kept: kept.is_some(),
            payload_sha256: sha256,
            payload,
            payload_base64: shown.filter(|_| payload.is_none()).map(|bytes| STANDARD.encode(bytes)),
        }
    }
}

/// What became of a dead letter that was to be sent back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = RequeueAnswer))]
pub struct RequeueView {
    /// `requeued`; or why nothing was changed: `already_waiting`, `not_dead`, `not_kept`, `changed`, `full` or `unknown`.
    #[cfg_attr(feature = "openapi", schema(example = "requeued"))]
    pub decision: &'static str,
    /// The number of the requeue that waits for a consumer.
    pub number: Option<u32>,
    /// The same for people, with what to do next.
    #[cfg_attr(
        feature = "openapi",
        schema(
            example = "Requeued: a consumer of the pipeline takes it up within seconds, or when one starts."
        )
    )]
    pub message: &'static str,
}

impl RequeueView {
    /// Every word for a decision.
    pub const ALL: [&'static str; 7] =
        ["requeued", "already_waiting", "not_dead", "not_kept", "changed", "full", "unknown"];

    /// What people are told of a decision; `None` if there is no such word.
    pub fn message_of(decision: &str) -> Option<&'static str> {
        Some(match decision {
            "requeued" => {
                "Requeued: a consumer of the pipeline takes it up within seconds, or when one starts."
            }
            "already_waiting" => {
                "Nothing was changed: it was requeued before, and waits for a consumer of the pipeline."
            }
            "not_dead" => "Nothing was changed: it is no dead letter, or no longer one.",
            "not_kept" => {
                "Nothing was changed: its payload is not kept, so no consumer could process it. Send it anew, under a key of its own."
            }
            "changed" => "Nothing was changed: it was requeued meanwhile. Look at it again.",
            "full" => {
                "Nothing was changed: as many requeues wait as may. Ask again once consumers have taken some up."
            }
            "unknown" => "Nothing was changed: the pipeline knows no such event, or its retention is over.",
            _ => return None,
        })
    }
}

impl RequeueView {
    /// The answer for a record that is no dead letter.
    pub fn not_dead() -> Self {
        Self::of("not_dead", None)
    }

    fn of(decision: &'static str, number: Option<u32>) -> Self {
        Self { decision, number, message: Self::message_of(decision).unwrap_or_default() }
    }
}

impl From<Requeue> for RequeueView {
    fn from(answer: Requeue) -> Self {
        let (decision, number) = match answer {
            Requeue::Requeued { number } => ("requeued", Some(number)),
            Requeue::AlreadyWaiting { number } => ("already_waiting", Some(number)),
            Requeue::NotDead(_) => ("not_dead", None),
            Requeue::NotKept => ("not_kept", None),
            Requeue::Changed => ("changed", None),
            Requeue::Full => ("full", None),
            Requeue::Unknown => ("unknown", None),
        };
        Self::of(decision, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_for_a_decision_says_what_happened_and_no_other_does() {
        for word in RequeueView::ALL {
            assert!(RequeueView::message_of(word).is_some(), "{word}");
        }
        assert_eq!(RequeueView::message_of("<script>"), None);
    }
}
