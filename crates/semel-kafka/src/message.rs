//! A record as an event.

use std::sync::Arc;

use bytes::Bytes;
use rdkafka::Message;
use rdkafka::message::{BorrowedMessage, Headers};
use semel::machine::offset::Position;
use semel_stream::{Event, Header};

/// The event of a record in this stream. A record without a value has an empty payload.
pub(crate) fn event(stream: &Arc<str>, record: &BorrowedMessage<'_>) -> Event {
    let offset = record.offset();
    let headers = record.headers().into_iter().flat_map(Headers::iter).map(|header| Header {
        name: header.key.into(),
        value: String::from_utf8_lossy(header.value.unwrap_or_default()).into(),
    });
    Event {
        stream: Arc::clone(stream),
        position: u128::try_from(offset).ok().map(Position::new),
        id: Some(format!("{stream}/{offset}").into()),
        headers: headers.collect(),
        partition_key: record.key().map(|key| String::from_utf8_lossy(key).into()),
        payload: Bytes::copy_from_slice(record.payload().unwrap_or_default()),
        deliveries: None,
    }
}
