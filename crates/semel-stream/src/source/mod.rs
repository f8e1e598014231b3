//! Where events come from.
//!
//! - `contract`: what every source keeps, above all [`Source`].
//! - `file`: a file of lines, or standard input. Brokers are crates of their own: `semel-nats`, `semel-rabbitmq`,
//!   `semel-kafka`, `semel-redis-streams`.
//! - [`spi`]: building blocks for authors of sources.

mod contract;
mod file;
pub mod spi;

pub use contract::{Delivery, Fetched, Pending, Reads, Source, Tag};
pub use file::{LINE_BYTES_MAX_DEFAULT, LinesSource};
