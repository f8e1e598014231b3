//! The suite that proves a store of semel, for the stores that come with it and for yours.
//!
//! ```
//! use semel::store::MemoryStore;
//!
//! async fn open() -> MemoryStore {
//!     MemoryStore::new()
//! }
//! semel_testkit::conformance!(open);
//! ```
//!
//! # Layout
//!
//! - [`conformance`](mod@conformance): what every store promises, one named function a promise.
//! - [`saboteur`]: stores that break a promise each, to prove that the suite would notice.
//! - [`simulator`]: whole worlds of processes, crashes and bad networks, each from one seed.
//! - [`faulty`](FaultyStore): a store behind a bad network.
//! - [`pausing`](PausingStore): a store whose calls stop where a test says, to force an interleaving of two actors.
//! - [`history`]: whether what callers saw of one key could have happened one after the other, also for many clients of a
//!   store that is far away.
//! - [`lossy`]: a way to a server on which answers are lost, and what must hold when they are.
//! - [`endurance`]: a load that goes on while its store vanishes and comes back, and what must be there afterwards.
//! - [`sweeping`]: sweepers and claimers at the same time.
//! - [`format_1`]: what semel 0.1 wrote, and what must come of it.
//! - [`clock`](ManualClock): a clock that a test moves by hand.
//! - [`sample`]: keys and asks to try a store with.
//! - [`delegate!`]: the methods that a wrapper of a store passes on.
//! - [`drive`](drive()): the shortest way from the machine to a store.
//! - `run`: what the tests that `conformance!` makes run on.
#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of tests are small, and one that overflows fails its test, as it should"
)]

mod clock;
pub mod conformance;
mod delegate;
mod drive;
pub mod endurance;
mod faulty;
pub mod format_1;
pub mod history;
pub mod lossy;
mod pausing;
mod run;
pub mod saboteur;
pub mod sample;
pub mod simulator;
pub mod sweeping;

pub use clock::ManualClock;
pub use drive::drive;
pub use faulty::{Call, Fault, FaultyStore};
pub use pausing::{MadeCall, PausingStore, Point, Stop, StopAt};

#[doc(hidden)]
pub mod __private {
    pub use crate::run::keeps;
}
