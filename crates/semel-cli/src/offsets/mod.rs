//! `semel offsets`: how far each pipeline has read its streams.
//!
//! [`list`](mod@list) shows them; [`rewind`] moves one, and asks first.

mod list;
mod rewind;

pub(crate) use list::{Offsets, list};
pub(crate) use rewind::{Move, move_one};
