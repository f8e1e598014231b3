//! A folder for one test: the store is opened in it, and it is gone when the store is.

use semel::store::Store;
use semel_file::FileStore;
use tempfile::TempDir;

/// A store, and the folder that it is in.
pub(crate) struct InFolder {
    store: FileStore,
    /// Dropped after the store.
    _folder: TempDir,
}

impl InFolder {
    pub(crate) fn threaded() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: FileStore::open(folder.path()).unwrap(), _folder: folder }
    }

    pub(crate) fn inline() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { store: FileStore::builder(folder.path()).inline().open().unwrap(), _folder: folder }
    }
}

impl Store for InFolder {
    semel_testkit::delegate!(store: swap, load, sweep, scan);
}
