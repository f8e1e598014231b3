//! Carries the machine's decisions to a store, and what a run has to say back.
//!
//! - [`semel`](Semel): the handle that callers hold; [`builder`](SemelBuilder): how it is to be.
//! - [`ask`](Claim): what a caller wants; [`decision`](Decision): what it is told.
//! - [`claim`]: `claim`, `record_once`, `claim_all`; [`permit`](Permit): complete, release, renew, steps, derive.
//! - [`once`](Once): the whole cycle around a function; [`heartbeat`](Heartbeat): the lease while it runs.
//! - [`wait`]: waiting for the running caller; [`sweep`](Sweeper): forgetting what is past its time.
//! - [`carry`]: the loop from ruling to swap and back; [`batch`]: swaps of many callers in one round trip.
//! - [`handed`](PermitParts): permits that go to another process.
//! - [`apart`](Apart): asks that the application carries itself, inside its own transaction.
//! - [`driven`]: what makes all of it safe to cancel; [`duplicates`] and [`replays`]: what costs no write.

#![expect(clippy::disallowed_methods, reason = "the engine measures time, waits, and starts tasks")]

mod apart;
mod ask;
mod batch;
mod builder;
mod carry;
mod claim;
mod claim_all;
mod decision;
mod driven;
mod duplicates;
mod handed;
mod heartbeat;
mod inspect;
mod offset;
mod once;
mod permit;
mod replays;
mod semel;
mod steps;
mod sweep;
mod wait;

pub use apart::Apart;
pub use ask::{Claim, Probed};
pub use builder::SemelBuilder;
pub use claim_all::ClaimedAll;
pub use decision::{Busy, Decision, Held, Mismatch, RecordedOnce, Replay};
pub use handed::PermitParts;
pub use heartbeat::Heartbeat;
pub use once::{Once, OnceError};
pub use permit::Permit;
pub use semel::Semel;
pub use sweep::{SweepReport, Sweeper, SweeperBuilder};
