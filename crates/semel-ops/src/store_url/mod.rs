//! Stores by URL, in one place: `memory:`, `file:PATH`, `postgres://…`, `redis://…`, `redis+cluster://…`.
//!
//! ```
//! use semel::Semel;
//! use semel_ops::store_url::Address;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> semel::Result<()> {
//! let address: Address = "memory:".parse()?;
//! let store = address.open().await?;
//! println!("{address} survives {}", store.survives());
//! let semel = Semel::builder_shared(store.store()).build()?;
//! # let _ = semel;
//! # Ok(())
//! # }
//! ```
//!
//! - [`address`](Address): what was written, read and shown without its password.
//! - [`opened`](Opened): a store, and what tools want to know of it.
//! - [`not_ready`](NotReady): why a store takes no new claims, in a few words. `probe`: small asks that find it out.
//! - `memory`, `file`, `postgres`, `redis`: how each of them is opened and looked at.
//! - [`server`](ServerUrl): a running server, which has its store for itself.

mod address;
mod file;
mod memory;
mod not_ready;
mod opened;
#[cfg_attr(not(feature = "postgres"), path = "no_postgres.rs")]
mod postgres;
mod probe;
#[cfg_attr(not(feature = "redis"), path = "no_redis.rs")]
mod redis;
mod server;

pub use address::{Address, DEFAULT, Url};
pub use not_ready::NotReady;
pub use opened::{Migrated, Opened, OperatedStore, Pending, WakeUps};
pub use server::ServerUrl;
