//! `semel serve`: keys for workers in every language, and pages for people.
//!
//! - [`plan`]: what it is told. [`command`]: started, reloaded, stopped.

mod command;
mod plan;

pub(crate) use command::run;
pub(crate) use plan::ServePlan;
