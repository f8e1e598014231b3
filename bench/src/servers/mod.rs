//! The measurements of stores on servers: what many callers get done, beside what is usually written for them.
//!
//! - [`postgres`] and [`redis`]: the contestants on each, and the order of things.
//! - [`entry`](Entry): a contestant among others. [`rounds`]: windows of all of them, interleaved.
//! - [`census`]: what the server holds at the end, against what callers were told.
//! - [`results`]: the numbers. [`bars`]: what they must reach. [`mod@markdown`] and [`panels`]: how they are shown.

mod bars;
mod census;
mod entry;
mod markdown;
mod panels;
mod postgres;
mod redis;
mod results;
mod rounds;

pub(crate) use postgres::run as run_postgres;
pub(crate) use redis::{run as run_redis, version as redis_version};
pub(crate) use rounds::neighbours_share;
