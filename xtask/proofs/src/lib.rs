//! Proofs of semel at work, by the real binary, real servers and real disks: `cargo xtask crash`, `prove`, `simulate`,
//! `fuzz-api` and `screenshots` run them, and the tests of every change run a few of each.
//!
//! # Layout
//! - [`crash`]: kills stores, servers and consumers, cuts their power, and judges what is left. [`victims`]: who is killed.
//! - [`attacks`]: on the running proxy and claim server. [`fuzz`]: the claim server against its own OpenAPI document.
//! - [`prove`]: histories and sweeping on real servers, and every attack. [`simulate`]: seeded histories.
//! - [`scene`]: a store that looks like one in use, pictures of every page, and a dashboard to try.

#![expect(clippy::arithmetic_side_effects, reason = "lengths and counts of what fits into memory")]

pub mod attacks;
pub mod crash;
mod dice;
pub mod fuzz;
mod progress;
pub mod prove;
mod release;
pub mod scene;
pub mod simulate;
mod stores;
pub mod victims;
