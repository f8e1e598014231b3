//! Attacks on the running proxy and claim server: clients that hang up at every byte, requests that can be read in two ways,
//! connections that dawdle, keys without end, `kill -9`, and crowds. Each has a control: something that is not safe, and must
//! be caught.
//!
//! Each fails if a promise was broken or its control was not caught, and otherwise reports what it saw.

mod ask;
mod command;
mod crowd;
mod disconnects;
mod kill;
mod limits;
mod many_keys;
mod proxy_kills;
mod race;
mod slow;
mod smuggling;
mod waiting;

pub use command::Attack;
pub(crate) use command::run;
pub use crowd::{Crowded, crowd};
pub use disconnects::{Disconnected, disconnects};
pub use kill::{Killed, kill};
pub use many_keys::{Flood, ManyKeys, keys, many_keys};
pub use proxy_kills::{ProxyKills, proxy_kills};
pub use race::Step;
pub use slow::{Slowed, slow, slow_server};
pub use smuggling::{Smuggled, shapes, smuggling};
pub use waiting::{Waited, waiting};
