//! Apache Kafka as a source of [semel-stream](semel_stream): topics, read as a member of a consumer group.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use semel::store::MemoryStore;
//! use semel::{Outcome, Semel};
//! use semel_kafka::KafkaSource;
//! use semel_stream::{Consumer, Event, Pipeline};
//!
//! # async fn consume() -> semel::Result<()> {
//! let pipeline = Pipeline::new(&Semel::new(MemoryStore::new()), "billing")?;
//! let source = KafkaSource::connect("127.0.0.1:9092", &["orders"], "billing")?;
//! let consumer = Consumer::new(pipeline, source);
//! consumer.run(|_: Arc<Event>, _| async { Ok(Outcome::success("charged")) }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The connection itself is librdkafka's, which is built from its source: that takes a C compiler, and minutes.
//!
//! # Layout
//!
//! - `builder`: the settings of a source; `source`: the contract of a source, kept.
//! - `rebalance`: which reader has which partition; `partition`: how far each was read.
//! - `message`: a record as an event; `error`: what a failure of librdkafka means.

mod builder;
mod error;
mod message;
mod partition;
mod rebalance;
mod source;

pub use builder::KafkaBuilder;
pub use source::KafkaSource;
