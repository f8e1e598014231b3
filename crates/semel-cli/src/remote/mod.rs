//! `--store http://HOST:PORT`: the store of a running server, read and acted on through it. So a folder can be looked into while a
//! process holds it.
//!
//! - [`server`]: a running server, and what the caller may do there. [`token`]: who asks. [`client`]: requests and answers, and what it means if there is none. [`problem`]: refusals in words.
//! - [`store`]: the store as every command reads it. It never swaps.
//! - [`actions`]: what changes records goes through the server's own routes, with its audit log and its version guards.

mod actions;
mod client;
mod problem;
mod server;
mod store;
mod token;

pub(crate) use server::Server;
pub(crate) use token::Token;
