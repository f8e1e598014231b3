//! Thousands of connections that dawdle: others are served meanwhile, memory is bounded, and the slow ones are closed.
//!
//! - [`dawdler`]: one that dawdles. [`others`]: those who do not. [`attack`]: all of it.

mod attack;
mod dawdler;
mod others;

pub use attack::{Slowed, slow};
