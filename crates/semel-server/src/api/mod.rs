//! The claim API: JSON over HTTP, for workers in every language.
//!
//! - [`router`]: which path is answered by what. [`problem`]: how a request is refused. `body`: strict JSON, both ways.
//! - `claim`, `resume`, `settle`: what workers ask. `wire`: what goes over the wire, as types. `each`: many asks in few swaps.
//! - `admit`: whether a caller may ask at all. `permit_text`: a permit that another server can go on with. `granted`: the permits that this one granted.
//! - `records`, `list`, `stats`, `pipelines`: what people and tools look at. `operators`: what they do. `query`: strict URLs.
//! - `events`: what happens now. `openapi`, `docs`: all of this described, for programs and for people.
//! - [`state`](ApiState): what is kept between requests.

mod admit;
mod body;
mod claim;
#[cfg(feature = "openapi")]
mod docs;
mod each;
mod events;
mod list;
#[cfg(feature = "openapi")]
mod openapi;
mod operators;
mod permit_cache;
mod permit_text;
mod pipelines;
pub mod problem;
mod query;
mod records;
mod resume;
mod router;
mod settle;
mod state;
mod stats;
mod wire;

pub use problem::Problem;
pub use router::router;
pub use state::ApiState;
