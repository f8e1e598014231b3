//! The browser starts, does what a person does, and notices what must not happen.

mod browser;
