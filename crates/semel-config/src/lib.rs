//! How semel reads its configuration files.
//!
//! A file is judged as a whole: everything that is wrong with it is reported at once, by line and column.
//!
//! # Layout
//!
//! - [`source`](Source): the text of a file. [`table`](Table): its tables, whose fields are asked for by name; what was not asked
//!   for is an error. [`value`]: how values are read. [`secret`]: values that are kept elsewhere.
//! - [`errors`](Errors): what is wrong, and where. [`layout`]: where each name belongs, and what may have been meant.
//! - [`size`], [`span`]: `64KiB` and `1h30m`. [`render`]: settings as the text of a file.

mod errors;
pub mod layout;
pub mod render;
pub mod secret;
pub mod size;
mod source;
pub mod span;
mod table;
pub mod value;

pub use errors::{ErrorList, Errors, Fault, Span};
pub use source::Source;
pub use table::Table;
