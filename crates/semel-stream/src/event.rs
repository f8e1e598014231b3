//! What a source hands over.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use semel::machine::offset::Position;

/// One event, as its source hands it over.
#[derive(Clone, PartialEq, Eq)]
pub struct Event {
    /// Which stream it is in: a topic's partition, a queue, a file.
    pub stream: Arc<str>,
    /// Where in the stream; `None` where the broker has no positions.
    pub position: Option<Position>,
    /// The broker's own id of it, the same on every delivery; `None` where the broker gives none.
    pub id: Option<Box<str>>,
    /// What the producer wrote beside the payload.
    pub headers: Vec<Header>,
    /// Events with the same partition key belong in order.
    pub partition_key: Option<Box<str>>,
    /// What happened.
    pub payload: Bytes,
    /// How often the broker has delivered it, this time included; `None` where it does not say.
    pub deliveries: Option<u64>,
}

/// Something that the producer wrote beside the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is called.
    pub name: Box<str>,
    /// What it says.
    pub value: Box<str>,
}

impl Event {
    /// An event without headers.
    pub fn new(stream: impl Into<Arc<str>>, id: &str, payload: impl Into<Bytes>) -> Self {
        Self {
            stream: stream.into(),
            position: None,
            id: Some(id.into()),
            headers: Vec::new(),
            partition_key: None,
            payload: payload.into(),
            deliveries: None,
        }
    }

    /// The same event at a position in its stream.
    #[must_use]
    pub fn at(mut self, position: u128) -> Self {
        self.position = Some(Position::new(position));
        self
    }

    /// The same event with one more header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push(Header { name: name.into(), value: value.into() });
        self
    }

    /// What a header says; the first of that name, whatever its case.
    pub fn header_value(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)).map(|header| &*header.value)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What an event says is nobody's business in a log.
        write!(f, "Event({}", self.stream)?;
        if let Some(position) = self.position {
            write!(f, " at {position}")?;
        }
        write!(f, ", {} bytes)", self.payload.len())
    }
}
