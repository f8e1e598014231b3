//! The browser starts, does what a person does, and notices what must not happen.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so")]

mod browser;
