//! A contestant among others; semel is one of them on every server.

use std::ops::Range;

use anyhow::Result;
use semel::Semel;
use semel::store::Store;

use crate::contestants::{Contestant, Engine, StoreAlone};
use crate::inputs::Response;
use crate::window::{Entrant, Loaded};

/// What semel is called among them.
pub(super) const SEMEL: &str = "semel";
/// How many done keys are loaded at a time.
const LOADED_TOGETHER: usize = 1_024;

/// One contestant, open and loaded.
pub(super) struct Entry {
    /// Its name in tables and charts.
    pub(super) name: &'static str,
    /// How its server is set, where there is more than one; contestants are compared within it.
    pub(super) setting: &'static str,
    pub(super) entrant: Box<dyn Entrant>,
}

impl Entry {
    /// A contestant with the keys below `keys` done.
    pub(super) fn new(
        name: &'static str,
        setting: &'static str,
        contestant: impl Contestant,
        keys: u64,
    ) -> Self {
        Self { name, setting, entrant: Box::new(Loaded::new(contestant, keys)) }
    }

    /// The engine over this store, which is loaded first. It keeps no replays in memory: others ask their server each
    /// time, too.
    pub(super) async fn semel(store: impl Store + Clone, setting: &'static str, keys: u64) -> Result<Self> {
        let outcome = Response::new().body;
        let loader = StoreAlone::new(store.clone()).outcome(outcome.clone());
        for numbers in pieces(keys) {
            loader.fill(numbers).await?;
        }
        let semel = Semel::builder(store).replays_kept(0, 0).build()?;
        Ok(Self::new(SEMEL, setting, Engine::over(semel, outcome), keys))
    }
}

/// The numbers below `keys`, as many as are loaded at a time.
pub(super) fn pieces(keys: u64) -> impl Iterator<Item = Range<u64>> {
    (0..keys).step_by(LOADED_TOGETHER).map(move |first| first..keys.min(first + LOADED_TOGETHER as u64))
}
