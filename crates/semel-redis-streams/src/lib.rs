//! Redis Streams as a source of [semel-stream](semel_stream): a stream that is read in a consumer group.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use semel::store::MemoryStore;
//! use semel::{Outcome, Semel};
//! use semel_redis_streams::RedisStreamSource;
//! use semel_stream::{Consumer, Event, Pipeline};
//!
//! # async fn consume() -> semel::Result<()> {
//! let pipeline = Pipeline::new(&Semel::new(MemoryStore::new()), "billing")?;
//! let source = RedisStreamSource::connect("redis://127.0.0.1:6379", "orders", "billing", "worker-1").await?;
//! let consumer = Consumer::new(pipeline, source);
//! consumer.run(|_: Arc<Event>, _| async { Ok(Outcome::success("charged")) }).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! - `builder`: the settings of a source; `source`: the contract of a source, kept.
//! - `connection`: one connection, and every question it is asked; `reply`: the server's answers, parsed.
//! - `reader`: what is read next; `message`: an entry of a stream as an event.
//! - `error`: what a failure means, above all whether anything happened.

mod builder;
mod connection;
mod error;
mod message;
mod reader;
mod reply;
mod source;

pub use builder::RedisStreamBuilder;
pub use source::RedisStreamSource;
