//! From a URL to servers that answer: connections, which server is the master of what, and what may be asked again.
//!
//! No command is ever sent twice by the driver. Here, one is sent again only where the server's own words prove that
//! nothing happened, or where it changes nothing.

mod batch;
mod client;
mod cluster;
mod map;
mod node;
mod reconnecting;
mod sentinel;
mod sentinel_watch;
mod servers;
mod topology;

pub(crate) use batch::{Command, Purpose};
pub(crate) use node::Node;
pub(crate) use servers::Servers;
