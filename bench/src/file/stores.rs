//! The contestants: their names, and how each is opened and loaded.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use semel_file::FileStore;
use tokio::runtime::Runtime;

use crate::callers::Entry;
use crate::contestants::{Engine, StoreAlone};
use crate::databases::{self, Database, Fjall, GroupCommit, Redb, Sqlite};

const LOADED_TOGETHER: u64 = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// The durable store, driven by the machine directly.
    SemelFile,
    /// The same through the engine's public API.
    SemelEngine,
    Fjall,
    Redb,
    Sqlite,
    SqlitePerCall,
}

impl Store {
    /// In the order in which they are shown.
    pub(super) const ALL: [Self; 6] =
        [Self::SemelFile, Self::SemelEngine, Self::Fjall, Self::Redb, Self::Sqlite, Self::SqlitePerCall];
    /// One for each format on the disk: what is true of these is true of the others.
    pub(super) const FORMATS: [Self; 4] = [Self::SemelFile, Self::Fjall, Self::Redb, Self::Sqlite];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SemelFile => "semel file",
            Self::SemelEngine => "semel file, engine",
            Self::Fjall => "fjall, group commit",
            Self::Redb => "redb, group commit",
            Self::Sqlite => "SQLite, group commit",
            Self::SqlitePerCall => "SQLite, per call",
        }
    }

    /// Opens what is in the folder, which has `keys` done keys.
    pub(super) fn open(self, folder: &Path, keys: u64) -> Result<Entry> {
        self.entry(folder, keys, None)
    }

    /// Fills an empty folder with `keys` done keys; it stays open.
    pub(super) fn load(self, folder: &Path, keys: u64, runtime: &Runtime) -> Result<Entry> {
        self.entry(folder, keys, Some(runtime))
    }

    fn entry(self, folder: &Path, keys: u64, loader: Option<&Runtime>) -> Result<Entry> {
        let semel = || {
            let store = StoreAlone::new(FileStore::open(folder)?);
            if let Some(runtime) = loader {
                runtime.block_on(fill(&store, keys, || ()))?;
            }
            anyhow::Ok(store)
        };
        let keys_to_load = loader.map_or(0, |_| keys);
        let grouped = |contestant| Ok(Entry::new(self.name(), contestant, keys));
        match self {
            Self::SemelFile => Ok(Entry::new(self.name(), semel()?, keys)),
            Self::SemelEngine => Ok(Entry::new(self.name(), Engine::new(semel()?.into_store()), keys)),
            Self::Fjall => grouped(loaded(Fjall::open(folder)?, keys_to_load, usize::MAX)?),
            Self::Redb => grouped(loaded(Redb::open(folder)?, keys_to_load, usize::MAX)?),
            Self::Sqlite => grouped(loaded(Sqlite::open(folder)?, keys_to_load, usize::MAX)?),
            Self::SqlitePerCall => grouped(loaded(Sqlite::open(folder)?, keys_to_load, 1)?),
        }
    }
}

/// Claims and completes the keys below `keys`; `step` is called after each batch.
pub(super) async fn fill(store: &StoreAlone<FileStore>, keys: u64, step: impl Fn()) -> Result<()> {
    for first in (0..keys).step_by(usize::try_from(LOADED_TOGETHER)?) {
        store.fill(first..keys.min(first + LOADED_TOGETHER)).await?;
        step();
    }
    Ok(())
}

fn loaded(mut database: impl Database, keys: u64, calls_max: usize) -> Result<GroupCommit> {
    databases::fill(&mut database, keys)?;
    GroupCommit::new(database, calls_max)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::args::word;
    use crate::callers::{CYCLES, Plan, runtime};
    use crate::contestants::refuses_a_second_claim;
    use crate::folder::TempFolder;
    use crate::inputs::Response;
    use crate::report::Metric;

    #[test]
    fn no_contestant_runs_a_key_twice_and_each_hands_back_the_outcome() {
        let folder = TempFolder::for_test("claims");
        let fresh = |name: &str| folder.fresh(name).unwrap();
        let (runtime, bytes) = (runtime(2).unwrap(), Response::new().encoded().len());
        let store = StoreAlone::new(FileStore::open(fresh("store")).unwrap());
        refuses_a_second_claim(("store", bytes), &runtime, &store);
        let engine = Engine::new(FileStore::open(fresh("engine")).unwrap());
        refuses_a_second_claim(("engine", bytes), &runtime, &engine);
        let grouped = [
            ("sqlite", loaded(Sqlite::open(&fresh("sqlite")).unwrap(), 0, usize::MAX).unwrap()),
            ("per call", loaded(Sqlite::open(&fresh("per-call")).unwrap(), 0, 1).unwrap()),
            ("fjall", loaded(Fjall::open(&fresh("fjall")).unwrap(), 0, usize::MAX).unwrap()),
            ("redb", loaded(Redb::open(&fresh("redb")).unwrap(), 0, usize::MAX).unwrap()),
        ];
        for (name, contestant) in &grouped {
            refuses_a_second_claim((name, bytes), &runtime, contestant);
        }
    }

    #[test]
    fn every_contestant_is_loaded_works_and_knows_its_keys() {
        let folder = TempFolder::for_test("loads");
        let runtime = runtime(2).unwrap();
        let bytes = Response::new().encoded().len();
        for store in Store::ALL {
            let entry = store.load(&folder.fresh(&word(&store)).unwrap(), 3_000, &runtime).unwrap();
            let plan = Plan { work: CYCLES, callers: 64, span: Duration::from_millis(60) };
            let sample = entry.loaded.window(&runtime, plan).unwrap();
            assert!(sample[&Metric::PerSecond] > 0.0, "{store:?}: {sample:?}");
            assert!(sample[&Metric::P50Us] <= sample[&Metric::P99Us], "{store:?}: {sample:?}");
            // The first, the last that was loaded, and the first of the window.
            for number in [0, 2_999, 3_000] {
                assert_eq!(entry.loaded.replay(&runtime, number).unwrap(), bytes, "{store:?}, key {number}");
            }
        }
    }
}
