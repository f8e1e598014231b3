//! Redis Streams as a source, on a real server.
//!
//! - `source`: what the source keeps; `consumer`: one effect each through the loop.
#![cfg(test)]

mod consumer;
mod source;
