//! `semel`, the command line of semel.
//!
//! # Layout
//!
//! - [`args`]: what was typed, and what it means.
//! - [`store`]: which stores this binary can open, and what their addresses look like.
//! - [`mod@bench`]: `semel bench`, what a store can do on this machine.
//! - [`mod@file`]: `semel file`, for the day when an embedded store does not open.

mod args;
mod bench;
mod file;
mod store;

use std::process::ExitCode;

use args::Command;

fn main() -> ExitCode {
    let done = match args::parse() {
        Command::Bench(plan) => bench::run(&plan),
        Command::File(look) => file::run(&look),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
