//! A source that is there, or what to do about it.

#[cfg(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis-streams"))]
use anyhow::anyhow;
use anyhow::{Context, Result};
#[cfg(feature = "kafka")]
use semel_kafka::KafkaSource;
#[cfg(feature = "nats")]
use semel_nats::NatsSource;
#[cfg(not(all(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis-streams")))]
use semel_ops::missing_feature;
#[cfg(feature = "rabbitmq")]
use semel_rabbitmq::RabbitMqSource;
#[cfg(feature = "redis-streams")]
use semel_redis_streams::RedisStreamSource;
use semel_stream::source::{LinesSource, Source};

use super::address::{FileEnd, SourceAddress, SourceKind};

/// How many more events a broker may hand over than are in work: so many are at hand when a command ends.
#[cfg(feature = "rabbitmq")]
const AHEAD: usize = 2;

/// The source, connected: what is wrong with its address is told now, and not when the first event is wanted.
pub(super) async fn open(address: &SourceAddress, parallel: usize) -> Result<Box<dyn Source>> {
    opened(&address.kind, parallel).await.with_context(|| format!("cannot read {address}"))
}

#[cfg_attr(not(feature = "rabbitmq"), expect(unused_variables, reason = "only RabbitMQ hands over ahead"))]
async fn opened(kind: &SourceKind, parallel: usize) -> Result<Box<dyn Source>> {
    Ok(match kind {
        SourceKind::Stdin => Box::new(LinesSource::stdin()),
        SourceKind::File { path, end } => {
            Box::new(LinesSource::open(path)?.follow(*end == FileEnd::IsWaitedAt))
        }
        #[cfg(feature = "nats")]
        SourceKind::Nats { server, stream, durable, subject } => {
            let builder = NatsSource::connect(server.with_password(), stream, durable);
            let builder = match subject {
                Some(subject) => builder.filter(subject),
                None => builder,
            };
            Box::new(builder.open().await.map_err(next_step)?)
        }
        #[cfg(not(feature = "nats"))]
        SourceKind::Nats { .. } => return Err(missing_feature("NATS", "nats").into()),
        #[cfg(feature = "rabbitmq")]
        SourceKind::RabbitMq { server, queue } => {
            let prefetch = u16::try_from(parallel.saturating_mul(AHEAD)).unwrap_or(u16::MAX);
            let builder = RabbitMqSource::connect(server.with_password(), queue).prefetch(prefetch);
            Box::new(builder.open().await.map_err(next_step)?)
        }
        #[cfg(not(feature = "rabbitmq"))]
        SourceKind::RabbitMq { .. } => return Err(missing_feature("RabbitMQ", "rabbitmq").into()),
        #[cfg(feature = "redis-streams")]
        SourceKind::Redis { server, stream, group, consumer } => {
            let consumer = consumer.clone().unwrap_or_else(name_of_this);
            let url = server.with_password();
            Box::new(RedisStreamSource::connect(url, stream, group, &consumer).await.map_err(next_step)?)
        }
        #[cfg(not(feature = "redis-streams"))]
        SourceKind::Redis { .. } => return Err(missing_feature("Redis Streams", "redis-streams").into()),
        #[cfg(feature = "kafka")]
        SourceKind::Kafka { brokers, topic, group } => {
            Box::new(KafkaSource::connect(brokers, &[topic], group).map_err(next_step)?)
        }
        #[cfg(not(feature = "kafka"))]
        SourceKind::Kafka { .. } => return Err(missing_feature("Kafka", "kafka").into()),
    })
}

/// Nobody else in the group is called so. What a consumer leaves behind under its name is claimed by the others.
#[cfg(feature = "redis-streams")]
fn name_of_this() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}-{}", std::process::id())
}

#[cfg(any(feature = "kafka", feature = "nats", feature = "rabbitmq", feature = "redis-streams"))]
fn next_step(error: semel::Error) -> anyhow::Error {
    let is_away = error.kind() == semel::ErrorKind::Unavailable;
    let error = anyhow!(error);
    if is_away { anyhow!("{error:#}\nIs the broker up, and is this its URL?") } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One address for each broker, with the feature that brings it.
    const BROKERS: [(&str, &str, bool); 4] = [
        ("nats://127.0.0.1:1/S?durable=d", "nats", cfg!(feature = "nats")),
        ("amqp://127.0.0.1:1/v?queue=q", "rabbitmq", cfg!(feature = "rabbitmq")),
        ("redis://127.0.0.1:1?stream=s&group=g", "redis-streams", cfg!(feature = "redis-streams")),
        ("kafka://127.0.0.1:1/t?group=g", "kafka", cfg!(feature = "kafka")),
    ];

    #[tokio::test]
    async fn only_a_broker_that_is_not_in_this_build_is_refused_for_it() {
        for (address, feature, is_built_in) in BROKERS {
            let address: SourceAddress = address.parse().unwrap_or_else(|error| panic!("{address}: {error}"));
            let opened = open(&address, 1).await;
            let said = opened.err().map_or_else(String::new, |error| format!("{error:#}"));
            let is_refused = said.contains(&format!("build with `--features {feature}`"));
            assert_eq!(is_refused, !is_built_in, "{address}: {said}");
        }
    }
}
