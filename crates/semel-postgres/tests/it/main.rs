//! The store on a real server.

mod conformance;
mod server;
