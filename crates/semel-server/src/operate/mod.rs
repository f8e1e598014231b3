//! What operators do to somebody else's record: release it, or resolve it.
//!
//! - [`audited`](release): on behalf of a caller, written down before and after. For the API and the dashboard.
//! - [`settle`](release_in): the act itself, on any store. For the command line.

mod audited;
mod settle;

pub use audited::{release, resolve};
pub use settle::{Settled, release_in, resolve_in};
