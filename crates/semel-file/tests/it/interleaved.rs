//! Two actors in one store, each stopped at the point where the other could get in between.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use semel::machine::settle::renew;
use semel::record::{Keep, Record, State};
use semel::store::{Reply, Store, Swap, SwapReplies, SwapReply};
use semel::{Claim, Decision, Outcome, RecordId, Semel};
use semel_file::FileStore;
use semel_testkit::{ManualClock, sample};

use crate::dice::Dice;
use crate::disk::{Call, SimulatedDisk, Stop, StoppingDisk, Survival, Syncs};

/// The segment that a new store writes to.
const SEGMENT: &str = "00000001";
const START: u64 = 1_000_000_000_000;
const KEEP: Duration = Duration::from_secs(10);

fn is_pending<T: Unpin>(reply: &mut Reply<T>) -> bool {
    matches!(Pin::new(reply).poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
}

/// The first claim of a key of its own.
fn claim() -> Swap {
    let write = sample::running(&sample::ask(&sample::key("between").unwrap())).unwrap();
    Swap { expected: None, next: write.next, keep: Keep::For(KEEP) }
}

fn renewal(record: &Record) -> Swap {
    let State::Running(running) = &record.state else { panic!("{record:?}") };
    let write = renew(Some(record), running.grant.permit_id, sample::LONG, record.changed_at).write;
    let write = sample::written(write).unwrap();
    Swap { expected: Some(record.version), next: write.next, keep: Keep::For(KEEP) }
}

fn done(bytes: usize, keep: Keep) -> Swap {
    let ask = sample::ask(&sample::key("between").unwrap());
    let write = sample::done(&ask, &Outcome::success(vec![7; bytes])).unwrap();
    Swap { expected: None, next: write.next, keep }
}

async fn swapped(reply: Reply<SwapReplies>) -> Arc<Record> {
    match reply.await.unwrap().value.remove(0) {
        SwapReply::Swapped(record) => record,
        other => panic!("{other:?}"),
    }
}

async fn load(store: &FileStore, id: RecordId) -> Option<Arc<Record>> {
    store.load(vec![id]).await.unwrap().value.remove(0).unwrap()
}

#[tokio::test]
async fn a_stale_answer_waits_for_the_sync_of_the_record_that_it_shows() {
    let disk = StoppingDisk::new(SimulatedDisk::new());
    let store = FileStore::on(Arc::new(disk.clone())).open().unwrap();
    let syncs = disk.stop_at(Call::Sync, SEGMENT);
    let other = store.swap([claim()].into());
    syncs.wait_for(1);
    // Both wait for the writer and will share its next batch: the second finds what the first writes.
    let swap = claim();
    let mut first = store.swap([swap.clone()].into());
    let mut second = store.swap([swap].into());
    syncs.let_one_go();
    swapped(other).await;
    syncs.wait_for(2);
    assert!(is_pending(&mut first) && is_pending(&mut second));
    syncs.let_all_go();
    let written = swapped(first).await;
    let value = second.await.unwrap().value;
    assert!(matches!(value.as_slice(), [SwapReply::Stale(Some(found))] if *found == written), "{value:?}");
}

#[tokio::test]
async fn a_whole_end_of_the_log_found_at_opening_is_synced_before_it_is_served() {
    for syncs in [Syncs::Honest, Syncs::Lying] {
        let simulated = SimulatedDisk::holding(SimulatedDisk::new().image(), syncs);
        let disk = StoppingDisk::new(simulated.clone());
        let store = FileStore::on(Arc::new(disk.clone())).open().unwrap();
        let stop = disk.stop_at(Call::Sync, SEGMENT);
        let swap = claim();
        let id = swap.id();
        let unanswered = store.swap([swap].into());
        stop.wait_for(1);
        // The process is killed between its write and its sync: what it wrote is in the memory of the machine.
        let found = SimulatedDisk::holding(simulated.image(), syncs);
        let reopened = FileStore::on(Arc::new(found.clone())).inline().open().unwrap();
        assert!(load(&reopened, id).await.is_some(), "what is whole is served");
        // Then the power goes, and takes along all that was not synced.
        let cut =
            SimulatedDisk::holding(found.image().cut_to(Survival::Nothing, &mut Dice::new(0)), Syncs::Honest);
        let is_there = match FileStore::on(Arc::new(cut)).inline().open() {
            Ok(store) => load(&store, id).await.is_some(),
            Err(_) => false,
        };
        // Where syncs lie, it must be gone: the test would notice.
        assert_eq!(is_there, syncs == Syncs::Honest);
        stop.let_all_go();
        drop(unanswered);
    }
}

#[tokio::test]
async fn a_sweep_behind_a_renewal_that_is_on_its_way_to_the_disk_leaves_the_record() {
    let clock = ManualClock::at(START);
    let disk = StoppingDisk::new(SimulatedDisk::new());
    let store = FileStore::on(Arc::new(disk.clone())).clock(clock.clone()).open().unwrap();
    let claimed = swapped(store.swap([claim()].into())).await;
    let gone = swapped(store.swap([claim()].into())).await;
    clock.advance(KEEP.saturating_sub(Duration::from_micros(1)));
    let syncs = disk.stop_at(Call::Sync, SEGMENT);
    let renewed = store.swap([renewal(&claimed)].into());
    syncs.wait_for(1);
    // While the renewal is written, the keep that it replaces ends, and a sweep waits behind it.
    clock.advance(Duration::from_secs(2));
    let sweep = store.sweep(100);
    syncs.let_all_go();
    let renewed = swapped(renewed).await;
    assert_eq!(sweep.await.unwrap().value.removed, 1, "the record that was not renewed");
    assert_eq!(load(&store, claimed.key.id()).await, Some(renewed));
    assert_eq!(load(&store, gone.key.id()).await, None);
}

#[tokio::test]
async fn a_read_beside_the_removal_of_its_segment_finds_the_record_where_it_was_moved() {
    let clock = ManualClock::at(START);
    let folder = tempfile::tempdir().unwrap();
    let disk = StoppingDisk::new(semel_file::disk::Folder::hold(folder.path()).unwrap());
    let builder = FileStore::on(Arc::new(disk.clone())).segment_bytes(64 << 10);
    let store = Arc::new(builder.clock(clock.clone()).open().unwrap());
    let swap = done(100, Keep::Forever);
    let kept = swapped(store.swap([swap.clone()].into())).await;
    let reads = disk.stop_at(Call::CachedRead, SEGMENT);
    let read = {
        let store = Arc::clone(&store);
        std::thread::spawn(move || answered(store.swap([swap].into())))
    };
    // The duplicate has looked the record up in the index, and stands before its segment.
    reads.wait_for(1);
    let removed = disk.stop_at(Call::Remove, "00000001.log");
    removed.let_all_go();
    for _ in 0..200 {
        for _ in 0..10 {
            swapped(store.swap([done(2_000, Keep::For(KEEP))].into())).await;
        }
        clock.advance(KEEP * 2);
        while store.sweep(1_000).await.unwrap().value.more_left {}
        if !folder.path().join("00000001.log").exists() {
            break;
        }
    }
    removed.wait_for(1);
    reads.let_all_go();
    let value = read.join().unwrap();
    assert!(matches!(value.as_slice(), [SwapReply::Stale(Some(found))] if *found == kept), "{value:?}");
    assert_eq!(load(&store, kept.key.id()).await, Some(kept));
}

#[tokio::test]
async fn a_replayreads_the_disk_once_and_is_kept() {
    let disk = StoppingDisk::new(SimulatedDisk::new());
    let open = || FileStore::on(Arc::new(disk.clone())).open().unwrap();
    let key = sample::key("replay").unwrap();
    let semel = Semel::new(open());
    let Decision::Run(permit) = semel.claim(Claim::new(&key)).await.unwrap() else {
        panic!("it is the first")
    };
    permit.complete(Outcome::success("paid")).await.unwrap();
    semel.close().await.unwrap();
    let semel = Semel::new(open());
    assert!(matches!(semel.claim(Claim::new(&key)).await.unwrap(), Decision::Replay(_)));
    // A read would wait for ever.
    let reads = [Call::CachedRead, Call::Read].map(|call| disk.stop_at(call, SEGMENT));
    for _ in 0..100 {
        let replayed = tokio::time::timeout(Duration::from_secs(10), semel.claim(Claim::new(&key))).await;
        assert!(matches!(replayed, Ok(Ok(Decision::Replay(_)))), "{replayed:?}");
    }
    reads.iter().for_each(Stop::let_all_go);
}

/// The answer, on a thread that has nothing else to do.
fn answered(reply: Reply<SwapReplies>) -> SwapReplies {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(reply).unwrap().value
}
