//! `semel export` and `semel import`: all records as lines of JSON.
//!
//! - [`line`]: the first line, the last, and one for each record.
//! - [`export`]: from a store to lines. [`import`]: from lines to a store; [`reading`]: lines that are whole, by their number.

mod export;
mod import;
mod line;
mod reading;

pub(crate) use export::ExportArgs;
pub(crate) use import::ImportArgs;
