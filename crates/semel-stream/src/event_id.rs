//! Which event of a pipeline is meant, and under which keys its runs are recorded.

use std::fmt::Write as _;

use semel::{Claim, Key, Result, Semel};
use sha2::{Digest, Sha256};

use crate::event::Event;
use crate::pipeline::{Pipeline, RECEIPT};

/// The operation of the records of events that were put aside and cannot have a receipt under a key of their own.
const PUT_ASIDE: &str = "dead_letter";
/// What the operation of a requeued run says, between that of the first run and the number of the requeue.
const REQUEUE: &str = " requeue ";
/// How long a name may be.
const NAME_BYTES_MAX: usize = 1_024;

/// Which event of a pipeline.
///
/// An event's key may be any text, so the records of events without one have an operation of their own: no key of an event
/// is ever the name of another's record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventId {
    /// By its key.
    Keyed(Box<str>),
    /// An event that was put aside and has no key, or had the key of another: by its place, such as `orders.jsonl@238`.
    Keyless(Box<str>),
}

impl EventId {
    /// An event without a key by its place: its position, the broker's id of it with the beginning of its payload's digest, or
    /// a name like no other.
    pub(crate) fn by_place(event: &Event) -> Self {
        let stream = &event.stream;
        let name = match (event.position, &event.id) {
            (Some(position), _) => format!("{stream}@{position}"),
            (None, Some(id)) => {
                let digest = sha256(&event.payload);
                format!("{stream}#{id}#{}", digest.get(..8).unwrap_or_default())
            }
            (None, None) => format!("{:032x}", rand::random::<u128>()),
        };
        let is_fit = name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control);
        Self::Keyless(if is_fit { name.trim().into() } else { sha256(name.as_bytes()).into() })
    }

    /// The event that a record with this operation and name is of, and the number of the requeue that it records; 0 for the
    /// first run. `None` if it is no record of an event.
    pub fn read(operation: &str, name: &str) -> Option<(Self, u32)> {
        let (first, number) = match operation.split_once(REQUEUE) {
            Some((first, digits)) => (first, digits.parse().ok().filter(|number| *number > 0)?),
            None => (operation, 0),
        };
        match first {
            RECEIPT => Some((Self::Keyed(name.into()), number)),
            PUT_ASIDE => Some((Self::Keyless(name.into()), number)),
            _ => None,
        }
    }

    /// Its key, or its place.
    pub fn name(&self) -> &str {
        match self {
            Self::Keyed(name) | Self::Keyless(name) => name,
        }
    }

    /// Whether it has a key.
    pub fn has_key(&self) -> bool {
        matches!(self, Self::Keyed(_))
    }

    /// The operation of the record of its first run (0), or of a requeue.
    pub(crate) fn operation(&self, requeue: u32) -> String {
        let first = if self.has_key() { RECEIPT } else { PUT_ASIDE };
        if requeue == 0 { first.to_owned() } else { format!("{first}{REQUEUE}{requeue}") }
    }
}

impl Pipeline {
    /// The pipeline and the event that a record is of; `None` if it is no record of an event. For tools: the pipeline has the
    /// default policy.
    pub fn of_record(semel: &Semel, key: &Key) -> Option<(Self, EventId)> {
        let (event, _) = EventId::read(key.operation(), key.name())?;
        let scope: Vec<&str> = key.scope().collect();
        let (name, tenant) = scope.split_last()?;
        let pipeline = Self::builder(semel, name).scope(tenant).build().ok()?;
        Some((pipeline, event))
    }

    /// The key of the record of an event's first run (0), or of a requeue.
    pub fn run_key(&self, event: &EventId, requeue: u32) -> Result<Key> {
        self.key(&event.operation(requeue), event.name())
    }

    /// The claim of an event's first run (0), or of a requeue, under this pipeline's policy.
    pub(crate) fn claim_of_run(&self, event: &EventId, requeue: u32) -> Result<Claim> {
        Ok(self.claim_at(&self.run_key(event, requeue)?, event.name()))
    }
}

/// The SHA-256 digest of some bytes, in hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_known_again_by_the_record_of_each_of_its_runs() {
        for event in [EventId::Keyed("receipt requeue 7".into()), EventId::Keyless("a@1".into())] {
            for requeue in [0, 1, u32::MAX] {
                let operation = event.operation(requeue);
                assert_eq!(EventId::read(&operation, event.name()), Some((event.clone(), requeue)));
            }
        }
        for operation in
            ["offset", "requeues", "receipt requeue 0", "receipt requeue x", "receipts", "charge"]
        {
            assert_eq!(EventId::read(operation, "a"), None, "{operation}");
        }
    }

    #[test]
    fn a_place_is_stable_and_always_fit_for_a_record() {
        let event = Event::new("a", "e-1", "x");
        let name = |event: &Event| EventId::by_place(event).name().to_owned();
        assert_eq!(name(&event.clone().at(7)), "a@7");
        assert_eq!(name(&event), name(&event));
        assert_ne!(name(&event), name(&Event::new("a", "e-1", "another payload")));
        let nameless = Event { id: None, ..event };
        assert_ne!(name(&nameless), name(&nameless), "nothing is known of it");
        for stream in ["x".repeat(5_000), "a\nb".to_owned()] {
            assert_eq!(name(&Event::new(stream, "e", "x").at(1)).len(), 64);
        }
    }
}
