//! The measurement: what the engine and the memory store do beside two maps, all in one run.
//!
//! - [`command`](run): the order of things.
//! - [`rounds`]: cycles and replays per second, interleaved.
//! - [`footprint`]: bytes a settled record, each contestant in a process of its own.
//! - [`bound`]: how long a new claim takes when the store is full.
//! - [`results`]: the numbers. [`bars`]: what they must reach.
//! - [`mod@markdown`]: the numbers as tables. [`panels`]: as a chart.

mod bars;
mod bound;
mod command;
mod footprint;
mod markdown;
mod panels;
mod results;
mod rounds;

pub(crate) use command::run;
pub(crate) use footprint::footprint_of_this_process;
