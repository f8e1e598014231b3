//! Damage: every byte of a log flipped, one at a time.
//!
//! - `log`: a log whose every record is known; `verdict`: what a store may do with it once it is damaged.
//! - `every_byte`: the flips; `control`: stores that the verdict must not let pass.

mod control;
mod every_byte;
mod log;
mod verdict;
