//! A message of RabbitMQ as an event.

use std::sync::Arc;

use bytes::Bytes;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable};
use semel_stream::{Event, Header};

/// Where quorum queues say how often they delivered a message before.
const COUNT_HEADER: &str = "x-delivery-count";

/// The event that a message is.
pub(crate) fn event(queue: &Arc<str>, message: Delivery) -> Event {
    let headers = message.properties.headers().as_ref().map(headers).unwrap_or_default();
    let before = headers.iter().find(|header| &*header.name == COUNT_HEADER);
    let before = before.and_then(|header| header.value.parse::<u64>().ok());
    // A classic queue does not count: 2 stands for "not the first time".
    let before = before.unwrap_or_else(|| message.redelivered.into());
    Event {
        stream: Arc::clone(queue),
        position: None,
        id: message.properties.message_id().as_ref().map(|id| id.as_str().into()),
        headers,
        partition_key: Some(message.routing_key.as_str().into()),
        payload: Bytes::from(message.data),
        deliveries: Some(before.saturating_add(1)),
    }
}

fn headers(table: &FieldTable) -> Vec<Header> {
    let texts = table.into_iter().filter_map(|(name, value)| Some((name, text(value)?)));
    texts.map(|(name, value)| Header { name: name.as_str().into(), value: value.into() }).collect()
}

/// A value as text; `None` for what is no single value.
fn text(value: &AMQPValue) -> Option<String> {
    Some(match value {
        AMQPValue::Boolean(value) => value.to_string(),
        AMQPValue::ShortShortInt(value) => value.to_string(),
        AMQPValue::ShortShortUInt(value) => value.to_string(),
        AMQPValue::ShortInt(value) => value.to_string(),
        AMQPValue::ShortUInt(value) => value.to_string(),
        AMQPValue::LongInt(value) => value.to_string(),
        AMQPValue::LongUInt(value) => value.to_string(),
        AMQPValue::LongLongInt(value) => value.to_string(),
        AMQPValue::Float(value) => value.to_string(),
        AMQPValue::Double(value) => value.to_string(),
        AMQPValue::Timestamp(value) => value.to_string(),
        AMQPValue::ShortString(value) => value.as_str().to_owned(),
        AMQPValue::LongString(value) => String::from_utf8_lossy(value.as_bytes()).into_owned(),
        AMQPValue::DecimalValue(_)
        | AMQPValue::FieldArray(_)
        | AMQPValue::FieldTable(_)
        | AMQPValue::ByteArray(_)
        | AMQPValue::Void => return None,
    })
}
