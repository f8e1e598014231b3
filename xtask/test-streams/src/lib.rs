//! What the tests of all sources share: what a broker must keep, and troubles that a consumer must live through.
//!
//! # Layout
//! - [`feed`]: a broker in this process, with all the faults that brokers have.
//! - [`ask`]: a source asked for what it should have, within bounds; [`effects`]: effects that are counted, and consumers
//!   that have them.
//! - [`promises`]: what every broker whose streams many readers share must keep; [`way`]: a way to it that can be cut.
//! - [`consuming`]: the consumer over a broker that is killed.
//! - [`chaos`]: troubles in the middle of everything.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "what overflows, is missing, or is told what no test foresees, fails a test, as it should"
)]

pub mod ask;
pub mod chaos;
pub mod consuming;
pub mod effects;
pub mod feed;
pub mod promises;
pub mod way;
