//! Arguments in two steps: what was typed, then what it means.
//!
//! - [`root`]: the command as a whole. [`epilogue`]: the end of its help. [`place`]: which store. [`mod@scope`]: whose. [`refused`]: what is said to arguments that mean nothing.
//! - [`keys`], [`tools`], [`transfer`], [`bench`], [`file`], [`proxy`], [`serve`], [`token`], [`demo`], [`consume`], [`offsets`], [`receipts`]: each command's own arguments.

mod bench;
mod consume;
mod demo;
mod epilogue;
mod file;
mod keys;
mod offsets;
mod place;
mod proxy;
mod receipts;
mod refused;
mod root;
mod scope;
mod serve;
mod token;
mod tools;
mod transfer;

pub(crate) use root::{Command, definition, parse};
