//! `semel file`: for the day when an embedded store does not open.
//!
//! - [`command`]: verify and repair, as they are asked for.
//! - [`account`]: what was found, as a table for people or JSON for scripts.

mod account;
mod command;

pub(crate) use command::{Look, run};
