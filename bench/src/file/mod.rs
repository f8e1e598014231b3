//! The measurement of the durable store: what it does beside general embedded databases, all in one run.
//!
//! - [`command`](run): the order of things. [`folder`]: where the stores are, and on which disk.
//! - [`who`](Who): the contestants. [`rounds`]: windows of all of them, interleaved.
//! - [`raw_sync`]: what the disk does when nobody is in between.
//! - [`task`](Task): steps in the life of a store, each in a process of its own: [`opening`], [`expiry`], [`growth`],
//!   [`disk`]. [`movable`]: a clock that they can move.
//! - [`results`]: the numbers. [`bars`]: what they must reach. [`mod@markdown`] and [`panels`]: how they are shown.

mod bars;
mod command;
mod disk;
mod expiry;
mod folder;
mod growth;
mod markdown;
mod movable;
mod opening;
mod panels;
mod raw_sync;
mod results;
mod rounds;
mod task;
#[cfg(test)]
mod tests;
mod who;

pub(crate) use command::run;
pub(crate) use folder::TempFolder;
pub(crate) use task::{Task, run_task};
pub(crate) use who::Who;
