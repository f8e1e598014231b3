//! A store that looks like one in use, and pictures of every page.

mod data;
mod pictures;
mod streams;

pub use data::{Scene, fill};
pub use pictures::{PICTURE_STEPS, pictures};
