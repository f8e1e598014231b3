//! The service behind the proxy: it counts what it is asked, and keeps the bytes that it was asked with.
//!
//! - [`service`]: listens and answers. [`ledger`]: what it was asked. [`request`]: how it reads.
//! - [`strict`]: what a request must look like that everybody reads the same way.

mod ledger;
mod request;
mod service;
mod strict;

pub use ledger::{Ledger, Seen};
pub use service::{HANG, Line, SLOW, Upstream};
