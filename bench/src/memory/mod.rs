//! The measurement: what the engine and the memory store do beside two maps, all in one run.
//!
//! - [`command`](run): the order of things.
//! - [`rounds`]: cycles and replays per second, interleaved.
//! - [`footprint`]: bytes a settled record, each contestant in a process of its own.
//! - [`bound`]: how long a new claim takes when the store is full.
//! - [`results`]: the numbers. [`bars`]: what they must reach.

mod bars;
mod bound;
mod command;
mod footprint;
mod results;
mod rounds;

pub(crate) use command::run;
pub(crate) use footprint::footprint_of_this_process;
pub(crate) use results::{Bar, BoundCase, Footprint, Rate, Results, Work};
