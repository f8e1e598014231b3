//! A Redis Cluster: three masters that share the slots, a replica each.

use anyhow::{Context, Result, ensure};

use super::node::AppendFsync;
use super::node::Node;
use crate::place::Place;
use crate::poll;

const MASTERS: usize = 3;
/// Which slots each master serves.
const SLOTS: [(&str, &str); MASTERS] = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
/// A node that does not answer for this long is taken for dead.
const NODE_TIMEOUT_MS: &str = "2000";

/// A cluster of six nodes. Dropped, they are stopped, and their folders gone.
#[derive(Debug)]
pub struct RedisCluster {
    /// Node `n` and node `n + 3` serve the same slots; which of them is the master changes.
    nodes: Vec<Node>,
}

/// One line of `CLUSTER NODES`.
struct Seen {
    id: String,
    port: u16,
    flags: String,
    slots: String,
    is_linked: bool,
}

impl RedisCluster {
    /// Starts the nodes, makes them a cluster, and waits until it serves.
    pub fn start(fsync: AppendFsync) -> Result<Self> {
        let settings = [
            ("cluster-enabled", "yes"),
            ("cluster-config-file", "nodes.conf"),
            ("cluster-node-timeout", NODE_TIMEOUT_MS),
            ("appendfsync", fsync.word()),
        ];
        let nodes = (0..MASTERS * 2).map(|_| Node::start(Place::take_for_cluster, &settings));
        let cluster = Self { nodes: nodes.collect::<Result<_>>()? };
        cluster.meet()?;
        cluster.share_slots()?;
        cluster.until_healthy()?;
        Ok(cluster)
    }

    /// Every node gets to know every other one.
    fn meet(&self) -> Result<()> {
        let first = self.nodes.first().context("a cluster without nodes")?;
        for (number, node) in self.nodes.iter().enumerate() {
            // Each of its own, or they would have to fight it out.
            let epoch = number.saturating_add(1).to_string();
            node.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])?;
            if number > 0 {
                first.ask(&["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string()])?;
            }
        }
        poll::until("the nodes of a cluster to meet", || {
            let known = self.nodes.iter().map(|node| Ok(seen_by(node)?.len()));
            let known = known.collect::<Result<Vec<_>>>()?;
            Ok(known.iter().all(|count| *count == self.nodes.len()).then_some(()))
        })
    }

    fn share_slots(&self) -> Result<()> {
        let (masters, replicas) = self.nodes.split_at(MASTERS);
        for ((from, to), (master, replica)) in SLOTS.iter().zip(masters.iter().zip(replicas)) {
            master.ask(&["CLUSTER", "ADDSLOTSRANGE", from, to])?;
            let id = master.ask(&["CLUSTER", "MYID"])?;
            let id = id.first().context("a node without an id")?;
            replica.ask(&["CLUSTER", "REPLICATE", id])?;
        }
        Ok(())
    }

    /// Where it is: `redis+cluster://127.0.0.1:P1,127.0.0.1:P2,127.0.0.1:P3`.
    pub fn url(&self) -> String {
        let seeds = self.nodes.iter().take(MASTERS).map(|node| format!("127.0.0.1:{}", node.port()));
        format!("redis+cluster://{}", seeds.collect::<Vec<_>>().join(","))
    }

    /// The ports of all nodes; those at `n` and `n + 3` serve the same slots.
    pub fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(Node::port).collect()
    }

    /// Kills whoever is the master of the slots of number `n` (0, 1, 2) now.
    pub fn kill_master(&mut self, n: usize) -> Result<()> {
        let master = self.master(n)?;
        let node = self.nodes.iter_mut().find(|node| node.port() == master);
        node.context("a master that is none of ours")?.kill()
    }

    /// Freezes the master of the slots of number `n`, and returns its port: it answers nothing, and its connections stay open.
    pub fn freeze_master(&self, n: usize) -> Result<u16> {
        let master = self.master(n)?;
        self.node(master)?.freeze()?;
        Ok(master)
    }

    /// Lets the node on this port go on after a freeze.
    pub fn thaw(&self, port: u16) -> Result<()> {
        self.node(port)?.thaw()
    }

    /// Sends one command to the node on this port, as [`Redis::ask`](super::Redis::ask) does.
    pub fn ask(&self, port: u16, words: &[&str]) -> Result<Vec<String>> {
        self.node(port)?.ask(words)
    }

    fn node(&self, port: u16) -> Result<&Node> {
        self.nodes.iter().find(|node| node.port() == port).context("no node of the cluster has this port")
    }

    /// The port of the master of the slots of number `n`, as the others see it.
    pub fn master(&self, n: usize) -> Result<u16> {
        let (from, to) = SLOTS.get(n).with_context(|| format!("there are {MASTERS} masters"))?;
        let slots = format!("{from}-{to}");
        // One of the same slots, if it lives, knows best: it is the one that takes over.
        let near = self.nodes.iter().skip(n).step_by(MASTERS).filter(|node| node.is_running());
        let far = self.nodes.iter().filter(|node| node.is_running());
        let node = near.chain(far).next().context("no node of the cluster runs")?;
        let seen = seen_by(node)?;
        let master = seen.iter().find(|seen| seen.slots == slots && !seen.flags.contains("fail"));
        Ok(master.with_context(|| format!("nobody serves the slots {slots}"))?.port)
    }

    /// Waits until every slot has a master that lives, every node that runs knows it, and every replica that runs follows.
    pub fn until_healthy(&self) -> Result<()> {
        poll::until("the cluster to be healthy", || self.look().map(Some))
    }

    /// Whether it is healthy now.
    pub fn is_healthy(&self) -> bool {
        self.look().is_ok()
    }

    fn look(&self) -> Result<()> {
        self.nodes.iter().filter(|node| node.is_running()).try_for_each(|node| self.ensure_healthy(node))
    }

    fn ensure_healthy(&self, node: &Node) -> Result<()> {
        let info = node.ask(&["CLUSTER", "INFO"])?;
        let is_ok = info.iter().any(|info| info.contains("cluster_state:ok"));
        ensure!(is_ok, "node {} does not see all slots served", node.port());
        let seen = seen_by(node)?;
        for (number, (from, to)) in SLOTS.iter().enumerate() {
            let slots = format!("{from}-{to}");
            let master = seen.iter().find(|seen| seen.slots == slots && seen.flags.contains("master"));
            let master = master.with_context(|| format!("nobody serves the slots {slots}"))?;
            let runs = self.nodes.iter().any(|node| node.port() == master.port && node.is_running());
            ensure!(runs && master.is_linked, "the master of the slots {slots} is dead");
            ensure!(master.port == self.master(number)?, "the nodes disagree on who serves {slots}");
        }
        let myself =
            seen.iter().find(|seen| seen.flags.contains("myself")).context("a node not of itself")?;
        let replication = node.ask(&["INFO", "replication"])?;
        let follows = replication.iter().any(|info| info.contains("master_link_status:up"));
        let is_master = myself.flags.contains("master");
        ensure!(follows || (is_master && !myself.slots.is_empty()), "node {} follows nobody yet", myself.id);
        Ok(())
    }

    /// Starts what was killed among the slots of number `n`, and waits until the cluster is healthy again.
    pub fn resume(&mut self, n: usize) -> Result<()> {
        ensure!(n < MASTERS, "there are {MASTERS} masters");
        for node in self.nodes.iter_mut().skip(n).step_by(MASTERS).filter(|node| !node.is_running()) {
            node.resume()?;
        }
        self.until_healthy()
    }
}

/// What a node says of the others and itself.
fn seen_by(node: &Node) -> Result<Vec<Seen>> {
    let text = node.ask(&["CLUSTER", "NODES"])?;
    text.iter().flat_map(|text| text.lines()).map(|line| seen(line).context("odd CLUSTER NODES")).collect()
}

fn seen(line: &str) -> Option<Seen> {
    let words: Vec<_> = line.split_whitespace().collect();
    let [id, address, flags, _, _, _, _, connection, slots @ ..] = words.as_slice() else { return None };
    let (address, _) = address.split_once('@')?;
    let port = address.rsplit_once(':')?.1.parse().ok()?;
    let (is_linked, slots) = (*connection == "connected" || flags.contains("myself"), slots.join(" "));
    Some(Seen { id: (*id).to_owned(), port, flags: (*flags).to_owned(), slots, is_linked })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_about_a_node_is_read_with_its_slots() {
        let line =
            "07c3 127.0.0.1:30004@31004,host master,fail - 1426238317239 1426238316232 4 connected 0-5460";
        let seen = seen(line).unwrap();
        assert_eq!((seen.port, seen.flags.as_str(), seen.slots.as_str()), (30_004, "master,fail", "0-5460"));
        assert!(seen.is_linked);
        assert!(super::seen("07c3 127.0.0.1:30004").is_none());
    }
}
