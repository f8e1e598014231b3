//! Requests made from the OpenAPI document, good and bad ones, and every answer held against the same document.
//!
//! - `document`: what is promised. `schema`: whether a value is as promised. `value`: values made from a schema.
//! - `request`: requests made from an operation. [`run`](fuzz): what each answer breaks, and the control.

mod document;
mod request;
mod run;
mod schema;
mod value;

pub use self::run::{Fuzzed, fuzz};
pub use document::{Document, Operation};
pub use run::{Args, run};
