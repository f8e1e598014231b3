//! The programs that crash campaigns kill, or whose server they kill. Each drives a store and writes to its output what was
//! acknowledged; [`crash`](crate::crash) reads that and judges the store.
//!
//! - `command`: `proofs victim …`. `opened`: a store, and every record in it. `caller`: one of many callers;
//!   `ask`: asks until there is an answer; `choice`: what a caller does next. `payload`: outcomes whose every byte can
//!   be checked. `say`: the lines. `liar`: a disk that lies about its syncs. `transaction`: effect and receipt in one.

mod ask;
mod caller;
mod choice;
mod command;
mod liar;
mod opened;
mod payload;
mod say;
mod transaction;

pub use command::{Victim, run};
