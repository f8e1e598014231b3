//! `semel export` and `semel import`: all records as lines of JSON.
//!
//! - [`frame`]: the first line and the last. [`line`]: one record, lossless. [`state`]: the part of it that depends on its state.
//! - [`export`](mod@export): from a store to lines. [`resume`]: where a cut export goes on.
//! - [`import`](mod@import): from lines to a store. [`reading`]: lines that are whole, by their number. [`adopt`]: what a record
//!   becomes in another store. [`report`]: what came of them.

mod adopt;
mod export;
mod frame;
mod import;
mod line;
mod reading;
mod report;
mod resume;
mod state;

pub(crate) use adopt::IfRunning;
pub(crate) use export::{Export, Start, export};
pub(crate) use import::{Import, import};
pub(crate) use reading::Completeness;
