//! The claim API: JSON over HTTP, for workers in every language.

mod router;

pub use router::router;
