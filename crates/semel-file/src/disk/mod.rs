//! The few things that the store asks of a disk, and the folder that does them.
//!
//! - [`contract`](self): what a disk owes; everything that may go wrong goes wrong here.
//! - `folder`: a folder of the machine's file system, held by one process at a time. `lock`: the lock that holds it.

mod contract;
mod folder;
mod lock;

pub use contract::{Disk, DiskFile};
pub use folder::Folder;
