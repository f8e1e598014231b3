//! Side-by-side measurements of semel and of what projects write themselves.
//!
//! # Layout
//!
//! - [`args`]: what was typed.
//! - [`inputs`]: what every contestant is given, the same for all.
//! - [`contestants`]: the engine, the memory store alone, and two maps: as usually written, and lean.
//! - [`memory`]: the measurement itself: rates, bytes a record, latency at the bound, and the bars.
//! - [`report`]: the numbers as a table, a chart and JSON.
//! - [`counting`]: an allocator that can count, for bytes a record.

mod args;
mod contestants;
mod counting;
mod inputs;
mod memory;
mod report;
mod stopwatch;

use std::process::ExitCode;

use args::Command;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

fn main() -> ExitCode {
    let done = match args::parse() {
        Command::Memory(settings) => memory::run(&settings),
        Command::Footprint(ask) => memory::footprint_of_this_process(&ask),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
