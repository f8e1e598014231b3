//! Which server is the master of which tag.

use std::sync::Arc;

use super::Node;
use crate::config::Address;
use crate::names::Tag;

/// Which server is the master of what, as far as is known.
#[derive(Debug)]
pub(crate) enum Map {
    /// One master has everything.
    One(Arc<Node>),
    /// The masters of a cluster, for every tag which of them has it, and the other servers.
    Cluster { masters: Vec<Arc<Node>>, owners: Vec<usize>, replicas: Vec<Address> },
}

impl Map {
    /// All masters.
    pub(crate) fn masters(&self) -> &[Arc<Node>] {
        match self {
            Self::One(node) => std::slice::from_ref(node),
            Self::Cluster { masters, .. } => masters,
        }
    }

    /// The servers of a cluster that are no masters.
    pub(crate) fn replicas(&self) -> &[Address] {
        match self {
            Self::One(_) => &[],
            Self::Cluster { replicas, .. } => replicas,
        }
    }

    /// Which of the masters has this tag.
    pub(crate) fn owner(&self, tag: Tag) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Cluster { owners, .. } => owners.get(usize::from(tag.index())).copied().unwrap_or(0),
        }
    }

    /// Whether both name the same masters.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        let addresses =
            |map: &Self| map.masters().iter().map(|node| node.address.clone()).collect::<Vec<_>>();
        let same_owners = match (self, other) {
            (Self::Cluster { owners: a, .. }, Self::Cluster { owners: b, .. }) => a == b,
            (Self::One(_), Self::One(_)) => true,
            (Self::One(_) | Self::Cluster { .. }, _) => false,
        };
        same_owners && addresses(self) == addresses(other)
    }
}
