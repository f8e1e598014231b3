//! An entry of a stream as an event.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use semel::machine::offset::Position;
use semel_stream::{Event, Header};
use serde_json::{Map, Value};

/// The fields that hold a payload, the first of them that is there.
const PAYLOAD_FIELDS: [&[u8]; 2] = [b"payload", b"data"];

/// Where an entry stands in its stream: milliseconds, and a number among those of the same millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryId {
    ms: u64,
    number: u64,
}

impl EntryId {
    /// As a number that grows.
    pub(crate) fn position(self) -> Position {
        Position::new((u128::from(self.ms) << 64) | u128::from(self.number))
    }

    /// The id at a position.
    #[expect(clippy::cast_possible_truncation, reason = "the upper and the lower half")]
    pub(crate) fn at(position: Position) -> Self {
        Self { ms: (position.get() >> 64) as u64, number: position.get() as u64 }
    }

    /// Whether this is where streams begin.
    pub(crate) fn is_start(self) -> bool {
        self == Self::default()
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.number)
    }
}

impl FromStr for EntryId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let (ms, number) = text.split_once('-').unwrap_or((text, "0"));
        Ok(Self { ms: ms.parse()?, number: number.parse()? })
    }
}

/// One entry, as the server hands it over.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: EntryId,
    /// `None` if it was deleted before it was read.
    pub(crate) fields: Option<Vec<(Vec<u8>, Vec<u8>)>>,
    /// How often it was delivered, where that is known.
    pub(crate) deliveries: Option<u64>,
}

impl Entry {
    /// The event; `None` if the entry was deleted.
    pub(crate) fn event(self, stream: &Arc<str>) -> Option<Event> {
        let mut fields = self.fields?;
        let holds_payload = |wanted: &[u8]| fields.iter().position(|(name, _)| name == wanted);
        let payload = match PAYLOAD_FIELDS.into_iter().find_map(holds_payload) {
            Some(index) => Bytes::from(fields.remove(index).1),
            None => object(std::mem::take(&mut fields)),
        };
        let header = |(name, value): &(Vec<u8>, Vec<u8>)| Header {
            name: String::from_utf8_lossy(name).into(),
            value: String::from_utf8_lossy(value).into(),
        };
        Some(Event {
            stream: Arc::clone(stream),
            position: Some(self.id.position()),
            id: Some(format!("{stream}/{}", self.id).into()),
            headers: fields.iter().map(header).collect(),
            partition_key: None,
            payload,
            deliveries: self.deliveries,
        })
    }
}

/// Fields as a JSON object of texts.
fn object(fields: Vec<(Vec<u8>, Vec<u8>)>) -> Bytes {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let object: Map<_, _> =
        fields.into_iter().map(|(name, value)| (text(name), Value::String(text(value)))).collect();
    Value::Object(object).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(fields: &[(&str, &str)]) -> Event {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        let entry = Entry { id: "7-2".parse().unwrap(), fields: Some(fields.collect()), deliveries: Some(1) };
        entry.event(&"orders".into()).unwrap()
    }

    #[test]
    fn an_id_is_a_position_and_back() {
        let ids = ["0-1", "0-18446744073709551615", "1-0", "1700000000000-3", "18446744073709551615-0"];
        let parsed: Vec<EntryId> = ids.iter().map(|id| id.parse().unwrap()).collect();
        assert!(parsed.is_sorted_by(|a, b| a.position() < b.position()));
        for (id, text) in parsed.iter().zip(ids) {
            assert_eq!(EntryId::at(id.position()), *id);
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn a_payload_field_is_the_payload_and_the_others_are_headers() {
        let with = event(&[("trace", "t"), ("data", "d"), ("payload", "p")]);
        assert_eq!((&*with.payload, with.header_value("data")), (&b"p"[..], Some("d")));
        let with = event(&[("data", "d"), ("key", "k")]);
        assert_eq!((&*with.payload, with.header_value("key")), (&b"d"[..], Some("k")));
        assert_eq!(with.id.as_deref(), Some("orders/7-2"));
    }

    #[test]
    fn without_a_payload_field_all_fields_are_the_payload() {
        let all = event(&[("id", "1"), ("cents", "7\"")]);
        assert_eq!(&*all.payload, br#"{"cents":"7\"","id":"1"}"#);
        assert!(all.headers.is_empty());
    }
}
