//! The access log of the proxy and of the claim server: one line a request, on standard output. Never a key, a query, a body or
//! a token.
//!
//! - [`line`](AccessLine): what a line says. [`writer`](AccessLogWriter): lines on their way out.

mod line;
mod writer;

pub use line::AccessLine;
use semel_config::value::Words;
pub use writer::AccessLogWriter;

/// What is written of each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// Nothing.
    Off,
    /// A line for people.
    #[default]
    Text,
    /// A line of JSON.
    Json,
}

/// The words of the setting `access_log`.
pub const ACCESS_LOG: &Words<AccessLog> =
    &[("text", AccessLog::Text), ("json", AccessLog::Json), ("off", AccessLog::Off)];
