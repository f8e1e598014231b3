//! semel on Redis: one server, one behind sentinels, or a cluster; many processes, one store.
//!
//! ```no_run
//! use semel::Semel;
//! use semel_redis::RedisStore;
//!
//! # async fn example() -> semel::Result<()> {
//! let semel = Semel::new(RedisStore::connect("redis://127.0.0.1:6379").await?);
//! # let _ = semel;
//! # Ok(())
//! # }
//! ```
//!
//! One script swaps, for every transition: it compares versions, stamps and stores, and knows nothing else. A batch is one
//! call of it, or in a cluster one call a slot, sent to all masters at the same time. The server's clock is the store's.
//! A record's keep is its key's expiration, so Redis deletes it when the keep is over; leases are never left to Redis.
//!
//! What survives a crash is up to the server's settings: [`RedisStore::durability`] is what was found, and
//! [`RedisStore::check`] compares every setting with what the promise needs.
//!
//! # Layout
//!
//! - `store`: the four methods. `swap`, `load`, `sweep`, `scan`: one file each.
//! - `config`: the settings of a store. `url`: the same from a URL.
//! - `connect`: connections, which server is the master of what, and what may be asked again. `error`: whether anything can
//!   have happened.
//! - `script`, `swap.lua`, `sweep.lua`, `rights.lua`: what runs on the server. `names`: what keys are called. `row`: what they
//!   hold. `reply`: what answers mean.
//! - `check`: settings against the promise. `known_settings`: the last check, and whether new claims are refused.
//!   `durability`: what survives a crash.

mod check;
mod config;
mod connect;
mod durability;
mod error;
mod known_settings;
mod load;
mod names;
mod reply;
mod row;
mod scan;
mod script;
mod store;
mod swap;
mod sweep;
mod url;

pub use config::RedisStoreBuilder;
pub use durability::Durability;
pub use semel::store::{Finding, Verdict};
pub use store::RedisStore;

/// The rights that a user of the server's access list needs, as `ACL SETUSER name on >password …` takes them; with another
/// prefix than `semel`, another pattern. `config|get` and `info` only serve to read the settings; sentinels and
/// clusters need theirs as listed.
pub const ACL_RULES: &str = "resetkeys ~semel:* resetchannels -@all +evalsha +script|load +time +get +mget +getrange +set +setrange \
                          +zadd +zcount +zrange +zrangebyscore +zrem +unlink +select +config|get +info +cluster|slots +asking";
