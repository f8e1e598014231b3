//! semel on PostgreSQL, beside the pattern that is written for it again and again, and a published crate of that kind.
//!
//! - [`command`](run): the order of things.
//! - [`per_call`]: upsert, then select when no row came back, then update; [`pool`]: its connections.
//! - [`cratestack`]: the store of cratestack-sqlx.

mod command;
mod cratestack;
mod per_call;
mod pool;
#[cfg(test)]
mod tests;

pub(crate) use command::run;
