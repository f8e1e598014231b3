//! `cargo xtask crash consumer`: a consumer is killed between every two of its steps, over and over.
//!
//! - `proof`: all scenes, and the controls that must be found out. `scene`: which store, source and handler, and where the victim dies.
//! - `play`: one scene, life after life of the victim. `judge`: what is found after a death, and what may be found.

mod judge;
mod play;
mod proof;
mod scene;

pub(super) use proof::run;
