//! Keys: to find one, to look at its life, to settle it.
//!
//! - `search`: what was searched for, and a page of what was found.
//! - `detail`: one record, if this visitor may see it, and its page. `timeline`: its life. `content`: what is in its outcome.
//! - `settle`: says what an action means, asks, and does it.

mod content;
mod detail;
mod search;
mod settle;
mod timeline;

pub(super) use content::download;
pub(super) use detail::one;
pub(super) use search::search;
pub(super) use settle::{confirm_release, confirm_resolve, release, resolve};
