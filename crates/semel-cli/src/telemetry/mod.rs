//! What a running process says of itself: lines on standard error, and traces to a collector.
//!
//! - [`start`](Telemetry): both, from start to end. [`collector`]: how spans get there. [`context`]: traces that began elsewhere.

mod collector;
mod context;
mod start;

pub(crate) use start::Telemetry;
