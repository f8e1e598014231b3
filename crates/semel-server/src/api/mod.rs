//! The claim API: JSON over HTTP, for workers in every language.
//!
//! - `router`: which path is answered by what. [`problem`]: how a request is refused.
//! - `ask`: who asks and what, in strict JSON and strict URLs. `wire`: what goes over the wire, as types.
//! - `claim`, `settle`: what workers ask. `permit_text`: a permit that another server can go on with.
//! - `records`, `stats`, `pipelines`: what people and tools look at. `operators`, `pipeline_actions`: what they do.
//!   `events`: what happens now.
//! - `store`: records exactly as they are kept, for tools that look into the store of a running server.
//! - `openapi`, `docs`: all of this described, for programs and for people.
//! - [`state`](ApiState): what is kept between requests.

mod ask;
mod claim;
#[cfg(feature = "openapi")]
mod docs;
mod events;
#[cfg(feature = "openapi")]
mod openapi;
mod operators;
mod permit_text;
mod pipeline_actions;
mod pipelines;
pub mod problem;
mod records;
mod router;
mod settle;
mod state;
mod stats;
mod store;
mod wire;

pub use problem::Problem;
pub use router::router;
pub use state::ApiState;
