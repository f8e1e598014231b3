//! Which master of a cluster has which slots, asked of any of its servers.

use std::sync::Arc;

use futures_util::future::select_ok;
use redis::Value;

use super::Node;
use super::map::Map;
use crate::config::Address;
use crate::error::{Failure, ServerResult};
use crate::names::Tag;
use crate::reply;

/// Some slots, from the first to the last, and their servers.
struct Range {
    first: u16,
    last: u16,
    master: Address,
    replicas: Vec<Address>,
}

/// The map, by the first of these servers that knows a master of every slot: one that hangs, or left the cluster, must not
/// keep the others from answering. `node` finds or makes the one with an address.
pub(super) async fn map(known: &[Arc<Node>], node: impl Fn(&Address) -> Arc<Node>) -> ServerResult<Map> {
    if known.is_empty() {
        return Err(Failure::no_server("there are no servers; name some in the URL"));
    }
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    let ask = |asked: &Arc<Node>| {
        let (asked, command, node) = (Arc::clone(asked), &command, &node);
        Box::pin(async move {
            let ranges = ranges(asked.ask_one(command).await?, &asked.address)?;
            owners(&ranges, node).ok_or_else(|| {
                Failure::no_server("not all slots of the cluster have a master; see CLUSTER INFO")
            })
        })
    };
    let (map, _) = select_ok(known.iter().map(ask)).await.map_err(Failure::harmless)?;
    Ok(map)
}

/// The ranges in an answer to CLUSTER SLOTS.
fn ranges(answer: Value, asked: &Address) -> ServerResult<Vec<Range>> {
    let unexpected = || Failure::unexpected_reply("CLUSTER SLOTS");
    let parts_of = |value: Option<Value>| reply::list(value.unwrap_or(Value::Nil), "CLUSTER SLOTS");
    let number = |value: Option<Value>| {
        value.and_then(reply::number).and_then(|number| u16::try_from(number).ok()).ok_or_else(unexpected)
    };
    let range = |range: Value| {
        let mut parts = parts_of(Some(range))?.into_iter();
        let (first, last) = (number(parts.next())?, number(parts.next())?);
        let server = |server: Option<Value>| {
            let mut server = parts_of(server)?.into_iter();
            // A server that does not know its own name leaves it empty.
            let host = server.next().and_then(reply::text).filter(|host| !host.is_empty() && host != "?");
            let host = host.unwrap_or_else(|| asked.host.clone());
            Ok(Address { host, port: number(server.next())? })
        };
        let master = server(parts.next())?;
        let replicas = parts.map(|replica| server(Some(replica))).collect::<ServerResult<_>>()?;
        Ok(Range { first, last, master, replicas })
    };
    parts_of(Some(answer))?.into_iter().map(range).collect()
}

/// The map of these ranges; `None` if some tag has no master.
fn owners(ranges: &[Range], node: impl Fn(&Address) -> Arc<Node>) -> Option<Map> {
    let mut masters: Vec<Arc<Node>> = Vec::new();
    let mut owners = Vec::new();
    for tag in Tag::FIRST.onwards() {
        let slot = tag.slot();
        let range = ranges.iter().find(|range| (range.first..=range.last).contains(&slot))?;
        let found = masters.iter().position(|master| master.address == range.master);
        owners.push(found.unwrap_or_else(|| {
            masters.push(node(&range.master));
            masters.len().saturating_sub(1)
        }));
    }
    let mut replicas: Vec<Address> = Vec::new();
    for replica in ranges.iter().flat_map(|range| &range.replicas) {
        if !replicas.contains(replica) {
            replicas.push(replica.clone());
        }
    }
    Some(Map::Cluster { masters, owners, replicas })
}
