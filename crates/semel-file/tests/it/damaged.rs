//! One record that cannot be read, in a store that is open: refused alone, with its reason, and never written over.

use std::sync::Arc;
use std::time::Duration;

use semel::machine::amend::count_duplicates;
use semel::record::{Duplicates, Keep, Record};
use semel::store::{Scan, Store, Swap, SwapReply, Swaps};
use semel::{Claim, Decision, ErrorKind, Key, Outcome, Semel};
use semel_file::{FileStore, FileStoreBuilder};
use semel_testkit::{ManualClock, sample};
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::tamper::FrameOnDisk;

const OTHERS: usize = 50;
const NAME: &str = "the damaged one";

/// What is wrong with the record.
#[derive(Clone, Copy, Debug)]
enum Damage {
    /// A byte of its frame is another.
    Flipped,
    /// Its frame is whole, and the record in it is not.
    NoRecord,
}

/// A store with some whole records and one that cannot be read.
struct Bench {
    store: Arc<FileStore>,
    folder: TempDir,
    whole: Vec<Arc<Record>>,
    damaged: Arc<Record>,
}

fn first(key: &Key) -> Swap {
    let write = sample::running(&sample::ask(key)).unwrap();
    Swap { expected: None, next: write.next, keep: Keep::For(sample::LONG) }
}

fn again(record: &Record) -> Swap {
    let seen = Duplicates { count: 1, last_seen_at: Some(record.changed_at) };
    let write = sample::written(count_duplicates(Some(record), seen, record.changed_at).write).unwrap();
    Swap { expected: Some(record.version), next: write.next, keep: Keep::For(sample::LONG) }
}

fn key(name: &str) -> Key {
    Key::new("damage", name).unwrap()
}

fn swapped(reply: SwapReply) -> Arc<Record> {
    match reply {
        SwapReply::Swapped(record) => record,
        other => panic!("{other:?}"),
    }
}

impl Bench {
    async fn new(damage: Damage, open: impl FnOnce(&TempDir) -> FileStore) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(open(&folder));
        let mut swaps: Vec<Swap> = (0..9).map(|number| first(&key(&format!("whole-{number}")))).collect();
        swaps.insert(4, first(&key(NAME)));
        let replies = store.swap(swaps.into()).await.unwrap().value;
        let mut whole: Vec<_> = replies.into_iter().map(swapped).collect();
        let damaged = whole.remove(4);
        let bench = Self { store, folder, whole, damaged };
        match damage {
            Damage::Flipped => bench.frame().flip(),
            Damage::NoRecord => bench.frame().change_record(|record| *record.last_mut().unwrap() ^= 1),
        }
        bench
    }

    fn frame(&self) -> FrameOnDisk {
        FrameOnDisk::of(self.folder.path(), NAME)
    }

    fn engine(&self) -> Semel {
        let store: Arc<dyn Store> = self.store.clone();
        Semel::builder_shared(store).no_sweep().build().unwrap()
    }
}

/// With a log that is small enough to be searched for a name.
fn small(folder: &TempDir) -> FileStoreBuilder {
    FileStore::builder(folder).segment_bytes(64 << 10)
}

async fn benches() -> Vec<Bench> {
    let mut benches = Vec::new();
    for damage in [Damage::Flipped, Damage::NoRecord] {
        benches.push(Bench::new(damage, |folder| small(folder).open().unwrap()).await);
        let inline = |folder: &TempDir| small(folder).inline().open().unwrap();
        benches.push(Bench::new(damage, inline).await);
    }
    benches
}

#[tokio::test]
async fn a_batch_of_swaps_is_answered_but_for_the_record_that_cannot_be_read() {
    for bench in benches().await {
        let before = bench.frame().bytes().to_vec();
        let mut batch: Swaps = (0..OTHERS).map(|number| first(&key(&format!("new-{number}")))).collect();
        batch.insert(OTHERS / 2, first(&key(NAME)));
        batch.extend(bench.whole.iter().map(|record| again(record)));
        let mut replies = bench.store.swap(batch).await.unwrap().value;
        match replies.remove(OTHERS / 2) {
            SwapReply::Damaged(why) => {
                assert_eq!(why.kind(), ErrorKind::Corrupt, "{why:?}");
                assert!(why.to_string().contains("00000001.log"), "{why}");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(replies.into_iter().map(swapped).count(), OTHERS + bench.whole.len());
        assert_eq!(bench.frame().bytes(), before, "what cannot be read is not written over");
    }
}

#[tokio::test]
async fn claims_and_completes_beside_a_damaged_key_succeed_and_only_that_key_is_refused() {
    for bench in benches().await {
        let semel = bench.engine();
        let mut claims = JoinSet::new();
        let names = (0..OTHERS).map(|number| format!("claim-{number}")).chain([NAME.to_owned()]);
        for name in names {
            let (semel, claim) = (semel.clone(), Claim::new(&key(&name)));
            claims.spawn(async move { (name, semel.claim(claim).await) });
        }
        let mut permits = Vec::new();
        for (name, claimed) in claims.join_all().await {
            match claimed {
                Ok(Decision::Run(permit)) if name != NAME => permits.push(permit),
                Err(error) if name == NAME => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}"),
                other => panic!("{name}: {other:?}"),
            }
        }
        let mut completes = JoinSet::new();
        for permit in permits {
            completes.spawn(async move { permit.complete(Outcome::success("done")).await });
        }
        let damaged = semel.claim(Claim::new(&key(NAME)));
        let (ended, damaged) = tokio::join!(completes.join_all(), damaged);
        assert_eq!(ended.into_iter().flatten().count(), OTHERS);
        assert_eq!(damaged.unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

#[tokio::test]
async fn a_load_of_ten_with_one_damaged_has_nine_records() {
    for bench in benches().await {
        let mut ids: Vec<_> = bench.whole.iter().map(|record| record.key.id()).collect();
        ids.insert(7, bench.damaged.key.id());
        let mut loaded = bench.store.load(ids).await.unwrap().value;
        assert_eq!(loaded.remove(7).unwrap_err().kind(), ErrorKind::Corrupt);
        let loaded: Vec<_> = loaded.into_iter().map(|found| found.unwrap().unwrap()).collect();
        assert_eq!(loaded, bench.whole);
    }
}

#[tokio::test]
async fn pages_list_a_damaged_record_once_and_all_others() {
    for bench in benches().await {
        for limit in [1, 3, 100] {
            let (mut records, mut damaged, mut after) = (Vec::new(), Vec::new(), None);
            loop {
                let page = bench.store.scan(Scan { after, limit, ..Scan::default() }).await.unwrap().value;
                assert!(page.records.len() + page.damaged.len() <= limit, "{page:?}");
                records.extend(page.records);
                damaged.extend(page.damaged);
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let mut whole = bench.whole.clone();
            whole.sort_by_key(|record| record.key.id());
            assert_eq!(records, whole);
            let [(id, why)] = &*damaged else { panic!("{damaged:?}") };
            assert_eq!(id.as_bytes()[..16], bench.damaged.key.id().as_bytes()[..16]);
            assert_eq!(why.kind(), ErrorKind::Corrupt, "{why:?}");
        }
    }
}

#[tokio::test]
async fn a_swap_by_a_caller_that_had_read_the_record_replaces_what_cannot_be_read_any_more() {
    for bench in benches().await {
        let stored = swapped(bench.store.swap([again(&bench.damaged)].into()).await.unwrap().value.remove(0));
        let found = bench.store.load(vec![stored.key.id()]).await.unwrap().value.remove(0);
        assert_eq!(found.unwrap(), Some(stored));
    }
}

#[tokio::test]
async fn a_damaged_record_in_the_last_second_of_its_keep_stops_neither_its_batch_nor_a_sweep() {
    let clock = ManualClock::at(1_000_000_000_500);
    let folder = tempfile::tempdir().unwrap();
    let store = small(&folder).clock(clock.clone()).inline().open().unwrap();
    let brief = |name: &str| Swap { keep: Keep::For(Duration::from_secs(10)), ..first(&key(name)) };
    store.swap([brief(NAME)].into()).await.unwrap();
    store.swap([brief("whole")].into()).await.unwrap();
    FrameOnDisk::of(folder.path(), NAME).flip();
    clock.advance(Duration::from_millis(9_999));
    let replies = store.swap(vec![brief(NAME), brief("new")].into()).await.unwrap().value;
    assert!(matches!(&*replies, [SwapReply::Damaged(_), SwapReply::Swapped(_)]), "{replies:?}");
    clock.advance(Duration::from_millis(1));
    assert_eq!(store.sweep(10).await.unwrap().value.removed, 1, "the whole one goes on time");
    clock.advance(Duration::from_secs(1));
    assert_eq!(store.sweep(10).await.unwrap().value.removed, 1, "and the other a second later");
    swapped(store.swap([brief(NAME)].into()).await.unwrap().value.remove(0));
}

#[tokio::test]
async fn a_record_of_a_newer_format_is_refused_by_its_number_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let semel = Semel::builder(small(&folder).open().unwrap()).no_sweep().build().unwrap();
    assert!(matches!(semel.claim(Claim::new(&key(NAME))).await.unwrap(), Decision::Run(_)));
    FrameOnDisk::of(folder.path(), NAME).change_record(|record| record[4] = 3);
    for error in
        [semel.get(&key(NAME)).await.unwrap_err(), semel.claim(Claim::new(&key(NAME))).await.unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::Newer, "{error:?}");
        assert!(
            error.to_string().contains("record format 3 is newer than this release reads (2)"),
            "{error}"
        );
    }
    assert!(matches!(semel.claim(Claim::new(&key("new"))).await.unwrap(), Decision::Run(_)));
}

#[test]
fn a_folder_of_a_newer_format_is_refused_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    FileStore::open(&folder).unwrap().close().unwrap();
    let path = folder.path().join("semel.store");
    let mut mark = std::fs::read(&path).unwrap();
    mark[8] = 9;
    let checksum = crc32c::crc32c(&mark[..28]);
    mark[28..].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&path, mark).unwrap();
    let error = FileStore::open(&folder).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Newer, "{error:?}");
    assert!(error.to_string().contains("semel.store has format 9"), "{error}");
}
