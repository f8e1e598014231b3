//! A store that is stopped and opened again after every call.

use std::sync::{Mutex, PoisonError};

use semel::RecordId;
use semel::store::{Loaded, Page, Reply, Scan, Store, SwapReplies, Swaps, Swept};
use semel_file::FileStore;
use tempfile::TempDir;

use crate::sync::ready;

/// A folder whose store never outlives a call.
pub(crate) struct Reopening {
    store: Mutex<Option<FileStore>>,
    folder: TempDir,
}

impl Reopening {
    pub(crate) fn new() -> Self {
        let reopening = Self { store: Mutex::default(), folder: tempfile::tempdir().unwrap() };
        *reopening.store.lock().unwrap() = Some(reopening.open());
        reopening
    }

    fn open(&self) -> FileStore {
        FileStore::builder(self.folder.path()).segment_bytes(64 << 10).inline().open().unwrap()
    }

    fn ask<T: Unpin>(&self, ask: impl FnOnce(&FileStore) -> Reply<T>) -> Reply<T> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let open = store.take().unwrap_or_else(|| self.open());
        let answer = ready(ask(&open));
        open.close().unwrap();
        *store = Some(self.open());
        Reply::ready(answer)
    }
}

impl Store for Reopening {
    fn swap(&self, batch: Swaps) -> Reply<SwapReplies> {
        self.ask(|store| store.swap(batch))
    }

    fn load(&self, ids: Vec<RecordId>) -> Reply<Vec<Loaded>> {
        self.ask(|store| store.load(ids))
    }

    fn sweep(&self, limit: usize) -> Reply<Swept> {
        self.ask(|store| store.sweep(limit))
    }

    fn scan(&self, scan: Scan) -> Reply<Page> {
        self.ask(|store| store.scan(scan))
    }
}
