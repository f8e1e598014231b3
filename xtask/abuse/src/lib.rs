//! Attacks on the running proxy: clients that hang up at every byte, requests that can be read in two ways, connections
//! that dawdle, keys without end, `kill -9`, and crowds. Each has a control: something that is not safe, and must be caught.
//!
//! The proxy is the real binary, a child of this process; the service behind it is this package's own, and counts what it
//! is asked. Everything is on loopback.
//!
//! # Layout
//! - [`disconnects`], [`smuggling`], [`slow`], [`many_keys`], [`kill`], [`crowd`]: one attack on the proxy each;
//!   [`slow_server`], [`waiting`]: on the claim server. Each fails if a promise was
//!   broken or its control was not caught, and otherwise reports what it saw.
//! - `proxy`: the binary; `upstream`: the service; `wire`: HTTP as bytes; `ask`: requests; `race`: several at once.

#![expect(clippy::arithmetic_side_effects, reason = "lengths and counts of what fits into memory")]

mod ask;
mod crowd;
mod disconnects;
mod kill;
mod limits;
mod many_keys;
mod proxy;
mod race;
mod slow;
mod smuggling;
mod upstream;
mod waiting;
mod wire;

pub use crowd::{Crowded, crowd};
pub use disconnects::{Disconnected, disconnects};
pub use kill::{Killed, kill};
pub use many_keys::{Flood, ManyKeys, keys, many_keys};
pub use race::Step;
pub use slow::{Slowed, slow, slow_server};
pub use smuggling::{Smuggled, shapes, smuggling};
pub use waiting::{Waited, waiting};
