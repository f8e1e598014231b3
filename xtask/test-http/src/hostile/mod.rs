//! A hostile upstream: every oddity of framing (RFC 9112, RFC 9113) that a service can send to the proxy before it, and what may
//! become of it.
//!
//! - `case`: an answer, and what it means. `http1`, `http2`: all of them; `cases`: the list.
//! - `upstream`: sends one of them, once, and good answers otherwise. `judge`: what clients saw, and whether that is right.
//! - `relay`: the control, which passes on the lengths that it found.

mod case;
mod cases;
mod http1;
mod http2;
mod judge;
mod relay;
mod upstream;

pub use case::{Case, Means, Version};
pub use cases::cases;
pub use judge::{Tried, faults};
pub use relay::Relay;
pub use upstream::HostileUpstream;
