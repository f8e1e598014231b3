//! Records, moments, spans, sizes and numbers as people read them, on a terminal and on a page.
//!
//! - [`record`]: a record in words. [`response`]: a stored HTTP response. [`moment`]: moments as text. [`scope`]: `acme/eu`. [`span`]: `3m 12s`. [`bytes`]: sizes and hex dumps. [`number`]: 1,234,567.

pub mod bytes;
pub mod moment;
pub mod number;
pub mod record;
pub mod response;
pub mod scope;

pub use semel_config::span;
