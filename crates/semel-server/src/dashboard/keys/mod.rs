//! Keys: to find one, to look at its life, to settle it.
//!
//! - `wanted`: what was searched for. `search`: a page of what was found.
//! - `found`: one record, if this visitor may see it. `one`: its page. `life`: its timeline. `content`: what is in its outcome; `pretty`: JSON in
//!   lines.
//! - `confirm`: says what an action means, and asks. `settle`: does it.

mod confirm;
mod content;
mod detail;
mod filter;
mod lookup;
mod pretty;
mod search;
mod settle;
mod timeline;

pub(super) use confirm::{confirm_release, confirm_resolve};
pub(super) use content::download;
pub(super) use detail::one;
pub(super) use search::search;
pub(super) use settle::{release, resolve};
