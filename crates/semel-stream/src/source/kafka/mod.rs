//! Apache Kafka, through librdkafka.
//!
//! - `config`: which topics, in which group; `rebalance`: which partitions are whose; `partition`: how far each was read.
//! - `record`: a record as an event; `source`: all of it as a source.

mod config;
mod error;
mod partition;
mod rebalance;
mod record;
mod source;

pub use config::KafkaBuilder;
pub use source::KafkaSource;
