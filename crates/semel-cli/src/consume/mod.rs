//! `semel consume`: a command for each event of a stream, once.
//!
//! - [`command`]: the arguments, and the run as a whole. [`source`]: where events come from.
//! - [`exec`]: one run of the command, and what its end means; [`environment`]: what it finds.
//! - [`dead_letters`]: where events go that cannot be processed.
//! - [`reporter`], [`progress`]: what people see.

mod command;
mod dead_letters;
mod environment;
mod exec;
mod progress;
mod reporter;
mod source;

pub(crate) use command::ConsumeArgs;
pub(crate) use environment::ENVIRONMENT;
pub(crate) use exec::CODES;
