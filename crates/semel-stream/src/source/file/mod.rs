//! A file of JSON lines, or standard input.
//!
//! - `lines`: bytes to lines, with a bound; `place`: a file that is opened behind a line, and noticed when it is another one.
//! - `source`: both as a source.

mod lines;
mod place;
mod source;

pub use source::{LINE_BYTES_MAX_DEFAULT, LinesSource};
