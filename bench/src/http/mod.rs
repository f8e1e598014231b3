//! The measurement over HTTP: a bare handler, the same behind layers that keep keys, and proxies before it.
//!
//! - [`command`](run): the order of things. [`entry`]: who is measured, doing what.
//! - [`api`]: the handler, the same for all. [`layers`]: what is put around it. [`serve`](run_server): a process with one of them.
//! - [`process`]: the processes, [`nginx`] and [`proxy`] among them. [`cpu`]: what they take of the processor.
//! - [`wire`]: requests and answers as bytes. [`load`]: connections that send one and check the other.
//! - [`rounds`]: windows of all of them, interleaved. [`results`]: the numbers. [`bars`]: what they must reach.
//!   [`mod@markdown`] and [`panels`]: how they are shown.

mod api;
mod bars;
mod command;
mod cpu;
mod entry;
mod layers;
mod load;
mod markdown;
mod nginx;
mod panels;
mod process;
mod proxy;
mod results;
mod rounds;
mod serve;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use command::run;
pub(crate) use cpu::Cpu;
pub(crate) use layers::Layered;
pub(crate) use process::{Server, free_port};
pub(crate) use proxy::program as semel_program;
pub(crate) use serve::run as run_server;
pub(crate) use wire::{Head, shown};
