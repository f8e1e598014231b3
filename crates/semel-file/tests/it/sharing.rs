//! What callers share: one sync for all who wait, nothing that is not on disk yet, and no waiting for somebody's megabytes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use semel::Outcome;
use semel::store::{Reply, Store, Swap, SwapReplies, SwapReply};
use semel_file::FileStore;
use semel_testkit::sample;

use crate::disk::{Call, SimulatedDisk, Stop, StoppingDisk};

/// The segment that a new store writes to.
const SEGMENT: &str = "00000001";

/// A store whose syncs the test lets go on one by one.
fn stopped_at_syncs() -> (FileStore, Stop) {
    let disk = StoppingDisk::new(SimulatedDisk::new());
    let store = FileStore::on(Arc::new(disk.clone())).open().unwrap();
    (store, disk.stop_at(Call::Sync, SEGMENT))
}

/// The swap of a key that is done at once, with an outcome of so many bytes.
fn done(bytes: usize) -> Swap {
    let ask = sample::ask(&sample::key("share").unwrap());
    let write = sample::done(&ask, &Outcome::success(vec![7; bytes])).unwrap();
    Swap { expected: None, next: write.next, keep: write.keep }
}

fn is_pending<T: Unpin>(reply: &mut Reply<T>) -> bool {
    matches!(Pin::new(reply).poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

async fn swapped(reply: Reply<SwapReplies>) {
    let value = reply.await.unwrap().value;
    assert!(matches!(value.as_slice(), [SwapReply::Swapped(_)]), "{value:?}");
}

#[tokio::test]
async fn everybody_who_waits_meanwhile_shares_the_next_sync() {
    let (store, syncs) = stopped_at_syncs();
    let first = store.swap([done(10)].into());
    syncs.wait_for(1);
    let crowd: Vec<_> = (0..100).map(|_| store.swap([done(10)].into())).collect();
    syncs.let_one_go();
    swapped(first).await;
    syncs.let_one_go();
    for reply in crowd {
        swapped(reply).await;
    }
    syncs.let_all_go();
}

#[tokio::test]
async fn what_is_written_and_not_synced_is_seen_by_nobody() {
    let (store, syncs) = stopped_at_syncs();
    let swap = done(10);
    let id = swap.id();
    let mut writing = store.swap([swap.clone()].into());
    syncs.wait_for(1);
    assert!(matches!(*store.load(vec![id]).await.unwrap().value, [Ok(None)]));
    let mut second = store.swap([swap].into());
    assert!(is_pending(&mut writing) && is_pending(&mut second));
    syncs.let_all_go();
    swapped(writing).await;
    assert!(matches!(*store.load(vec![id]).await.unwrap().value, [Ok(Some(_))]));
    let value = second.await.unwrap().value;
    assert!(matches!(value.as_slice(), [SwapReply::Stale(Some(_))]), "{value:?}");
}

#[tokio::test]
async fn small_outcomes_do_not_wait_for_large_ones_that_came_before_them() {
    let (store, syncs) = stopped_at_syncs();
    let first = store.swap([done(10)].into());
    syncs.wait_for(1);
    let mut large: Vec<_> = (0..3).map(|_| store.swap([done(1 << 20)].into())).collect();
    let small = store.swap([done(10)].into());
    syncs.let_one_go();
    swapped(first).await;
    syncs.let_one_go();
    swapped(small).await;
    assert!(large.iter_mut().all(is_pending));
    syncs.let_all_go();
    for reply in large {
        swapped(reply).await;
    }
}
