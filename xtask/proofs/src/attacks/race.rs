//! Several at once, and how far they are.

use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Called once for every step that is done.
pub type Step<'a> = &'a dyn Fn();

/// Where attacks run.
pub(super) fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")
}

/// Does all of it, so many at a time; results in no order.
pub(super) async fn all<T, F>(
    at_once: usize,
    work: impl IntoIterator<Item = F>,
    step: Step<'_>,
) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(at_once));
    let mut running = JoinSet::new();
    let mut done = Vec::new();
    for one in work {
        let place = Arc::clone(&room).acquire_owned().await?;
        running.spawn(async move {
            let result = one.await;
            drop(place);
            result
        });
        while let Some(ended) = running.try_join_next() {
            done.push(ended?);
            step();
        }
    }
    while let Some(ended) = running.join_next().await {
        done.push(ended?);
        step();
    }
    Ok(done)
}
