//! HTTP for tests and proofs: a client that sees bytes, a service that records what reaches it, and the real binary as a
//! child process. Everything is on loopback.
//!
//! # Layout
//! - [`Client`]: one raw connection of HTTP/1.1; [`Request`], [`Answer`]: what it sends and reads; [`blocking`]: the same
//!   client without a runtime.
//! - [`frames`]: HTTP/2, written by hand.
//! - [`Upstream`]: a service that counts and records requests, answers slowly, never, or as a script says.
//! - [`hostile`]: an upstream that sends every oddity of framing, and what may become of it.
//! - [`Program`]: a child process. [`Proxy`], [`Server`]: `semel proxy` and `semel serve`; [`Token`]: for callers of a server.
//! - [`Browser`], [`Page`]: Chromium without a window.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a test that cannot go on should say so; lengths fit into memory"
)]

mod answer;
pub mod blocking;
mod browser;
mod buffered;
pub mod client;
pub mod frames;
pub mod hostile;
mod program;
mod proxy;
mod request;
mod server;
mod token;
mod upstream;
mod wait;

pub use answer::{Answer, Ending, answers};
pub use browser::{Browser, Page, Screen};
pub use client::{Client, Goodbye};
pub use program::Program;
pub use proxy::Proxy;
pub use request::{Request, encoded};
pub use server::Server;
pub use token::{Role, Token};
pub use upstream::{HANG, Ledger, Line, SLOW, Seen, Upstream};
pub use wait::{soon, until, until_blocking};
