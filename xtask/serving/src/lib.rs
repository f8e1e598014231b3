//! A running `semel serve`, and those who try it: a real browser, and a fuzzer that reads its OpenAPI document.
//!
//! The server is the real binary, a child of this process, on a port of its own; it is asked over HTTP alone.
//!
//! # Layout
//! - [`Program`]: the binary as a child. [`Server`]: as a claim server; [`Token`]: who may ask it. [`Client`], [`Ask`], [`Answer`]: HTTP as bytes.
//! - [`Browser`], [`Page`]: Chromium without a window.
//! - [`fuzz`]: thousands of requests made from the OpenAPI document, every answer held against it.
//! - [`scene`]: a store that looks like one in use, and pictures of every page.

#![expect(clippy::arithmetic_side_effects, reason = "lengths and counts of what fits into memory")]

mod browser;
pub mod fuzz;
mod program;
pub mod scene;
mod server;

pub use browser::{Browser, Page, Screen};
pub use program::Program;
pub use server::{Answer, Ask, Client, Role, Server, Token, encoded};
