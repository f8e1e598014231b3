//! A master, its replicas and a sentinel, with a link before each server: the master can be cut off from all or from its peers.

use std::net::Ipv4Addr;

use anyhow::{Context, Result};

use super::sentinel::Sentinel;
use super::server::Redis;
use crate::link::Link;
use crate::poll;

/// The address that servers and the sentinel connect from, so that a link can tell them from clients.
const PEERS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// How often the sentinel asks and says what it knows, in milliseconds: it makes the old master a replica after four such
/// spans, which takes ten seconds and more by default.
const SENTINEL_PERIODS: [&str; 4] = ["info-period", "200", "publish-period", "200"];

/// How many servers there are: a master that replaces another one has a replica at once.
const SERVERS: usize = 3;

/// Three Redis servers, of which one is the master, and a sentinel that watches them. Each server is reached over a link by
/// its peers, by the sentinel and by clients, who learn the port of the link from the sentinel.
#[derive(Debug)]
pub struct RedisWithSentinel {
    servers: Vec<Linked>,
    sentinel: Sentinel,
}

/// A server, and the only way to it that others know.
#[derive(Debug)]
struct Linked {
    server: Redis,
    link: Link,
}

impl RedisWithSentinel {
    /// Starts them with settings of your own for all servers, such as `min-replicas-to-write`, and waits until the replicas
    /// follow and the sentinel knows them. A master that does not answer for a second is taken for gone.
    pub fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let servers = (0..SERVERS).map(|_| Linked::start(settings)).collect::<Result<Vec<_>>>()?;
        let (master, replicas) = servers.split_first().context("there are servers")?;
        for replica in replicas {
            replica.server.ask(&["REPLICAOF", "127.0.0.1", &master.link.port().to_string()])?;
        }
        for replica in replicas {
            replica.until_replication("master_link_status:up")?;
        }
        let sentinel = Sentinel::watch(master.link.port(), &format!("bind-source-addr {PEERS}\n"))?;
        sentinel.ask(&[&["SENTINEL", "DEBUG"][..], &SENTINEL_PERIODS].concat())?;
        let started = Self { servers, sentinel };
        started.until_replicated()?;
        Ok(started)
    }

    /// Where clients ask for the master: `redis+sentinel://127.0.0.1:PORT/semel`.
    pub fn url(&self) -> String {
        self.sentinel.url()
    }

    /// The sentinel.
    pub fn sentinel(&self) -> &Sentinel {
        &self.sentinel
    }

    /// The port that the sentinel names as the master's: that of its link.
    pub fn master_port(&self) -> Result<u16> {
        self.sentinel.master()
    }

    /// The server that the sentinel takes for the master.
    pub fn master(&self) -> Result<&Redis> {
        Ok(&self.named(self.master_port()?)?.server)
    }

    /// The link to that server.
    pub fn master_link(&self) -> Result<&Link> {
        Ok(&self.named(self.master_port()?)?.link)
    }

    /// The server behind this port of a link.
    pub fn server(&self, port: u16) -> Result<&Redis> {
        Ok(&self.named(port)?.server)
    }

    /// Freezes the link to the master for its replicas and for the sentinel: clients still reach it. Returns the port of
    /// its link.
    pub fn isolate_master(&self) -> Result<u16> {
        let port = self.master_port()?;
        self.named(port)?.link.freeze_from(PEERS);
        Ok(port)
    }

    /// Freezes the link to the master for all. Returns the port of the link.
    pub fn freeze_master(&self) -> Result<u16> {
        let port = self.master_port()?;
        self.named(port)?.link.freeze();
        Ok(port)
    }

    /// Mends all links.
    pub fn mend(&self) {
        for linked in &self.servers {
            linked.link.mend();
        }
    }

    /// Waits until the master is another one than that behind this port, and returns the port of its link.
    pub fn until_master_is_not(&self, port: u16) -> Result<u16> {
        self.sentinel.until_master_is_not(port)
    }

    /// Waits until one server is the master, the others follow it, and the sentinel knows all of them.
    pub fn until_replicated(&self) -> Result<()> {
        poll::until("a replica to follow the master that the sentinel names", || {
            let master = self.master_port()?;
            let others = || self.servers.iter().filter(|linked| linked.link.port() != master);
            let follows = |linked: &Linked| {
                linked.has_replication(&format!("master_port:{master}"))
                    && linked.has_replication("master_link_status:up")
            };
            let is_known = || {
                let replicas =
                    self.sentinel.ask(&["SENTINEL", "REPLICAS", Sentinel::MASTER]).unwrap_or_default();
                let with = |name: &str, value: &str| {
                    replicas.windows(2).filter(|pair| pair == &[name, value]).count()
                        == SERVERS.saturating_sub(1)
                };
                with("master-link-status", "ok") && with("flags", "slave")
            };
            let is_master = self.named(master)?.has_replication("role:master");
            Ok((is_master && others().all(follows) && is_known()).then_some(()))
        })
    }

    fn named(&self, port: u16) -> Result<&Linked> {
        let found = self.servers.iter().find(|linked| linked.link.port() == port);
        found.with_context(|| format!("no server has a link on port {port}"))
    }
}

impl Linked {
    fn start(settings: &[(&str, &str)]) -> Result<Self> {
        let peers = PEERS.to_string();
        let own = [("bind-source-addr", peers.as_str()), ("replica-announce-ip", "127.0.0.1")];
        let server = Redis::start_with(&[&own, settings].concat())?;
        let link = Link::to(server.port())?;
        server.ask(&["CONFIG", "SET", "replica-announce-port", &link.port().to_string()])?;
        // Also after a restart.
        server.ask(&["CONFIG", "REWRITE"])?;
        Ok(Self { server, link })
    }

    fn has_replication(&self, line: &str) -> bool {
        let info = self.server.ask(&["INFO", "replication"]).unwrap_or_default();
        info.iter().any(|text| text.lines().any(|found| found == line))
    }

    fn until_replication(&self, line: &str) -> Result<()> {
        poll::until(&format!("`{line}`"), || Ok(self.has_replication(line).then_some(())))
    }
}
