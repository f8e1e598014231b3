//! RabbitMQ as a source, on a real server.
//!
//! - `broker`: a queue of a test's own; `source`: what the source keeps.
//! - `chaos`: troubles that consumers must live through.
#![cfg(test)]

mod broker;
mod chaos;
mod source;
