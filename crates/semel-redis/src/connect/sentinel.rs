//! Where a master is, by the sentinels that watch it.
//!
//! Sentinels learn of a failover one after the other. Each knows the number of the configuration that it has, its *epoch*,
//! which grows with every failover: the one with the greatest epoch is right, and an older one than was heard before is not
//! followed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use redis::Value;

use super::Node;
use super::client::Connector;
use crate::config::Address;
use crate::error::{Failure, ServerResult};
use crate::reply;

/// How long the others are waited for once a sentinel has answered.
const OTHERS_WITHIN: Duration = Duration::from_millis(200);

/// The sentinels of one master.
pub(super) struct Sentinels {
    nodes: Vec<Arc<Node>>,
    connector: Connector,
    name: String,
    /// The greatest epoch that was followed.
    epoch: AtomicU64,
}

/// The master by one sentinel.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    address: Address,
    epoch: u64,
}

impl Sentinels {
    pub(super) fn new(addresses: &[Address], connector: Connector, name: &str) -> Self {
        let node = |address: &Address| Arc::new(Node::new(address.clone(), connector.clone(), 1));
        let nodes = addresses.iter().map(node).collect();
        Self { nodes, connector, name: name.to_owned(), epoch: AtomicU64::new(0) }
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.nodes.iter().map(|node| &node.address)
    }

    /// The master's address.
    pub(super) async fn master(&self) -> ServerResult<Address> {
        let mut failure = Failure::no_server("there are no sentinels; name some in the URL");
        let mut named = Vec::new();
        let mut asks: FuturesUnordered<_> = self.nodes.iter().map(|node| self.ask(node)).collect();
        loop {
            let next = asks.next();
            let answer = if named.is_empty() {
                next.await
            } else {
                tokio::time::timeout(OTHERS_WITHIN, next).await.unwrap_or(None)
            };
            match answer {
                Some(Ok(answer)) => named.push(answer),
                Some(Err(why)) => failure = why,
                None => break,
            }
        }
        let known = self.epoch.load(Ordering::Acquire);
        let Some(Named { address, epoch }) = newest(&named) else { return Err(failure) };
        // After `SENTINEL RESET` epochs start anew, at every sentinel.
        if epoch < known && named.len() < self.nodes.len() {
            return Err(Failure::no_server(format!(
                "the sentinels that answer know only an older configuration of `{}` than was heard before ({epoch} < {known})",
                self.name
            )));
        }
        self.epoch.store(epoch, Ordering::Release);
        Ok(address)
    }

    async fn ask(&self, sentinel: &Node) -> ServerResult<Named> {
        let mut address = redis::cmd("SENTINEL");
        address.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        let mut master = redis::cmd("SENTINEL");
        master.arg("MASTER").arg(&self.name);
        let mut answers = sentinel.ask(&[&address, &master]).await?.into_iter();
        let mut next = || answers.next().unwrap_or(Value::Nil);
        let address = next();
        if let Value::ServerError(error) = &address {
            return Err(sentinel.refused(error));
        }
        let address = address_in(address).ok_or_else(|| {
            Failure::no_server(format!(
                "the sentinel at {} knows no master `{}`; see the URL's last part",
                sentinel.address, self.name
            ))
        })?;
        // A user without the right to see it is left with the address.
        Ok(Named { address, epoch: epoch_in(next()).unwrap_or(0) })
    }
}

/// The master by the sentinel with the newest configuration.
fn newest(named: &[Named]) -> Option<Named> {
    named.iter().max_by_key(|named| named.epoch).cloned()
}

fn address_in(answer: Value) -> Option<Address> {
    let mut parts = reply::list(answer, "a sentinel").ok()?.into_iter();
    let (host, port) = (parts.next().and_then(reply::text)?, parts.next().and_then(reply::number)?);
    Some(Address { host, port: u16::try_from(port).ok()? })
}

/// The epoch among the names and values that describe a master.
fn epoch_in(answer: Value) -> Option<u64> {
    let parts = reply::list(answer, "a sentinel").ok()?;
    let mut parts = parts.into_iter();
    while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
        if reply::text(name).as_deref() == Some("config-epoch") {
            return reply::number(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_configuration_is_followed() {
        let named = |port, epoch| Named { address: Address { host: "h".to_owned(), port }, epoch };
        assert_eq!(newest(&[named(1, 4), named(2, 5), named(3, 4)]), Some(named(2, 5)));
        assert_eq!(newest(&[]), None);
    }

    #[test]
    fn the_epoch_is_found_among_the_other_facts() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        let facts = ["name", "semel", "config-epoch", "17", "quorum", "2"].map(text);
        assert_eq!(epoch_in(Value::Array(facts.into())), Some(17));
        assert_eq!(epoch_in(Value::Nil), None);
    }
}
