//! The measurement of the claim server: cycles of claim and complete, beside a bare JSON echo and Redis.
//!
//! - [`command`](run): the order of things. [`entry`]: who is measured, doing what. [`echo`](run_echo): a process with the echo.
//! - [`wire`]: requests and answers as bytes. [`load`]: connections that send one and check the other. [`redis`]: redis-benchmark.
//! - [`rounds`]: windows of all of them, interleaved. [`results`]: the numbers. [`bars`]: what they must reach.
//!   [`mod@markdown`] and [`panels`]: how they are shown.

mod bars;
mod command;
mod echo;
mod entry;
mod load;
mod markdown;
mod panels;
mod redis;
mod results;
mod rounds;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use command::run;
pub(crate) use echo::run as run_echo;
