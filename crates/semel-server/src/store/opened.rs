//! A store, and what tools want to know of it beyond the four methods.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use semel::Result;
use semel::store::Store;
use semel_file::FileStore;

use super::file;
use super::finding::Finding;

/// A store that was opened by its address.
pub struct Opened {
    store: Arc<dyn Store>,
    concrete: Concrete,
}

/// What is known of the store as the one it is.
pub(super) enum Concrete {
    Memory,
    File(PathBuf, Arc<FileStore>),
}

/// What a migration did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Migrated {
    /// This store needs no schema.
    NothingToDo,
    /// Its schema went from one version to another, which may be the same.
    Schema {
        /// Before; `None` if there was none.
        from: Option<u64>,
        /// Now.
        to: u64,
    },
}

impl Opened {
    pub(super) fn new(store: Arc<dyn Store>, concrete: Concrete) -> Self {
        Self { store, concrete }
    }

    /// The store, to be shared with an engine.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// What the store's acknowledgements survive, in words for people.
    pub fn survives(&self) -> String {
        match &self.concrete {
            Concrete::Memory => "nothing: it ends with its process".to_owned(),
            Concrete::File(..) => "kill -9, a crash of the machine, and loss of power".to_owned(),
        }
    }

    /// Looks at everything that the store's promise depends on.
    #[expect(clippy::unused_async, reason = "stores that are reached over a network are waited for")]
    pub async fn check(&self) -> Result<Vec<Finding>> {
        match &self.concrete {
            Concrete::Memory => Ok(Vec::new()),
            Concrete::File(folder, _) => file::check(folder),
        }
    }

    /// How many records there are, if the store can say so without looking through all: the ones past their keep
    /// that no sweep has seen yet included.
    pub fn count(&self) -> Option<u64> {
        match &self.concrete {
            Concrete::Memory => None,
            Concrete::File(_, store) => Some(store.records() as u64),
        }
    }
}

impl Deref for Opened {
    type Target = dyn Store;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}
