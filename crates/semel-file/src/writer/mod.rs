//! The one writer: takes what callers ask for, writes it in runs, and answers when a run is on disk for good.
//!
//! - [`ask`]: what callers ask for, and what they are told. [`queue`]: where asks wait.
//! - [`turn`]: from asks to answers. [`run`]: what is written, and synced, in one go. [`place`]: where its frames go.
//!   [`commit`]: when it is on disk for good. [`start`]: what a writer starts from.
//! - [`usage`]: how much of each segment still counts. [`reclaim`]: getting rid of segments that hardly do.

mod append;
pub(crate) mod ask;
mod batch;
mod commit;
mod judge;
pub(crate) mod queue;
mod reclaim;
mod state;
mod usage;

pub(crate) use judge::Writer;
pub(crate) use state::{LogState, SEGMENT_BYTES_MIN};
pub(crate) use usage::Usage;
