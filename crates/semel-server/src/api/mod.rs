//! The claim API: JSON over HTTP, for workers in every language.

pub mod problem;
mod router;

pub use router::router;
