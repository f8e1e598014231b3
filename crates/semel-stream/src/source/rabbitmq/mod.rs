//! RabbitMQ: a queue, shared by as many readers as like.
//!
//! - `builder`: what a reader says about itself; `source`: the contract.
//! - `line`: one connection; `settle`: what was delivered on it, and what is to be said of it; `message`: a message as an event.

mod builder;
mod line;
mod message;
mod settle;
mod source;

pub use builder::{PREFETCH_DEFAULT, Queue, RabbitMqBuilder};
pub use source::RabbitMqSource;
