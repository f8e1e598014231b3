//! `semel receipts`: which events a pipeline has processed, put aside, or waits with.
//!
//! [`list`](mod@list) shows them, the newest first; [`change`] is about one of them.

mod change;
mod list;

pub(crate) use change::{Changed, Of, ShowReceipt, record, release, show};
pub(crate) use list::{Receipts, list};
