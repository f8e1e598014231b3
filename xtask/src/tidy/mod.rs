//! `cargo xtask tidy`: what neither the compiler nor clippy can say. Each rule is a function from a file to its faults.

mod command;
mod manifests;
mod text;

pub(crate) use command::{Args, run};
