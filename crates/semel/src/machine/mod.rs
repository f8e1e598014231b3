//! The pure state machine: `(record, ask, now) -> answer, next record`.
//!
//! Every rule of semel is in this folder and nowhere else. No clock, no I/O, no randomness: the
//! moment, the permit id and the record come in as arguments, and what to write goes out as a value.
//! [`claim`] decides who may run, [`settle`] how a run ends, [`amend`] what may be noted meanwhile, [`offset`] how far a
//! stream counts as read, and [`waiting`] which keys wait to be run.

pub mod amend;
pub mod claim;
pub mod offset;
mod ruling;
pub mod settle;
pub mod waiting;

pub use ruling::{Ruling, Write};
