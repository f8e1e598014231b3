//! RabbitMQ as a source of [semel-stream](semel_stream): a queue that any number of readers share.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use semel::store::MemoryStore;
//! use semel::{Outcome, Semel};
//! use semel_rabbitmq::RabbitMqSource;
//! use semel_stream::{Consumer, Event, Pipeline};
//!
//! # async fn consume() -> semel::Result<()> {
//! let pipeline = Pipeline::new(&Semel::new(MemoryStore::new()), "billing")?;
//! let source = RabbitMqSource::connect("amqp://guest:guest@127.0.0.1:5672/%2f", "orders").open().await?;
//! let consumer = Consumer::new(pipeline, source);
//! consumer.run(|_: Arc<Event>, _| async { Ok(Outcome::success("charged")) }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! - `builder`: the settings of a source; `source`: the contract of a source, kept.
//! - `connection`: one connection; `message`: a message as an event.
//! - `settler`: what was delivered on a connection, and what is to be said of it.

mod builder;
mod connection;
mod message;
mod settler;
mod source;

pub use builder::{PREFETCH_DEFAULT, Queue, RabbitMqBuilder};
pub use source::RabbitMqSource;
