//! What is to be consumed, and how.

use std::time::Duration;

use semel::{Lapse, Semel};
use semel_ops::store_url::Address;
use semel_stream::{Checkpoint, EventKey, OnMissingKey, Order, Pipeline};

use super::address::SourceAddress;
use super::dead_letters::DeadLettersTo;
use super::exec::Exec;

/// What is to be consumed, and how.
#[derive(Debug)]
pub(crate) struct Consume {
    pub(crate) store: Address,
    pub(crate) source: SourceAddress,
    pub(crate) scope: Vec<Box<str>>,
    pub(crate) pipeline: String,
    pub(crate) exec: Exec,
    pub(crate) key: EventKey,
    pub(crate) on_missing_key: OnMissingKey,
    pub(crate) parallel: usize,
    pub(crate) order: Order,
    pub(crate) attempts_max: u32,
    pub(crate) lapse: Lapse,
    pub(crate) lease: Duration,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) dead_letters: DeadLettersTo,
    pub(crate) retention: Duration,
    /// After how long without an event it ends; `None` to wait for ever.
    pub(crate) idle: Option<Duration>,
}

impl Consume {
    pub(super) fn pipeline(&self, semel: &Semel) -> semel::Result<Pipeline> {
        Pipeline::builder(semel, &self.pipeline)
            .scope(&self.scope)
            .retention(self.retention)
            .lease(self.lease)
            .lapse(self.lapse)
            .build()
    }
}
