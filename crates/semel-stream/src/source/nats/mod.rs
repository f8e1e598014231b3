//! NATS JetStream: a durable pull consumer, shared by as many readers as like.
//!
//! - `builder`: what a reader says about itself; `source`: the contract.
//! - `line`: one connection, and what was delivered on it; `message`: a message as an event.
//! - `progress`: tells the broker that an event is still in work.

mod builder;
mod line;
mod message;
mod progress;
mod source;

pub use builder::{ACK_WAIT_DEFAULT, MAX_ACK_PENDING_DEFAULT, NatsBuilder};
pub use source::NatsSource;
