//! The contestants: what they are called, and how each is opened and loaded.

use std::path::Path;

use anyhow::Result;
use clap::ValueEnum;
use tokio::runtime::Runtime;

use crate::contestants::{Engine, StoreAlone, file};
use crate::databases::{self, Database, Fjall, GroupCommit, Redb, Sqlite};
use crate::window::{Entrant, Loaded};

/// How many keys a store is loaded with at a time.
const LOADED_TOGETHER: u64 = 1_024;

/// A contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Who {
    /// The durable store, driven by the machine directly.
    SemelFile,
    /// The same through the engine's public API.
    SemelEngine,
    Fjall,
    Redb,
    Sqlite,
    SqlitePerCall,
}

impl Who {
    /// In the order in which they are shown.
    pub(super) const ALL: [Self; 6] =
        [Self::SemelFile, Self::SemelEngine, Self::Fjall, Self::Redb, Self::Sqlite, Self::SqlitePerCall];
    /// Those whom the store is measured against.
    pub(super) const PEERS: [Self; 4] = [Self::Fjall, Self::Redb, Self::Sqlite, Self::SqlitePerCall];
    /// Those who keep their data each in another way: what is true of these is true of the others.
    pub(super) const KEEPERS: [Self; 4] = [Self::SemelFile, Self::Fjall, Self::Redb, Self::Sqlite];

    /// Its name in tables and charts.
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

    /// Its name on a command line, and of its folder.
    pub(super) fn word(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Opens what is in the folder, which has `keys` done keys.
    pub(super) fn open(self, folder: &Path, keys: u64) -> Result<Box<dyn Entrant>> {
        Ok(match self {
            Self::SemelFile => Box::new(Loaded::new(StoreAlone::new(file::open(folder)?), keys)),
            Self::SemelEngine => Box::new(Loaded::new(Engine::new(file::open(folder)?), keys)),
            Self::Fjall => grouped(Fjall::open(folder)?, keys)?,
            Self::Redb => grouped(Redb::open(folder)?, keys)?,
            Self::Sqlite => grouped(Sqlite::open(folder)?, keys)?,
            Self::SqlitePerCall => Box::new(Loaded::new(GroupCommit::new(Sqlite::open(folder)?, 1)?, keys)),
        })
    }

    /// Fills an empty folder with `keys` done keys; it stays open. `step` is called with how many were written.
    pub(super) fn load(
        self,
        folder: &Path,
        keys: u64,
        runtime: &Runtime,
        step: impl Fn(u64),
    ) -> Result<Box<dyn Entrant>> {
        Ok(match self {
            Self::SemelFile => {
                let store = StoreAlone::new(file::open(folder)?);
                runtime.block_on(fill(&store, keys, step))?;
                Box::new(Loaded::new(store, keys))
            }
            Self::SemelEngine => {
                let store = StoreAlone::new(file::open(folder)?);
                runtime.block_on(fill(&store, keys, step))?;
                Box::new(Loaded::new(Engine::new(store.into_store()), keys))
            }
            Self::Fjall => grouped(filled(Fjall::open(folder)?, keys, step)?, keys)?,
            Self::Redb => grouped(filled(Redb::open(folder)?, keys, step)?, keys)?,
            Self::Sqlite => grouped(filled(Sqlite::open(folder)?, keys, step)?, keys)?,
            Self::SqlitePerCall => {
                let database = filled(Sqlite::open(folder)?, keys, step)?;
                Box::new(Loaded::new(GroupCommit::new(database, 1)?, keys))
            }
        })
    }
}

/// Claims and completes the keys below `keys`.
pub(super) async fn fill(store: &StoreAlone<file::FileStore>, keys: u64, step: impl Fn(u64)) -> Result<()> {
    for first in (0..keys).step_by(usize::try_from(LOADED_TOGETHER)?) {
        let numbers = first..keys.min(first + LOADED_TOGETHER);
        let written = numbers.end - numbers.start;
        store.fill(numbers).await?;
        step(written);
    }
    Ok(())
}

fn filled<D: Database>(mut database: D, keys: u64, step: impl Fn(u64)) -> Result<D> {
    databases::fill(&mut database, keys, step)?;
    Ok(database)
}

fn grouped(database: impl Database, keys: u64) -> Result<Box<dyn Entrant>> {
    Ok(Box::new(Loaded::new(GroupCommit::new(database, usize::MAX)?, keys)))
}
