//! A message of JetStream as an event.

use std::sync::Arc;

use async_nats::jetstream::message::Info;
use async_nats::{HeaderMap, Message};
use semel::machine::offset::Position;
use semel_stream::{Event, Header};

/// Where producers write what makes two messages the same one. JetStream itself looks at it too, but only for minutes.
const ID_HEADER: &str = "Nats-Msg-Id";

/// The event that a message is.
pub(crate) fn event(stream: &Arc<str>, info: &Info<'_>, message: &Message) -> Event {
    let headers = message.headers.as_ref().map(headers).unwrap_or_default();
    let told = headers.iter().find(|header| header.name.eq_ignore_ascii_case(ID_HEADER));
    let id = told
        .map_or_else(|| format!("{stream}/{}", info.stream_sequence).into(), |header| header.value.clone());
    Event {
        stream: Arc::clone(stream),
        position: Some(Position::new(info.stream_sequence.into())),
        id: Some(id),
        headers,
        partition_key: Some(message.subject.as_str().into()),
        payload: message.payload.clone(),
        deliveries: u64::try_from(info.delivered).ok(),
    }
}

fn headers(map: &HeaderMap) -> Vec<Header> {
    let name_and_values = map.iter();
    let each = name_and_values.flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    each.map(|(name, value)| Header { name: name.to_string().into(), value: value.as_str().into() }).collect()
}
