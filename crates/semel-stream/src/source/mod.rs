//! Where events come from.
//!
//! [`contract`](Source) is what every source keeps; beside it, one file or folder a broker.

mod contract;
#[cfg(any(feature = "nats", feature = "rabbitmq"))]
mod dial;
#[cfg(feature = "nats")]
pub mod nats;
#[cfg(feature = "rabbitmq")]
pub mod rabbitmq;

pub use contract::{Delivery, Fetched, Pending, Reads, Source, Tag};
#[cfg(feature = "nats")]
pub use nats::NatsSource;
#[cfg(feature = "rabbitmq")]
pub use rabbitmq::RabbitMqSource;
