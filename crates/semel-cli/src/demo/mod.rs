//! `semel demo`: payments by clients that lose answers and ask again, without semel and with it.
//!
//! - [`command`]: both runs, and what came of them. [`account`]: that as a table, and whether it is as it should be.
//! - [`bank`]: a payment API that charges a counter, and has bad moments. [`client`]: a client that has them, too, and retries.
//! - [`dice`]: who has which bad moment: the same for the same seed.

mod account;
mod bank;
mod client;
mod command;
mod dice;

pub(crate) use command::DemoArgs;
