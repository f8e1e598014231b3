//! Streams, on every store and every broker.

mod brokers;
mod consumer;
mod feed;
mod pipeline;
mod statistics;
