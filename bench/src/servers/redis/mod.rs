//! semel on Redis, beside the three commands that are written for it again and again.
//!
//! - [`command`](run): the order of things.
//! - [`per_call`]: `SET NX PX`, then `GET` when the key was there, then `SET`.

mod command;
mod per_call;
#[cfg(test)]
mod tests;

pub(crate) use command::{run, version};
