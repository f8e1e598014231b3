//! `cargo xtask crash`: kills a store over and over, and cuts its power, and looks whether it kept its word.
//!
//! - `command`: what can be asked for; `kill`: SIGKILL; `soak`: the same for hours; `power`: power cuts; `disk`: cuts and
//!   damage on a simulated disk.
//! - `servers`: the same for stores on a server, which is killed, stopped, or replaced by its standby.
//! - `consumer`: a consumer of streams is killed between every two of its steps.
//! - `line`: what the victim says; `ledger`: what it may be held to; `entry`: for one key; `fault`: what is wrong.
//! - `victim`: the process that is killed; `rig`: file systems whose power can be cut, and the cuts.
//! - `place`: a folder for one campaign.

mod command;
mod consumer;
mod disk;
mod entry;
mod fault;
mod kill;
mod ledger;
mod line;
mod place;
mod power;
mod rig;
mod servers;
mod soak;
mod victim;

pub use command::{Args, run};
