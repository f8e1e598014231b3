//! `cargo xtask tidy`: style as a test. Each rule is a function from a file to its faults.
//!
//! - [`command`]: walks the tree, applies every rule, prints what is wrong.
//! - [`source`]: a file as the rules see it, with and without its comments and literals.
//! - [`exceptions`]: what is let through, and why; an exception that lets nothing through is a fault itself.
//! - [`shape`], [`names`], [`words`], [`purity`], [`manifests`]: the rules.

mod command;
mod exceptions;
mod manifests;
mod names;
mod purity;
mod shape;
mod source;
mod words;

pub(crate) use command::{Args, run};
