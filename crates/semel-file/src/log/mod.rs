//! The log on disk: its segments, and what keeps them in order behind the writer's back.
//!
//! - [`segment`]: one file of the log. [`segments`]: all of them, to read from.
//! - [`maintenance`]: prepares the next segment, writes hints, removes what is no longer needed; on a thread of its own.
//! - [`spare`]: the segment that is ready before it is needed. [`hints`]: a sealed segment's hint.

pub(crate) mod hints;
pub(crate) mod maintenance;
pub(crate) mod segment;
pub(crate) mod segments;
pub(crate) mod spare;
