//! The embedded store of semel: a folder, and every promise survives `kill -9` and power loss.
//!
//! ```
//! use semel::{Key, Once, Semel};
//! use semel_file::FileStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path().join("semel-data");
//! let semel = Semel::new(FileStore::open(&folder)?);
//! let key = Key::new("charge", "order-1042")?;
//! let charge = |_permit| async { Ok::<_, std::io::Error>("ch_1".to_string()) };
//! assert!(matches!(semel.once(&key, &4_200, charge).await?, Once::Ran(_)));
//! drop(semel);
//!
//! // Another day, another process: the charge is not made again.
//! let semel = Semel::new(FileStore::open(&folder)?);
//! assert!(matches!(semel.once(&key, &4_200, charge).await?, Once::Replayed(id) if id == "ch_1"));
//! # Ok(())
//! # }
//! ```
//!
//! An append-only log in segments, written by one thread in runs: however many callers wait, they share one write and one
//! sync. An index in memory, less than 48 bytes a key, says where each record is. Records die in about the order in which they were
//! written, so room comes back a whole segment at a time.
//!
//! # Layout
//!
//! - `store`: the four methods. `builder`: how a store is to be. `recovery`: from files to a store that may answer.
//!   `loader`: the index, from hints.
//! - `writer`: asks in, runs on disk, answers out. `sweeper`: forgets what is past its keep. `reader`: records from where the index says they are. `blocking_reader`: reads
//!   that have to wait for the disk. `visit`: all records in the order of the log.
//! - `index`: where every record is. `log`: the segments, and what keeps them in order. `format`: what the bytes mean.
//! - [`check`]: for the day when a store does not open.
//! - [`disk`]: the few things asked of a disk. `clock`, `health`, `error`: time that never runs backwards, whether the
//!   store still works, and what to do if not.

mod blocking_reader;
mod builder;
pub mod check;
mod clock;
pub mod disk;
mod error;
mod format;
mod health;
mod index;
mod loader;
mod log;
mod reader;
mod reclaimer;
mod recovery;
mod store;
mod sweeper;
mod threads;
mod visit;
mod writer;

pub use builder::FileStoreBuilder;
pub use store::FileStore;
pub use visit::Visited;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
