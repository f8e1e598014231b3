//! `cargo xtask crash consumer`: a consumer is killed between every two of its steps, over and over.
//!
//! - `proof`: all scenes, and the controls that must be found out; `play`: one of them; `world`: what they share.
//! - `scene`: which store, source and handler; `batch`: the events of one go; `life`: one life of the victim.
//! - `look`: what is found after a death; `judge`: what may be found; `deck`: where the victim dies next.

mod judge;
mod play;
mod proof;
mod scene;

pub(super) use proof::run;
