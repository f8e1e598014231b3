//! What is put around the handler, each as its own documentation says.
//!
//! - [`layered`](Layered): the list. [`semel`]: the layer of this project.
//! - [`axum_idempotent`] and [`cratestack`]: published ones; [`map`]: a store for the latter that is quicker than its own.

mod axum_idempotent;
mod cratestack;
mod layered;
mod map;
mod semel;

pub(crate) use layered::Layered;
pub(super) use layered::router;
