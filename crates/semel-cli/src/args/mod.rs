//! Arguments in two steps: what was typed, then what it means.
//!
//! - [`root`]: the command as a whole. [`place`]: which store. [`refused`]: what is said to arguments that mean nothing.
//! - [`keys`], [`tools`], [`transfer`], [`bench`], [`file`], [`proxy`], [`demo`]: each command's own arguments.

mod bench;
mod demo;
mod file;
mod keys;
mod place;
mod proxy;
mod refused;
mod root;
mod tools;
mod transfer;

pub(crate) use root::{Command, definition, parse};
