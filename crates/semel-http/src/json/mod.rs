//! Canonical JSON (RFC 8785), and the parts of it that do not count.
//!
//! Two bodies whose canonical forms are the same bytes mean the same. Where that cannot be told, there is no
//! canonical form, and bodies are compared as they are: members of one name, numbers that a double would merge
//! with their neighbours, text that is no JSON.

mod canonical;
mod container;
mod number;
mod order;
mod path;
mod pieces;
mod text;

pub use canonical::canonical;
pub(crate) use canonical::comparable;
pub use path::{JsonPath, MalformedPath};
