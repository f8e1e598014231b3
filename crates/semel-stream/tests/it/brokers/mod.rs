//! Every source, on its broker: the real ones, started for the tests. `*_once`: one effect each through the loop.

#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kafka")]
mod kafka_once;
