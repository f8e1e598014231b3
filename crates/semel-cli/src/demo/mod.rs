//! `semel demo`: payments by clients that lose answers and ask again, without semel, and with a proxy that is killed.
//!
//! - [`command`]: both runs, and what they came to. [`account`]: that as a table, and whether it is as it should be.
//! - [`bank`]: a payment API that charges a counter, and has bad moments. [`client`]: a client that has them, too, and retries.
//! - [`proxy_process`]: `semel proxy` as a process, killed in the middle of charges and started again.
//! - [`dice`]: who has which bad moment: the same for the same seed.

mod account;
mod bank;
mod client;
mod command;
mod dice;
mod proxy_process;

pub(crate) use command::DemoArgs;
