//! One Redis server, and replicas of it.

use std::path::Path;

use anyhow::Result;

use super::node::AppendFsync;
use super::node::Node;
use crate::place::Place;

/// A Redis server with a folder and a port of its own. Dropped, it is stopped, and its folder gone.
#[derive(Debug)]
pub struct Redis {
    node: Node,
}

impl Redis {
    /// Starts a server that appends every write to a file, synced as told, and that evicts nothing.
    pub fn start(fsync: AppendFsync) -> Result<Self> {
        Self::start_with(&[("appendfsync", fsync.word())])
    }

    /// Starts a server that syncs before it answers, with settings of your own, as `redis.conf` takes them.
    pub fn start_with(settings: &[(&str, &str)]) -> Result<Self> {
        Ok(Self { node: Node::start(Place::take, settings)? })
    }

    /// Where it is: `redis://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.node.port()
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.node.folder()
    }

    /// Sends one command. The reply's texts and numbers come in their order, however they are nested; nil is left out.
    pub fn ask(&self, words: &[&str]) -> Result<Vec<String>> {
        self.node.ask(words)
    }

    /// Kills it and whatever it started.
    pub fn kill(&mut self) -> Result<()> {
        self.node.kill()
    }

    /// Starts it again on the same folder and port, and waits until it has read its file and answers.
    pub fn resume(&mut self) -> Result<()> {
        self.node.resume()
    }

    /// Stops it where it is: it answers nothing, and its connections stay open.
    pub fn freeze(&self) -> Result<()> {
        self.node.freeze()
    }

    /// Lets it go on after [`freeze`](Self::freeze).
    pub fn thaw(&self) -> Result<()> {
        self.node.thaw()
    }

    /// Makes a replica of this server, and waits until it follows.
    pub fn replica(&self) -> Result<Self> {
        self.replica_with(&[])
    }

    /// The same with settings of your own.
    pub fn replica_with(&self, settings: &[(&str, &str)]) -> Result<Self> {
        let master = format!("127.0.0.1 {}", self.port());
        let mut all = vec![("replicaof", master.as_str())];
        all.extend(settings);
        let replica = Self::start_with(&all)?;
        replica.node.until_replication("master_link_status:up")?;
        Ok(replica)
    }

    /// Makes a replica a master: it follows nobody any more.
    pub fn promote(&mut self) -> Result<()> {
        self.ask(&["REPLICAOF", "NO", "ONE"])?;
        self.node.until_replication("role:master")
    }
}
