//! Where events come from.
//!
//! [`contract`](Source) is what every source keeps; beside it, one file a broker. `outstanding`: what was handed out, for
//! sources whose broker takes nothing back.

mod contract;
mod file;
#[cfg(feature = "kafka")]
mod kafka;
mod outstanding;
#[cfg(feature = "redis")]
mod redis;

pub use contract::{Delivery, Fetched, Pending, Reads, Source, Tag};
pub use file::{LINE_BYTES_MAX_DEFAULT, LinesSource};
#[cfg(feature = "kafka")]
pub use kafka::{KafkaBuilder, KafkaSource};
#[cfg(feature = "redis")]
pub use redis::{RedisStreamBuilder, RedisStreamSource};
