//! The measurement of pipelines: events per second on every store, in batches of several sizes.
//!
//! - [`command`](run): the order of things. [`place`]: the stores, and the servers that some are on.
//! - [`window`](mod@window): batches for a while, each checked. [`rounds`]: windows of everything, interleaved.
//! - [`results`]: the numbers. [`bars`]: what they must reach. [`mod@markdown`] and [`panels`]: how they are shown.

mod bars;
mod command;
mod markdown;
mod panels;
mod place;
mod results;
mod rounds;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use command::run;
