//! A seeded simulation of processes that claim, run, crash and come back, over the real engine.
//!
//! Time is tokio's paused clock, so hours pass in milliseconds; every choice comes from one seed, so the same seed
//! gives the same trace, to the last event. What must never happen is judged on what the store really wrote, not on
//! what callers think.
//!
//! - [`simulate`]: one seed, one world, one [`Report`]; [`simulate_on`]: the same over a store of your own.
//! - `world`: what a seed decides, and the run; `process`: what a process does with its life.
//! - `witness`: sees every write of the processes, and what the work writes to, with or without fences.
//! - `judge`: the promises, held against what was witnessed.
//! - [`Flaw`]: what is broken on purpose, to show that the judge would notice.

mod flaw;
mod judge;
mod process;
mod witness;
mod world;

pub use flaw::Flaw;
pub use judge::Report;
pub use world::StoreClock;
pub use world::{simulate, simulate_on};
