//! A way to a server on which answers are lost, and what must hold when they are.
//!
//! A reply that was lost is unknown, never failed. The proxy stands between a store's client and its server, whatever they
//! speak: it hands a request on and, when the server has answered, cuts the connection instead of handing the answer back.
//!
//! - [`proxy`](LossyProxy): the way, and what is to go wrong on it. `link`: one connection.
//! - [`lost_replies`](lost_replies()): every command, one after the other, with its answer lost and its request dropped.
//! - [`lost_at_random`]: many callers at once, with one answer in some lost, and a [ledger](crate::endurance) of what they were told.
//! - `trial`: what a command is tried with. `command`: how each is tried. `observed`: whether a lost swap had taken.
//! - [`report`](LostReplies): what came of it.

mod command;
mod link;
mod lost_replies;
mod observed;
mod proxy;
mod report;
mod trial;

pub use lost_replies::{lost_at_random, lost_replies};
pub use proxy::LossyProxy;
pub use report::{LostReplies, Tried};
