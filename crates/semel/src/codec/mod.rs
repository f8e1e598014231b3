//! Records as bytes: versioned, checksummed and strict. What was written once is read for ever.
//!
//! ```text
//! magic "SEML" · version u8 · payload length u32 LE · payload · crc32c u32 LE over all before it
//! ```
//!
//! In the payload, moments and spans are microseconds as u64 LE, other numbers are LEB128 (shortest form only), texts
//! and bytes carry their length. Unknown tags or flags, trailing bytes and a newer version are errors.

mod envelope;
mod layout;
mod read;
mod write;

pub use envelope::{decode, decode_for, encode, encode_into};
