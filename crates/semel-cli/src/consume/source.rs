//! A source that is there, or what to do about it.

use anyhow::{Context, Result, anyhow};
#[cfg(feature = "kafka")]
use semel_kafka::KafkaSource;
use semel_nats::NatsSource;
use semel_rabbitmq::RabbitMqSource;
use semel_redis_streams::RedisStreamSource;
use semel_stream::source::{LinesSource, Source};

use super::address::{FileEnd, SourceAddress, SourceKind};

/// How many more events a broker may hand over than are in work: so many are at hand when a command ends.
const AHEAD: usize = 2;

/// The source, connected: what is wrong with its address is told now, and not when the first event is wanted.
pub(super) async fn open(address: &SourceAddress, parallel: usize) -> Result<Box<dyn Source>> {
    opened(&address.kind, parallel).await.with_context(|| format!("cannot read {address}"))
}

async fn opened(kind: &SourceKind, parallel: usize) -> Result<Box<dyn Source>> {
    Ok(match kind {
        SourceKind::Stdin => Box::new(LinesSource::stdin()),
        SourceKind::File { path, end } => {
            Box::new(LinesSource::open(path)?.follow(*end == FileEnd::IsWaitedAt))
        }
        SourceKind::Nats { server, stream, durable, subject } => {
            let builder = NatsSource::connect(server.with_password(), stream, durable);
            let builder = match subject {
                Some(subject) => builder.filter(subject),
                None => builder,
            };
            Box::new(builder.open().await.map_err(next_step)?)
        }
        SourceKind::RabbitMq { server, queue } => {
            let prefetch = u16::try_from(parallel.saturating_mul(AHEAD)).unwrap_or(u16::MAX);
            let builder = RabbitMqSource::connect(server.with_password(), queue).prefetch(prefetch);
            Box::new(builder.open().await.map_err(next_step)?)
        }
        SourceKind::Redis { server, stream, group, consumer } => {
            let consumer = consumer.clone().unwrap_or_else(name_of_this);
            let url = server.with_password();
            Box::new(RedisStreamSource::connect(url, stream, group, &consumer).await.map_err(next_step)?)
        }
        SourceKind::Kafka { brokers, topic, group } => kafka(brokers, topic, group)?,
    })
}

#[cfg(feature = "kafka")]
fn kafka(brokers: &str, topic: &str, group: &str) -> Result<Box<dyn Source>> {
    Ok(Box::new(KafkaSource::connect(brokers, &[topic], group).map_err(next_step)?))
}

#[cfg(not(feature = "kafka"))]
fn kafka(_brokers: &str, _topic: &str, _group: &str) -> Result<Box<dyn Source>> {
    Err(anyhow!(
        "this semel was built without Kafka: `cargo install semel-cli --features kafka` builds it with"
    ))
}

/// Nobody else in the group is called so. What a consumer leaves behind under its name is claimed by the others.
fn name_of_this() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}", std::process::id())
}

fn next_step(error: semel::Error) -> anyhow::Error {
    let is_away = error.kind() == semel::ErrorKind::Unavailable;
    let error = anyhow!(error);
    if is_away { anyhow!("{error:#}\nIs the broker up, and is this its URL?") } else { error }
}
