//! Every source, on its broker: the real ones, started for the tests.
//!
//! - `promises`: what every broker whose streams many readers share must keep; `way`: a way to it that can be cut.
//! - `consuming`: the consumer over a broker that is killed. `ask`: what a source says.

mod ask;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod consuming;
mod file;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod promises;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod way;
