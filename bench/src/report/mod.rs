//! The numbers as a table and a chart; JSON they are by themselves.
//!
//! - [`facts`](Facts): which machine this is.
//! - [`mod@markdown`]: the tables that are printed and kept.
//! - [`panels`](chart): which numbers become which bars. [`svg`]: bars, axes and labels.

mod facts;
mod markdown;
mod panels;
mod svg;

pub(crate) use facts::Facts;
pub(crate) use markdown::markdown;
pub(crate) use panels::chart;
