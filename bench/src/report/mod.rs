//! What every measurement needs to show its numbers; JSON they are by themselves.
//!
//! - [`facts`](Facts): which machine this is. [`filesystem`](filesystem()): on which disk a folder is.
//! - [`numbers`](median): the middle of many numbers, and the [`Bar`] that it must reach.
//! - [`mod@table`]: tables that are printed and kept. [`svg`]: bars, axes and labels.
//! - [`output`](keep): where they go, and how far a run is.

mod facts;
mod filesystem;
mod numbers;
mod output;
pub(crate) mod svg;
mod table;

pub(crate) use facts::Facts;
pub(crate) use filesystem::filesystem;
pub(crate) use numbers::{Bar, Spread, median};
pub(crate) use output::{keep, progress, workspace};
pub(crate) use table::{bars, grouped, table, thousands, whole};
