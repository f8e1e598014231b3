//! `semel consume`: a command for each event of a stream, once.
//!
//! - [`plan`](Consume): what is to be consumed, and how. [`address`](SourceAddress): where events come from; [`source`]: what is there.
//! - [`command`](run): the run as a whole. [`exec`](Exec): one run of the command; [`group`]: its processes; [`environment`]: what it
//!   finds; [`verdict`]: what its end means.
//! - [`dead_letters`](DeadLettersTo): where events go that cannot be processed.
//! - [`told`], [`standing`], [`screen`]: what people see.

mod address;
mod command;
mod dead_letters;
mod environment;
mod exec;
mod group;
mod plan;
mod screen;
mod source;
mod standing;
mod told;
mod verdict;

pub(crate) use address::SourceAddress;
pub(crate) use command::run;
pub(crate) use dead_letters::DeadLettersTo;
pub(crate) use environment::ENVIRONMENT;
pub(crate) use exec::Exec;
pub(crate) use plan::Consume;
pub(crate) use verdict::CODES;
