//! Every source, on its broker: the real ones, started for the tests.
//!
//! - `promises`: what every broker whose streams many readers share must keep; `way`: a way to it that can be cut.
//! - `consuming`: the consumer over a broker that is killed; `*_once`: one effect each through the loop. `ask`: what a
//!   source says.

mod ask;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod consuming;
mod effects;
mod file;
mod file_once;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kafka")]
mod kafka_once;
#[cfg(feature = "nats")]
pub(crate) mod nats;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
pub(crate) mod promises;
#[cfg(feature = "rabbitmq")]
pub(crate) mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod redis_once;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod way;
