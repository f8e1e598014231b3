//! HTTP/1.1 as bytes, written by hand: what a client of the attacks sends, and how it reads what comes back.
//!
//! - [`buffered`]: bytes of a line as they come. [`answer`]: responses in them. [`connection`]: a client's end.

mod answer;
mod buffered;
mod connection;

pub(crate) use answer::{Answer, answers};
pub(crate) use buffered::Buffered;
pub(crate) use connection::{Connection, Goodbye};
