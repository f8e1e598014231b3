//! The access log of the proxy and of the claim server: one line a request, on standard output. Never a key, a query, a body or
//! a token.
//!
//! - [`setting`](AccessLog): what is written of each request. [`line`](AccessLine): what a line says.
//! - [`writer`](AccessLogWriter): lines on their way out.

mod line;
mod setting;
mod writer;

pub use line::AccessLine;
pub use setting::{ACCESS_LOG, AccessLog};
pub use writer::AccessLogWriter;
