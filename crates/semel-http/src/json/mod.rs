//! Canonical JSON (RFC 8785), and the parts of it that do not count.

mod path;

pub use path::JsonPath;
