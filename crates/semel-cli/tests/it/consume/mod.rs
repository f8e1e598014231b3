//! `semel consume`, with real commands.
//!
//! - `feed`: events, traces and a consumer. `runs`: what becomes of events. `ends`: signals, crashes and zombies.
//! - `requeue`: dead letters that are sent back.
//! - `brokers`: each broker; `builds`: those that the binary was built without. `input`: standard input and files that grow.

#[cfg(any(feature = "nats", feature = "rabbitmq", feature = "redis-streams"))]
mod brokers;
mod ends;
pub(crate) mod feed;
mod input;
mod requeue;
mod runs;
