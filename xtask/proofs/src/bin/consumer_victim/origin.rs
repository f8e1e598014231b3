//! Where events come from, and what the broker knows of them.

use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::{self, stream};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use semel_nats::NatsSource;
use semel_rabbitmq::{Queue, RabbitMqSource};
use semel_stream::source::{LinesSource, Source};

use crate::Fallible;

/// The name under which NATS knows all lives of the consumer.
const READER: &str = "reader";
/// How long NATS waits for the acknowledgement of somebody who is dead.
const ACK_WAIT: Duration = Duration::from_millis(500);
/// What survives a restart is kept on disk.
const PERSISTENT: u8 = 2;

/// Where events come from.
pub(crate) enum Origin<'a> {
    Lines { path: &'a str },
    Nats { url: &'a str, stream: &'a str },
    RabbitMq { url: &'a str, queue: &'a str },
}

impl<'a> Origin<'a> {
    pub(crate) fn new(words: &'a str) -> Self {
        match words.rsplit_once('/') {
            Some((url, stream)) if words.starts_with("nats:") => Self::Nats { url, stream },
            _ => match words.rsplit_once('#') {
                Some((url, queue)) if words.starts_with("amqp:") => Self::RabbitMq { url, queue },
                _ => Self::Lines { path: words },
            },
        }
    }

    /// The name of its stream.
    pub(crate) fn stream(&self) -> &'a str {
        match self {
            Self::Lines { path } => path,
            Self::Nats { stream, .. } => stream,
            Self::RabbitMq { queue, .. } => queue,
        }
    }

    /// Whether it says itself when there is no more.
    pub(crate) fn ends(&self) -> bool {
        matches!(self, Self::Lines { .. })
    }

    pub(crate) fn source(&self) -> Fallible<Box<dyn Source>> {
        Ok(match self {
            Self::Lines { path } => Box::new(LinesSource::open(path)?),
            Self::Nats { url, stream } => {
                Box::new(NatsSource::connect(url, stream, READER).ack_wait(ACK_WAIT).build())
            }
            Self::RabbitMq { url, queue } => {
                Box::new(RabbitMqSource::connect(url, queue).queue(Queue::Durable).build())
            }
        })
    }

    /// Publishes every line of a file.
    pub(crate) async fn publish(&self, file: &Path) -> Fallible<()> {
        let text = std::fs::read_to_string(file)?;
        match self {
            Self::Lines { .. } => Err("a file is not published to".into()),
            Self::Nats { url, stream } => publish_to_nats(url, stream, &text).await,
            Self::RabbitMq { url, queue } => publish_to_rabbitmq(url, queue, &text).await,
        }
    }

    /// How many deliveries the broker does not know to be processed; `None` if it knows nothing. Of RabbitMQ's, those that a
    /// connection holds are left out.
    pub(crate) async fn left(&self) -> Fallible<Option<u64>> {
        Ok(match self {
            Self::Lines { .. } => None,
            Self::Nats { url, stream } => {
                let context = jetstream::new(async_nats::connect(*url).await?);
                let stream = context.get_stream(stream).await?;
                Some(match stream.consumer_info(READER).await {
                    Ok(info) => info.num_pending.saturating_add(info.num_ack_pending.try_into()?),
                    // Nobody has read yet.
                    Err(_) => stream.cached_info().state.messages,
                })
            }
            Self::RabbitMq { url, queue } => {
                let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
                let (_connection, channel) = channel(url).await?;
                let found = channel.queue_declare((*queue).into(), passive, FieldTable::default()).await?;
                Some(found.message_count().into())
            }
        })
    }

    /// Up to where the broker says that everything was acknowledged.
    pub(crate) async fn floor(&self) -> Fallible<Option<u64>> {
        let Self::Nats { url, stream } = self else { return Ok(None) };
        let context = jetstream::new(async_nats::connect(*url).await?);
        let stream = context.get_stream(stream).await?;
        // Nobody has read yet where there is no consumer.
        Ok(stream.consumer_info(READER).await.ok().map(|info| info.ack_floor.stream_sequence))
    }
}

async fn publish_to_nats(url: &str, name: &str, text: &str) -> Fallible<()> {
    let context = jetstream::new(async_nats::connect(url).await?);
    let config = stream::Config {
        name: name.to_owned(),
        subjects: vec![name.to_owned()],
        storage: stream::StorageType::File,
        ..stream::Config::default()
    };
    context.create_stream(config).await?;
    let mut promised = Vec::new();
    for line in text.lines() {
        promised.push(context.publish(name.to_owned(), line.to_owned().into()).await?);
    }
    for promise in promised {
        promise.await?;
    }
    Ok(())
}

async fn publish_to_rabbitmq(url: &str, queue: &str, text: &str) -> Fallible<()> {
    let (_connection, channel) = channel(url).await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.into(), durable, FieldTable::default()).await?;
    let mut promised = Vec::new();
    for line in text.lines() {
        let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
        let options = BasicPublishOptions::default();
        let sent = channel.basic_publish("".into(), queue.into(), options, line.as_bytes(), properties);
        promised.push(sent.await?);
    }
    for promise in promised {
        promise.await?;
    }
    Ok(())
}

async fn channel(url: &str) -> Fallible<(Connection, Channel)> {
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    Ok((connection, channel))
}
