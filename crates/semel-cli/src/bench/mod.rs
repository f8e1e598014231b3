//! `semel bench`: what a store can do on this machine.
//!
//! - [`plan`](Plan): what is to be measured.
//! - [`measure`]: the two phases, cycles and replays, and the callers that run them.
//! - [`latency`]: how long single calls took.
//! - [`report`]: the numbers as a table for people or JSON for scripts.

mod latency;
mod measure;
mod plan;
mod report;

pub(crate) use plan::{Plan, Report, run};
