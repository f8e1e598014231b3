//! What a running process says of itself: lines on standard error, and traces to a collector.
//!
//! - [`start`](Telemetry): both, from start to end. [`otlp`]: how spans get to a collector, and which traces they join.

#[cfg_attr(not(feature = "otlp"), path = "no_otlp.rs")]
mod otlp;
mod start;

use tracing_subscriber::{Layer, Registry};

pub(crate) use start::Telemetry;

/// What collects spans.
type SpanLayer = Box<dyn Layer<Registry> + Send + Sync>;
