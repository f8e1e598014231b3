//! Brokers as sources: the real ones, started for the tests.
//!
//! - `promises`: what every broker whose streams many readers share must keep; `way`: a way to it that can be cut.
//! - `consuming`: the consumer over a broker that is killed.

#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod consuming;
#[cfg(feature = "nats")]
mod nats;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod promises;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod way;
