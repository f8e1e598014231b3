//! The service behind the proxy: connections to it, and what comes back.
//!
//! - [`dial`]: a new connection. [`http1`]: those of HTTP/1.1, and the idle ones. [`http2`]: the one of HTTP/2.
//! - [`outgoing`]: a request's body on its way, and how long its answer may take.
//! - [`response_head`], [`body`]: what comes back.
//! - [`send`]: a request goes out once, and what is known of it afterwards.
//!
//! A connection of HTTP/1.1 has no task of its own: whoever waits for its answer drives it. That saves two wake-ups a
//! request, and makes it certain whether a request has left: nothing is written unless the exchange is polled.

mod body;
mod dial;
mod http1;
mod http2;
mod outgoing;
mod response_head;
mod send;

pub use body::UpstreamBody;
pub(super) use outgoing::Sent;
pub(super) use send::{Failure, Upstream};
