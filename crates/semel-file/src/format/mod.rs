//! What the bytes of the files mean. Written down for readers of other languages in `docs/file-format.md`.
//!
//! - [`identity`]: `semel.store`, which names the store and its format.
//! - [`header`]: how a segment begins. [`frame`]: one record, or a note of the log about itself.
//! - [`walk`]: the frames of a segment, one after the other. [`hint`]: what a sealed segment has alive, for a fast start.
//! - [`tail`]: `semel.tail`, how far the log was acknowledged.
//! - [`field`]: numbers in bytes. [`name`]: which file is which.

pub(crate) mod field;
pub(crate) mod frame;
pub(crate) mod header;
pub(crate) mod hint;
pub(crate) mod identity;
pub(crate) mod name;
pub(crate) mod tail;
pub(crate) mod walk;
