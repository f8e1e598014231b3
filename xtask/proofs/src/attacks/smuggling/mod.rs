//! Requests that can be read in two ways, each followed on its connection by a probe: nobody may read them in two ways.
//!
//! - [`shape`]: a request, and the ways in which it may be read. [`codings`], [`lengths`], [`lines`], [`chunks`], [`refused`], [`second`]: all
//!   of them. [`frames`]: HTTP/2. `shapes`: the list.
//! - [`exchange`]: what is sent, and what comes back. [`judge`]: whether that is right. [`attack`]: all of it.
//! - [`relay`]: the control, which trusts lengths and forwards bytes.

mod attack;
mod chunks;
mod codings;
mod exchange;
mod frames;
mod judge;
mod lengths;
mod lines;
mod refused;
mod relay;
mod second;
mod shape;
mod shapes;

pub use attack::{Smuggled, smuggling};
pub use shapes::shapes;
