//! Carries the machine's decisions to a store.
//!
//! - [`semel`](Semel): the handle, with every public method; [`builder`](SemelBuilder): its builder.
//! - [`claim`](Claim): what a caller asks for and gets; [`permit`](Permit): what a run does until it ends.
//! - [`once`](Once): the whole cycle around a function.
//! - [`swap_loop`]: rule, swap, and rule again if stale; [`batcher`]: swaps of many callers in one round trip, and the
//!   task that owns what is in flight; [`together`]: several asks of one caller in one batch.
//! - [`replay_cache`], [`duplicate_counts`], [`waiters`]: done records in memory, counts that are written seldom, callers
//!   that wait.
//! - [`upkeep`]: what an engine does by itself; [`sweeper`]: removing what is past its retention.
//! - [`operator`]: release and resolve just what an operator was shown.

#![expect(clippy::disallowed_methods, reason = "the engine measures time, waits, and starts tasks")]

mod batcher;
mod builder;
mod claim;
mod duplicate_counts;
mod once;
mod operator;
mod permit;
mod replay_cache;
mod semel;
pub mod swap_loop;
mod sweeper;
mod together;
mod upkeep;
mod waiters;

pub use builder::SemelBuilder;
pub use claim::{Busy, Claim, ClaimedAll, Decision, Held, Mismatch, Probed, RecordedOnce, Replay};
pub use once::{Once, OnceError};
pub use operator::OperatorAnswer;
pub use permit::{Permit, PermitParts, Renewal};
pub use semel::Semel;
pub use swap_loop::{BoxedRule, BoxedSwapLoop};
pub use sweeper::SweepReport;
pub use upkeep::Heartbeat;
