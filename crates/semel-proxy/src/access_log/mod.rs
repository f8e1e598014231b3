//! The access log: one line a request, at its end. Never a key, a query, a body or a token.
//!
//! - [`entry`]: what is known of a request, from its first line to its end.
//! - [`form`]: how that is written. [`writer`]: to where, without holding up anybody.

mod entry;
mod form;
mod writer;

pub(super) use entry::{Entry, Said};
pub(super) use form::Form;
pub(super) use writer::Log;
