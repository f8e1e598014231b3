//! NATS JetStream as a source of [semel-stream](semel_stream): a durable pull consumer that any number of readers share.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use semel::store::MemoryStore;
//! use semel::{Outcome, Semel};
//! use semel_nats::NatsSource;
//! use semel_stream::{Consumer, Event, Pipeline};
//!
//! # async fn consume() -> semel::Result<()> {
//! let pipeline = Pipeline::new(&Semel::new(MemoryStore::new()), "billing")?;
//! let source = NatsSource::connect("nats://127.0.0.1:4222", "ORDERS", "billing").open().await?;
//! let consumer = Consumer::new(pipeline, source);
//! consumer.run(|_: Arc<Event>, _| async { Ok(Outcome::success("charged")) }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! - `builder`: the settings of a source; `source`: the contract of a source, kept.
//! - `connection`: one connection, and what was delivered on it; `message`: a message as an event.
//! - `progress`: tells the broker that an event is still in work.

mod builder;
mod connection;
mod message;
mod progress;
mod source;

pub use builder::{ACK_WAIT_DEFAULT, MAX_ACK_PENDING_DEFAULT, NatsBuilder};
pub use source::NatsSource;
