//! For the day when a store does not open: what is whole, what is damaged, and a copy of what is whole.
//!
//! - [`verify`](verify()): reads every byte and changes none. [`repair`](repair()): copies what is whole into a new store.
//! - [`Findings`]: what was found. `survey`: the reading that both do.

mod findings;
mod repair;
mod survey;

pub use findings::{Damage, Findings, verify};
pub use repair::repair;
