//! `semel demo`: payments by clients that lose answers and ask again, without semel and with it.
//!
//! - [`command`]: both runs, and what came of them. [`account`]: that as a table, and whether it is as it should be.
//! - [`bank`]: a payment API that charges a counter, and has bad moments. [`customer`]: a client that has them, too, and retries.
//! - [`dice`]: who has which bad moment: the same for the same seed. [`wire`]: one request on one connection.
//! - [`front`]: the proxy before the API.

mod account;
mod bank;
mod command;
mod customer;
mod dice;
mod front;
mod wire;

pub(crate) use command::{Demo, run};
