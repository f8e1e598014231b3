//! Where every contestant is called from.

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

/// Tokio's threaded runtime, since that is where applications call from.
pub(crate) fn runtime(threads: usize) -> Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).enable_all().build().context("the runtime cannot start")
}
