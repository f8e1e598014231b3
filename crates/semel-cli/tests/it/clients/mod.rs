//! Workers in other languages, before the running server.
//!
//! - `suites`: each client's own tests. `takeover`: a key that goes through three languages.
//! - `serving`: the server. `programs`: Python, TypeScript and Node, and the clients' folders.

mod programs;
mod serving;
mod suites;
mod takeover;
