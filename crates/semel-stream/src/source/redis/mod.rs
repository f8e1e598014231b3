//! Redis Streams, with consumer groups.
//!
//! - `config`: which stream, in which group, as whom; `commands`: what the server is asked; `reply`: what it answers.
//! - `entry`: an entry of a stream as an event; `reader`: what is read next; `source`: all of it as a source.

mod commands;
mod config;
mod entry;
mod error;
mod reader;
mod reply;
mod source;

pub use config::RedisStreamBuilder;
pub use source::RedisStreamSource;
