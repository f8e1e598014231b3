//! Thousands of connections that dawdle: others are served meanwhile, memory is bounded, and the slow ones are closed.
//!
//! - `dawdler`: one that dawdles. `others`: those who do not. [`attack`]: all of it. `server`: the same before the
//!   claim server.

mod attack;

pub use attack::slow_server;
pub use attack::{Slowed, slow};
