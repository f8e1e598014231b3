//! Streams, on every store and every broker.

mod consumer;
mod feed;
mod pipeline;
