//! `semel consume`, with real commands.
//!
//! - `feed`: events, traces and a consumer. `runs`: what becomes of events. `ends`: signals, crashes and zombies.
//! - `brokers`: each broker. `input`: standard input and files that grow.

mod brokers;
mod ends;
pub(crate) mod feed;
mod input;
mod runs;
