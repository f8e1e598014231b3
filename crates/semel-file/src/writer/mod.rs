//! The one writer: takes what callers ask for, writes it in runs, and answers when a run is on disk for good.
//!
//! - [`ask`]: what callers ask for, and what they are told. [`queue`]: where asks wait.
//! - [`turn`]: from asks to answers. [`run`]: what is written, and synced, in one go. [`place`]: where its frames go.
//!   [`commit`]: when it is on disk for good. [`start`]: what a writer starts from.
//! - [`accounts`]: how much of each segment still counts. [`reclaim`]: getting rid of segments that hardly do.
//! - [`sweep`]: forgetting what is past its keep.

mod accounts;
pub(crate) mod ask;
mod commit;
mod place;
pub(crate) mod queue;
mod reclaim;
mod run;
mod start;
mod sweep;
mod turn;

pub(crate) use accounts::Accounts;
pub(crate) use commit::note_due;
pub(crate) use start::{SEGMENT_BYTES_MIN, Start};
pub(crate) use turn::Writer;
