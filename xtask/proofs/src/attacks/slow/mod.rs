//! Thousands of connections that dawdle: others are served meanwhile, memory is bounded, and the slow ones are closed.

mod attack;

pub use attack::{Slowed, slow, slow_server};
