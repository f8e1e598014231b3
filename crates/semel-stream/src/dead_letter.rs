//! What becomes of events that cannot be processed.

use std::sync::Arc;

use bytes::Bytes;
use semel::machine::offset::Position;
use semel::{Outcome, OutcomeKind};
use serde_json::{Value, json};

use crate::event::{Event, Header};
use crate::event_id::sha256;
use crate::receipt::DEAD_LETTER_KIND;
use crate::source::Pending;

/// How many bytes of payload and headers a dead letter's receipt keeps, unless the consumer says otherwise.
pub const DEAD_LETTER_BYTES_MAX_DEFAULT: usize = 256 << 10;

/// An event that is put aside, so that those behind it can go on.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    /// The event.
    pub event: Arc<Event>,
    /// Its key, if it has one.
    pub key: Option<Box<str>>,
    /// How often it was tried; 0 if it never was.
    pub attempts: u32,
    /// Why the last attempt failed, or why there was none.
    pub error: String,
}

/// Where events go that cannot be processed, besides their receipts.
///
/// A letter is handed over before its receipt is written, so one that was handed over while its consumer died is handed
/// over again: a place that must not have it twice keeps it by its key.
pub trait DeadLetters: Send + Sync + 'static {
    /// Puts an event aside. It counts as processed once this has succeeded; after an error it is tried again.
    fn put_aside(&self, letter: DeadLetter) -> Pending<'_, ()>;
}

impl<D: DeadLetters + ?Sized> DeadLetters for Arc<D> {
    fn put_aside(&self, letter: DeadLetter) -> Pending<'_, ()> {
        (**self).put_aside(letter)
    }
}

/// The place that is used unless another is named: a log line, besides the receipt.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoggedDeadLetters;

impl DeadLetters for LoggedDeadLetters {
    fn put_aside(&self, letter: DeadLetter) -> Pending<'_, ()> {
        // The loop logs every letter by itself, with the digest of its key.
        drop(letter);
        Box::pin(std::future::ready(Ok(())))
    }
}

impl DeadLetter {
    /// Whether its payload and headers fit into so many bytes.
    pub(crate) fn fits(event: &Event, bytes_max: usize) -> bool {
        let headers = event.headers.iter().map(|header| header.name.len().saturating_add(header.value.len()));
        headers.fold(event.payload.len(), usize::saturating_add) <= bytes_max
    }

    /// Its receipt: the payload, and all that is known of the event in the details. Of one with more than `bytes_max` bytes
    /// of payload and headers, only the length and the digest of the payload are kept.
    pub fn outcome(&self, bytes_max: usize) -> Outcome {
        let (event, is_kept) = (&self.event, Self::fits(&self.event, bytes_max));
        let headers = event.headers.iter().filter(|_| is_kept);
        let headers: Vec<_> =
            headers.map(|header| json!({ "name": header.name, "value": header.value })).collect();
        let details = json!({
            "attempts": self.attempts,
            "error": self.error,
            "key": self.key,
            "stream": &*event.stream,
            // Text: not every reader of JSON has integers of 128 bits.
            "position": event.position.map(|position| position.to_string()),
            "event_id": event.id,
            "partition_key": event.partition_key,
            "headers": headers,
            "payload_bytes": event.payload.len(),
            "payload_sha256": sha256(&event.payload),
            "payload_kept": is_kept,
        });
        // A copy: the payload may be a slice of a buffer that is much larger.
        let payload = if is_kept { Bytes::copy_from_slice(&event.payload) } else { Bytes::new() };
        Outcome::new(OutcomeKind::from_word(DEAD_LETTER_KIND), payload).details(&details)
    }
}

/// A dead letter as its receipt keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLetter {
    /// How often the event was tried; 0 if it never was.
    pub attempts: Option<u32>,
    /// Why the last attempt failed, or why there was none.
    pub error: Option<String>,
    /// The key of the event, if it has one.
    pub key: Option<Box<str>>,
    /// Which stream it came from; `None` where the receipt does not say.
    pub stream: Option<Arc<str>>,
    /// Where in the stream.
    pub position: Option<Position>,
    /// The broker's own id of it.
    pub id: Option<Box<str>>,
    /// Its partition key.
    pub partition_key: Option<Box<str>>,
    /// What the producer wrote beside the payload; empty if the payload is not kept.
    pub headers: Vec<Header>,
    /// What happened.
    pub payload: KeptPayload,
}

/// The payload of a dead letter, as its receipt keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptPayload {
    /// All of it.
    Whole(Bytes),
    /// It was larger than what is kept.
    TooLarge {
        /// How long it was.
        bytes: u64,
        /// Its SHA-256 digest, in hex.
        sha256: Box<str>,
    },
    /// The receipt was written by a version that kept no payloads, or without the event.
    Unknown,
}

impl KeptLetter {
    /// What the receipt of a dead letter keeps; `None` if the outcome is another's.
    pub fn read(outcome: &Outcome) -> Option<Self> {
        (outcome.kind().as_str() == DEAD_LETTER_KIND).then_some(())?;
        let details: Value =
            outcome.details_json().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let text = |name: &str| details.get(name).and_then(Value::as_str);
        let number = |name: &str| details.get(name).and_then(Value::as_u64);
        let payload = match details.get("payload_kept").and_then(Value::as_bool) {
            Some(true) => KeptPayload::Whole(outcome.bytes().clone()),
            Some(false) => KeptPayload::TooLarge {
                bytes: number("payload_bytes").unwrap_or_default(),
                sha256: text("payload_sha256").unwrap_or_default().into(),
            },
            None => KeptPayload::Unknown,
        };
        let header = |header: &Value| {
            let part = |name: &str| Some(header.get(name)?.as_str()?.into());
            Some(Header { name: part("name")?, value: part("value")? })
        };
        let headers = details.get("headers").and_then(Value::as_array);
        Some(Self {
            attempts: number("attempts").and_then(|number| u32::try_from(number).ok()),
            error: text("error").map(Into::into),
            key: text("key").map(Into::into),
            stream: text("stream").map(Into::into),
            position: text("position").and_then(|digits| digits.parse().ok()).map(Position::new),
            id: text("event_id").map(Into::into),
            partition_key: text("partition_key").map(Into::into),
            headers: headers.into_iter().flatten().filter_map(header).collect(),
            payload,
        })
    }

    /// The event, to be processed again; `None` if its payload is not kept.
    pub fn event(&self) -> Option<Event> {
        let KeptPayload::Whole(payload) = &self.payload else { return None };
        Some(Event {
            stream: self.stream.clone()?,
            position: self.position,
            id: self.id.clone(),
            headers: self.headers.clone(),
            partition_key: self.partition_key.clone(),
            payload: payload.clone(),
            deliveries: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(payload: &'static [u8]) -> DeadLetter {
        let event = Event::new("events", "e-1", payload).at(u128::MAX).header("trace", "t\u{1}");
        DeadLetter { event: Arc::new(event), key: Some("k".into()), attempts: 3, error: "no".to_owned() }
    }

    #[test]
    fn a_receipt_gives_the_event_back_as_it_was() {
        for payload in [&b"\xff\0"[..], b"", b"{}"] {
            let letter = letter(payload);
            let kept = KeptLetter::read(&letter.outcome(100)).expect("is a dead letter");
            assert_eq!(kept.event().as_ref(), Some(&*letter.event));
            assert_eq!(
                (kept.attempts, kept.error.as_deref(), kept.key.as_deref()),
                (Some(3), Some("no"), Some("k"))
            );
        }
    }

    #[test]
    fn a_payload_over_the_bound_is_kept_by_its_length_and_digest() {
        let letter = letter(b"0123456789");
        // The header takes 7 bytes.
        assert!(KeptLetter::read(&letter.outcome(17)).expect("is one").event().is_some());
        let outcome = letter.outcome(16);
        assert!(outcome.bytes().is_empty() && !outcome.details_json().expect("says why").contains("trace"));
        let kept = KeptLetter::read(&outcome).expect("is a dead letter");
        assert_eq!(kept.event(), None);
        let KeptPayload::TooLarge { bytes, sha256 } = kept.payload else { panic!("{kept:?}") };
        assert_eq!((bytes, sha256.get(..8)), (10, Some("84d89877")));
    }

    #[test]
    fn a_receipt_of_a_version_without_payloads_reads() {
        let kept = KeptLetter::read(&crate::dead_letter(3, "too large")).expect("is a dead letter");
        assert_eq!((kept.attempts, kept.error.as_deref()), (Some(3), Some("too large")));
        assert_eq!((&kept.payload, kept.event()), (&KeptPayload::Unknown, None));
        assert_eq!(KeptLetter::read(&Outcome::success("x")), None);
    }
}
