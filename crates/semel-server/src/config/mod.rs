//! From a `semel.toml`, and what the command line said, to the settings of a claim server.
//!
//! - [`server`](ServerMeaning): what a file means for a server, and a file that means the same.
//! - `tokens`: a file of its own, with who may ask.

mod server;
mod tokens;

pub use server::{ServerMeaning, ServerOverrides, server};
pub use tokens::tokens;
