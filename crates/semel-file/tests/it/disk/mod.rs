//! A disk that tears, reorders and loses whatever was not synced, and one that fails when it is told to.
//!
//! - `image`: a whole disk as a value; `content` one file of it, `names` what they are called.
//! - `survival`: what a power cut leaves of changes that were not synced.
//! - `operation`: what is done to a disk; `simulated`: the disk that remembers it.
//! - `failing`: any disk, with an error at the nth call; `stopping`: any disk, on which named calls wait for the test;
//!   `refusing`: any disk that refuses a step of making the next segment.
//! - `itself`: the disk is tested before anything is tested with it.

mod content;
mod failing;
mod image;
mod itself;
mod names;
mod operation;
mod refusing;
mod simulated;
mod stopping;
mod survival;

pub(crate) use failing::{Calls, Failed, FailingDisk, Failure};
pub(crate) use image::Image;
pub(crate) use operation::Operation;
pub(crate) use refusing::{Refusal, RefusingDisk, Step};
pub(crate) use simulated::{SimulatedDisk, Syncs};
pub(crate) use stopping::{Call, Stop, StoppingDisk};
pub(crate) use survival::Survival;
