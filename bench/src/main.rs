//! Side-by-side measurements of semel and of what projects write themselves.
//!
//! # Layout
//!
//! - [`args`]: what was typed.
//! - [`inputs`]: what every contestant is given, the same for all.
//! - [`contestants`]: the engine, a store alone, and two maps: as usually written, and lean.
//! - [`databases`]: general embedded databases as contestants, behind one group commit.
//! - [`memory`]: the measurement of the memory store: rates, bytes a record, latency at the bound, and the bars.
//! - [`file`]: that of the durable store: rates, opening, memory, removal, growth, disk, and the bars.
//! - [`servers`]: those of the stores on PostgreSQL and Redis: rates, processor time, and the bars.
//! - [`http`]: that of the layer and the proxy: rates, latency, processor time, and the bars.
//! - [`claims`]: that of the claim server: cycles by single requests and in batches, and the bars.
//! - [`stream`]: that of pipelines: events per second by store and by batch, and the bars.
//! - [`report`]: what all need to show numbers as a table, a chart and JSON.
//! - [`runtime`]: where callers are. [`stopwatch`]: real time and processor time.
//! - [`mod@window`]: many callers for a while.
//! - [`counting`]: an allocator that can count, for bytes a record.

mod args;
mod claims;
mod contestants;
mod counting;
mod databases;
mod file;
mod http;
mod inputs;
mod memory;
mod report;
mod runtime;
mod servers;
mod stopwatch;
mod stream;
mod window;

use std::process::ExitCode;

use args::Command;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

fn main() -> ExitCode {
    let done = match args::parse() {
        Command::Memory(settings) => memory::run(&settings),
        Command::File(settings) => file::run(&settings),
        Command::Postgres(settings) => servers::run_postgres(&settings),
        Command::Redis(settings) => servers::run_redis(&settings),
        Command::Http(settings) => http::run(&settings),
        Command::Stream(settings) => stream::run(&settings),
        Command::Server(settings) => claims::run(&settings),
        Command::ClaimsEcho => claims::run_echo(),
        Command::HttpServe(ask) => http::run_server(&ask),
        Command::FileTask(ask) => file::run_task(&ask),
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
