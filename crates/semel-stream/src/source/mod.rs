//! Where events come from.
//!
//! [`contract`](Source) is what every source keeps; beside it, one folder a broker. `outstanding`: what was handed out, for
//! sources whose broker takes nothing back; `dial`: a connection in the making.

mod contract;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod dial;
mod file;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
pub mod nats;
mod outstanding;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;

pub use contract::{Delivery, Fetched, Pending, Reads, Source, Tag};
pub use file::{LINE_BYTES_MAX_DEFAULT, LinesSource};
#[cfg(feature = "kafka")]
pub use kafka::{KafkaBuilder, KafkaSource};
#[cfg(feature = "nats")]
pub use nats::NatsSource;
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::RabbitMqSource;
#[cfg(feature = "redis")]
pub use redis::{RedisStreamBuilder, RedisStreamSource};
