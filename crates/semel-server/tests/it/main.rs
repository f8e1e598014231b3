//! What the binaries are made of, as they use it.

#![cfg(test)]

mod config;
