//! Streams, on every store and every broker.

mod brokers;
mod pipeline;
mod statistics;
