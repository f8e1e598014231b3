//! A load that goes on while its store vanishes and comes back, and a ledger of what it was told.
//!
//! Callers claim, complete and release, and write down every answer that they were given. Whatever the store went through
//! meanwhile, what it acknowledged must be there afterwards, no run may have been granted twice, and no key may be stuck.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> semel::Result<()> {
//! use std::{sync::Arc, time::Duration};
//! use semel::store::{MemoryStore, Store};
//! use semel_testkit::endurance::Endurance;
//!
//! let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
//! let load = Endurance::start(&store, 1, 8)?;
//! load.until_acknowledged(500, Duration::from_secs(10)).await;
//! // Here the server would be killed and started again, as often as you like.
//! let mut ledger = load.stop().await;
//! let losses = ledger.verify(&store).await?;
//! assert!(losses.are_none(), "{losses}");
//! # Ok(())
//! # }
//! ```
//!
//! - [`load`](Endurance): the callers, from start to stop. `caller`: what one of them does.
//! - [`ledger`](Ledger): what all of them were told, and how that is held against a store. `account`: the page of one key.
//! - `judge`: what must not be, between an account and a record. [`losses`](Losses): how often it was.

mod account;
mod caller;
mod judge;
mod ledger;
mod load;
mod losses;

pub use ledger::Ledger;
pub use load::Endurance;
pub use losses::Losses;
