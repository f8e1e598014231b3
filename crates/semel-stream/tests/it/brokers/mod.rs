//! Every source, on its broker: what it owes the loop, and, in `*_once`, one effect each through the loop.

mod ask;
mod effects;
mod file;
mod file_once;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kafka")]
mod kafka_once;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod redis_once;
