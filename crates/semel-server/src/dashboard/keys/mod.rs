//! Keys: to find one, to look at its life, to settle it.
//!
//! - `filter`: which keys a list shows. `search`: a page of them. `bulk`: one action on many of them.
//! - `detail`: one record, if this visitor may see it, and its page. `timeline`: its life. `content`: what is in its outcome.
//!   `response`: an HTTP response in it.
//! - `settle`: says what an action means, asks, and does it. `requeue`: a dead letter, and how it is sent back.

mod bulk;
mod content;
mod detail;
mod filter;
mod requeue;
mod response;
mod search;
mod settle;
mod timeline;

pub(super) use bulk::{act_on_many, confirm_many, select, select_all, selectable};
pub(super) use content::download;
pub(super) use detail::one;
pub(super) use filter::KeyFilter;
pub(super) use requeue::{confirm_requeue, requeue};
pub(super) use search::{SORT_TIME, search, sorted_foot};
pub(super) use settle::{confirm_release, confirm_resolve, release, resolve};
