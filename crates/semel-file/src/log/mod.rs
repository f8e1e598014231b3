//! The log on disk: its segments, and what keeps them in order behind the writer's back.
//!
//! - [`appender`]: the end of the log. [`usage`]: how much of each segment still counts.
//! - [`segment`]: one file of the log. [`segments`]: all of them, for readers.
//! - [`maintenance`]: prepares the next segment, writes hints, removes what is no longer needed; on a thread of its own.
//! - [`spare`]: the segment that is ready before it is needed. [`hints`]: a sealed segment's hint.
//! - [`tail`]: says outside of the log how far it is acknowledged.

pub(crate) mod appender;
pub(crate) mod hints;
pub(crate) mod maintenance;
pub(crate) mod segment;
pub(crate) mod segments;
pub(crate) mod spare;
pub(crate) mod tail;
pub(crate) mod usage;
