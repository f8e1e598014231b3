//! Where the outcomes of a test are kept, also when a front is gone and another one is to find them.

use std::sync::Arc;

use semel::store::{MemoryStore, Store};
use semel_ops::store_url::Address;
use tempfile::TempDir;

use super::front::Kind;
use crate::place::Place;

/// A store that outlives fronts.
pub(crate) enum Shelf {
    /// In this process: for layers.
    Memory(Arc<dyn Store>),
    /// In a folder: for one proxy at a time.
    Folder(TempDir),
    /// On a server: for as many as like.
    Server(String),
}

impl Shelf {
    /// The plainest store: in memory for a layer, in a folder for a proxy.
    pub(crate) fn plain(kind: Kind) -> Self {
        match kind {
            Kind::Layer => Self::Memory(Arc::new(MemoryStore::new())),
            Kind::Proxy => Self::Folder(tempfile::tempdir().expect("a folder for a test")),
        }
    }

    /// A schema or a prefix of a server, for several fronts at once.
    pub(crate) async fn on(place: fn() -> Place) -> Self {
        let place = tokio::task::spawn_blocking(place).await.expect("the server is up");
        Self::at(place.url())
    }

    pub(crate) fn at(url: &str) -> Self {
        Self::Server(url.to_owned())
    }

    /// Where it is, for another process.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Memory(_) => "memory:".to_owned(),
            Self::Folder(folder) => format!("file:{}", folder.path().join("store").display()),
            Self::Server(url) => url.clone(),
        }
    }

    /// The store itself, for whichever runtime asks: the connections of a server's store belong to the one that opened it.
    pub(crate) fn opening(&self) -> impl Future<Output = Arc<dyn Store>> + Send + 'static {
        let known = match self {
            Self::Memory(store) => Ok(Arc::clone(store)),
            Self::Folder(_) | Self::Server(_) => Err(self.url()),
        };
        async move {
            match known {
                Ok(store) => store,
                Err(url) => {
                    let address: Address = url.parse().expect("is the address of a store");
                    address.open().await.expect("opens").store()
                }
            }
        }
    }
}
