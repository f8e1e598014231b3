//! One record that cannot be read: refused alone, with its reason, and never written over.

use std::sync::Arc;
use std::time::Duration;

use semel::record::{Keep, Record};
use semel::store::{Scan, Store, Swap, SwapReply, Swaps};
use semel::{Claim, Decision, ErrorKind, Key, Outcome, Semel};
use semel_redis::RedisStore;
use semel_testkit::sample;
use test_services::{AppendFsync, Redis, RedisCluster};
use tokio::task::JoinSet;

use crate::tries::{LONG, again, first, pass, put, swap};

const OTHERS: usize = 50;

/// What became of the record in Redis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    /// Some bytes of its draft are others.
    Changed,
    CutShort,
    Empty,
    /// It holds the record of another key.
    AnotherKey,
    /// It is not a string.
    List,
}

const ALL: [Damage; 5] = [Damage::Changed, Damage::CutShort, Damage::Empty, Damage::AnotherKey, Damage::List];

/// A server with some whole records and one that cannot be read.
struct Bench {
    server: Redis,
    store: RedisStore,
    whole: Vec<Arc<Record>>,
    damaged: Arc<Record>,
}

fn name(key: &Key) -> String {
    let id = key.id().to_string();
    format!("semel:{{{}}}:r:{id}", &id[..3])
}

fn swapped(reply: SwapReply) -> Arc<Record> {
    match reply {
        SwapReply::Swapped(record) => record,
        other => panic!("{other:?}"),
    }
}

impl Bench {
    async fn new(damage: Damage) -> Self {
        let server = Redis::start(AppendFsync::EverySecond).unwrap();
        let store = RedisStore::connect(&server.url()).await.unwrap();
        let mut whole = Vec::new();
        for _ in 0..9 {
            whole.push(put(&store, LONG).await);
        }
        let damaged = put(&store, LONG).await;
        let name = name(&damaged.key);
        let ask = |words: &[&str]| server.ask(words).unwrap();
        match damage {
            Damage::Changed => drop(ask(&["SETRANGE", &name, "50", "????"])),
            Damage::CutShort => drop(ask(&["SET", &name, "too short"])),
            Damage::Empty => drop(ask(&["SET", &name, ""])),
            Damage::AnotherKey => drop(ask(&["COPY", &self::name(&whole[0].key), &name, "REPLACE"])),
            Damage::List => {
                ask(&["DEL", &name]);
                ask(&["RPUSH", &name, "a", "b"]);
            }
        }
        Self { server, store, whole, damaged }
    }

    /// What Redis holds in the place of the damaged record.
    fn dump(&self) -> Vec<String> {
        self.server.ask(&["DUMP", &name(&self.damaged.key)]).unwrap()
    }
}

#[tokio::test]
async fn a_batch_of_swaps_is_answered_but_for_the_record_that_cannot_be_read() {
    for damage in ALL {
        let bench = Bench::new(damage).await;
        let before = bench.dump();
        assert!(!before.is_empty());
        let mut batch: Swaps = (0..OTHERS).map(|_| first(&sample::key("new").unwrap(), LONG)).collect();
        batch.insert(OTHERS / 2, first(&bench.damaged.key, LONG));
        batch.extend(bench.whole.iter().map(|record| again(record, LONG)));
        let mut replies = bench.store.swap(batch).await.unwrap().value;
        match replies.remove(OTHERS / 2) {
            SwapReply::Damaged(why) => {
                assert_eq!(why.kind(), ErrorKind::Corrupt, "{why:?}");
                assert!(why.to_string().contains(&name(&bench.damaged.key)), "{why}");
            }
            other => panic!("{damage:?}: {other:?}"),
        }
        assert_eq!(replies.into_iter().map(swapped).count(), OTHERS + bench.whole.len());
        assert_eq!(bench.dump(), before, "{damage:?}: what cannot be read is not written over");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_and_completes_beside_a_damaged_key_succeed_and_only_that_key_is_refused() {
    for damage in ALL {
        let bench = Bench::new(damage).await;
        let semel = Semel::builder(bench.store.clone()).no_sweep().build().unwrap();
        let damaged = bench.damaged.key.clone();
        let mut claims = JoinSet::new();
        for key in (0..OTHERS).map(|_| sample::key("claim").unwrap()).chain([damaged.clone()]) {
            let semel = semel.clone();
            claims.spawn(async move { (key.clone(), semel.claim(Claim::new(&key)).await) });
        }
        let mut permits = Vec::new();
        for (key, claimed) in claims.join_all().await {
            match claimed {
                Ok(Decision::Run(permit)) if key != damaged => permits.push(permit),
                Err(error) if key == damaged => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}"),
                other => panic!("{damage:?}: {other:?}"),
            }
        }
        let mut completes = JoinSet::new();
        for permit in permits {
            completes.spawn(async move { permit.complete(Outcome::success("done")).await });
        }
        let again = semel.claim(Claim::new(&damaged));
        let (ended, again) = tokio::join!(completes.join_all(), again);
        assert_eq!(ended.into_iter().flatten().count(), OTHERS);
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

/// A list under a record's name is absent for MGET, so only swaps find it.
fn seen_by_loads() -> impl Iterator<Item = Damage> {
    ALL.into_iter().filter(|damage| *damage != Damage::List)
}

#[tokio::test]
async fn a_load_of_ten_with_one_damaged_has_nine_records() {
    for damage in seen_by_loads() {
        let bench = Bench::new(damage).await;
        let mut ids: Vec<_> = bench.whole.iter().map(|record| record.key.id()).collect();
        ids.insert(7, bench.damaged.key.id());
        let mut loaded = bench.store.load(ids).await.unwrap().value;
        let error = loaded.remove(7).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
        let loaded: Vec<_> = loaded.into_iter().map(|found| found.unwrap().unwrap()).collect();
        assert_eq!(loaded, bench.whole);
    }
}

#[tokio::test]
async fn pages_list_a_damaged_record_once_and_all_others() {
    for damage in seen_by_loads() {
        let bench = Bench::new(damage).await;
        for limit in [1, 3, 100] {
            let (mut records, mut damaged, mut after) = (Vec::new(), Vec::new(), None);
            loop {
                let page = bench.store.scan(Scan { after, limit, ..Scan::default() }).await.unwrap().value;
                assert!(page.records.len() + page.damaged.len() <= limit, "{page:?}");
                records.extend(page.records);
                damaged.extend(page.damaged.into_iter().map(|(id, why)| (id, why.kind())));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            let mut whole = bench.whole.clone();
            whole.sort_by_key(|record| record.key.id());
            assert_eq!(records, whole);
            assert_eq!(damaged, [(bench.damaged.key.id(), ErrorKind::Corrupt)], "{damage:?}");
        }
    }
}

#[tokio::test]
async fn a_swap_by_a_caller_that_had_read_the_record_replaces_what_cannot_be_read_any_more() {
    let bench = Bench::new(Damage::Changed).await;
    let stored = swapped(swap(&bench.store, again(&bench.damaged, LONG)).await.unwrap());
    let found = bench.store.load(vec![stored.key.id()]).await.unwrap().value.remove(0);
    assert_eq!(found.unwrap(), Some(stored));
}

#[tokio::test]
async fn what_is_too_short_for_stamps_is_not_replaced_even_if_it_begins_with_the_expected_version() {
    let bench = Bench::new(Damage::CutShort).await;
    let mut swap: Swap = again(&bench.damaged, LONG);
    swap.expected = Some(semel::record::Version::new(u64::from_be_bytes(*b"too shor")));
    let reply = self::swap(&bench.store, swap).await.unwrap();
    assert!(matches!(reply, SwapReply::Damaged(_)), "{reply:?}");
}

#[tokio::test]
async fn a_sweep_takes_what_is_past_its_keep_and_leaves_what_it_cannot_read() {
    const BRIEF: Keep = Keep::For(Duration::from_millis(50));
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let mut damaged = Vec::new();
    for value in ["", "too short", "long enough for the stamps of a record, and none"] {
        let name = name(&put(&store, BRIEF).await.key);
        server.ask(&["SET", &name, value]).unwrap();
        damaged.push(name);
    }
    let list = name(&put(&store, BRIEF).await.key);
    server.ask(&["DEL", &list]).unwrap();
    server.ask(&["RPUSH", &list, "a"]).unwrap();
    damaged.push(list);
    put(&store, BRIEF).await;
    pass(&store, Duration::from_millis(60)).await;
    for removed in [1, 0] {
        assert_eq!(store.sweep(100).await.unwrap().value.removed, removed);
    }
    for name in &damaged {
        assert_eq!(server.ask(&["EXISTS", name]).unwrap(), ["1"], "{name}");
    }
}

#[tokio::test]
async fn a_record_of_a_newer_format_is_refused_by_its_number_and_alone() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let semel = Semel::builder(store.clone()).no_sweep().build().unwrap();
    let key = put(&store, LONG).await.key.clone();
    // Behind 32 bytes of stamps and four of magic.
    server.ask(&["SETRANGE", &name(&key), "36", "\u{3}"]).unwrap();
    for error in [semel.get(&key).await.unwrap_err(), semel.claim(Claim::new(&key)).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Newer, "{error:?}");
        assert!(
            error.to_string().contains("record format 3 is newer than this release reads (2)"),
            "{error}"
        );
    }
    let other = Claim::new(&sample::key("other").unwrap());
    assert!(matches!(semel.claim(other).await.unwrap(), Decision::Run(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_record_of_a_cluster_is_refused_alone() {
    let cluster = RedisCluster::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&cluster.url()).await.unwrap();
    let mut whole = Vec::new();
    for _ in 0..20 {
        whole.push(put(&store, LONG).await);
    }
    let damaged = whole.swap_remove(7);
    // Only the master of its slot takes this.
    let masters = [0, 1, 2].map(|n| cluster.master(n).unwrap());
    let changed = masters.map(|port| cluster.ask(port, &["SET", &name(&damaged.key), "too short"]).is_ok());
    assert_eq!(changed.iter().filter(|changed| **changed).count(), 1);
    let mut batch: Swaps = whole.iter().map(|record| again(record, LONG)).collect();
    batch.insert(3, first(&damaged.key, LONG));
    let mut replies = store.swap(batch).await.unwrap().value;
    let reply = replies.remove(3);
    assert!(matches!(&reply, SwapReply::Damaged(why) if why.kind() == ErrorKind::Corrupt), "{reply:?}");
    assert_eq!(replies.into_iter().map(swapped).count(), whole.len());
    let ids = whole.iter().chain([&damaged]).map(|record| record.key.id()).collect();
    let mut loaded = store.load(ids).await.unwrap().value;
    assert_eq!(loaded.pop().unwrap().unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(loaded.into_iter().all(|found| found.unwrap().is_some()));
}
