//! Side-by-side measurements of semel and of what projects write themselves.
//!
//! # Layout
//!
//! - [`memory`], [`file`], [`servers`] (PostgreSQL and Redis), [`http`], [`claims`] (the claim server) and [`stream`]: one
//!   measurement each. It says who is measured, how one window is driven, which bars are drawn, and the words of its page.
//! - [`report`]: what all of them share: rows of numbers, interleaved rounds, and the page as markdown, SVG and JSON.
//! - [`contestants`] and [`databases`]: who is measured through the same calls. [`inputs`]: what all of them are given.
//! - [`callers`]: many callers of a contestant for a while. [`clients`]: many connections to a server for a while.
//! - [`process`]: second processes. [`folder`]: where stores are made. [`timing`]: real time and processor time.
//!   [`counting`]: an allocator that can count. [`args`]: the command line.

mod args;
mod callers;
mod claims;
mod clients;
mod contestants;
mod counting;
mod databases;
mod file;
mod folder;
mod http;
mod inputs;
mod memory;
mod process;
mod report;
mod servers;
mod stream;
mod timing;

use std::process::ExitCode;

use args::Command;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

fn main() -> ExitCode {
    let done = match args::parse() {
        Command::Memory(args) => memory::run(&args),
        Command::File(args) => file::run(&args),
        Command::Postgres(args) => servers::run_postgres(&args),
        Command::Redis(args) => servers::run_redis(&args),
        Command::Http(args) => http::run(&args),
        Command::Stream(args) => stream::run(&args),
        Command::Server(args) => claims::run(&args),
        Command::ClaimsEcho { port } => claims::run_echo(port),
        Command::HttpServe { layer, location, port } => http::run_server(layer, &location, port),
        Command::FileTask(args) => file::run_task(&args),
        Command::Footprint { contestant, keys } => memory::run_footprint(&contestant, keys),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
