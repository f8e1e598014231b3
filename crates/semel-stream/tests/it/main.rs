//! Streams, on every store and every broker.

mod consumer;
mod feed;
#[cfg(feature = "postgres")]
mod in_transaction;
mod pipeline;
