//! Every source, on its broker.

mod ask;
mod file;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "redis")]
mod redis;
