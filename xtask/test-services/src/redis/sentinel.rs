//! A sentinel: watches a Redis with a replica, and promotes the replica when the master is gone.

use std::path::Path;

use anyhow::{Context, Result};

use super::node::Node;
use super::server::Redis;
use crate::place::Place;
use crate::poll;

/// A sentinel with a folder and a port of its own. Dropped, it is stopped, and its folder gone.
#[derive(Debug)]
pub struct Sentinel {
    node: Node,
}

impl Sentinel {
    /// What the sentinel calls the master.
    pub const MASTER: &str = "semel";

    /// Starts one that watches this master, and waits until it knows the master's replica. A master that does not answer
    /// for a second is gone, and one sentinel is enough to say so.
    pub fn start(master: &Redis) -> Result<Self> {
        Self::watch(master.port(), "")
    }

    /// The same for a master on this port, with lines of its own in its file.
    pub(super) fn watch(master: u16, own: &str) -> Result<Self> {
        let name = Self::MASTER;
        let node = Node::start_as(Place::take, &["--sentinel"], |place| {
            let (port, folder) = (place.port, place.folder.display());
            format!(
                "port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor {name} 127.0.0.1 {master} 1\n\
                 sentinel down-after-milliseconds {name} 1000\nsentinel failover-timeout {name} 5000\n{own}"
            )
        })?;
        let sentinel = Self { node };
        poll::until("a sentinel to find the replica", || {
            let replicas = sentinel.ask(&["SENTINEL", "REPLICAS", name])?;
            Ok(replicas.iter().any(|word| word == "master-link-status").then_some(()))
        })?;
        Ok(sentinel)
    }

    /// Where it is, and what it calls the master: `redis+sentinel://127.0.0.1:PORT/semel`.
    pub fn url(&self) -> String {
        format!("redis+sentinel://127.0.0.1:{}/{}", self.port(), Self::MASTER)
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.node.port()
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.node.folder()
    }

    /// Sends one command, as [`Redis::ask`] does.
    pub fn ask(&self, words: &[&str]) -> Result<Vec<String>> {
        self.node.ask(words)
    }

    /// The port of the master, as far as it knows.
    pub fn master(&self) -> Result<u16> {
        let address = self.ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", Self::MASTER])?;
        Ok(address.get(1).context("the sentinel knows no master")?.parse()?)
    }

    /// Waits until the master is another one than this.
    pub fn until_master_is_not(&self, port: u16) -> Result<u16> {
        poll::until("a sentinel to promote the replica", || {
            let master = self.master()?;
            Ok((master != port).then_some(master))
        })
    }
}
