//! The measurements from outside, with tiny numbers: that they run to their end and name everyone.

#![cfg(test)]

mod file;
mod http;
mod servers;
mod stream;
