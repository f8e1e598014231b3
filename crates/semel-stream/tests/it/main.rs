//! Streams, on every store and every broker.

mod pipeline;
mod statistics;
