//! Sweeps that run at the same time as others, and as writers.

use std::time::Duration;

use semel::record::Keep;
use semel::store::{Scan, Store, SwapReply};
use semel_redis::RedisStore;
use semel_testkit::sample;
use test_services::{AppendFsync, Redis, RedisCluster};

use crate::tries::{LONG, again, first, load, pass, put, write};

const BRIEF: Keep = Keep::For(Duration::from_millis(1));

async fn put_many(store: &RedisStore, count: usize) {
    let swaps = (0..count).map(|_| first(&sample::key("many").unwrap(), BRIEF)).collect();
    let replies = store.swap(swaps).await.unwrap().value;
    assert!(replies.iter().all(|reply| matches!(reply, SwapReply::Swapped(_))));
}

/// Sweeps until nothing is left, and returns how many records were removed.
async fn sweep_all(store: RedisStore, limit: usize) -> usize {
    let mut removed = 0;
    loop {
        let swept = store.sweep(limit).await.unwrap().value;
        assert!(swept.removed <= limit, "{swept:?}");
        removed += swept.removed;
        if !swept.more_left {
            return removed;
        }
    }
}

async fn two_sweepers_remove_each_record_once(store: RedisStore) {
    put_many(&store, 2_000).await;
    let lasting = put(&store, LONG).await;
    pass(&store, Duration::from_millis(5)).await;
    let sweepers = [50, 300].map(|limit| tokio::spawn(sweep_all(store.clone(), limit)));
    let mut removed = 0;
    for sweeper in sweepers {
        removed += sweeper.await.unwrap();
    }
    assert_eq!(removed, 2_000);
    assert_eq!(sweep_all(store.clone(), 100).await, 0);
    let page = store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap().value;
    assert_eq!(page.records, [lasting]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sweepers_of_one_server_remove_each_record_once() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    two_sweepers_remove_each_record_once(RedisStore::connect(&server.url()).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sweepers_of_a_cluster_remove_each_record_once() {
    let cluster = RedisCluster::start(AppendFsync::EverySecond).unwrap();
    two_sweepers_remove_each_record_once(RedisStore::connect(&cluster.url()).await.unwrap()).await;
}

#[tokio::test]
async fn a_sweep_spares_what_was_rewritten_and_takes_what_was_not() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let brief = Keep::For(Duration::from_millis(250));
    let (kept, lost) = (put(&store, brief).await, put(&store, brief).await);
    let kept = write(&store, again(&kept, LONG)).await;
    pass(&store, Duration::from_millis(300)).await;
    assert_eq!(sweep_all(store.clone(), 10).await, 1);
    assert_eq!(load(&store, &kept.key).await.unwrap().as_ref(), Some(&kept));
    assert_eq!(load(&store, &lost.key).await.unwrap(), None);
}

#[tokio::test]
async fn a_record_that_a_sweep_spared_is_swept_when_its_new_keep_is_over() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let brief = put(&store, Keep::For(Duration::from_millis(200))).await;
    let longer = write(&store, again(&brief, Keep::For(Duration::from_secs(2)))).await;
    let forever = put(&store, Keep::For(Duration::from_millis(200))).await;
    let forever = write(&store, again(&forever, Keep::Forever)).await;
    pass(&store, Duration::from_millis(250)).await;
    assert_eq!(sweep_all(store.clone(), 10).await, 0);
    assert_eq!(load(&store, &longer.key).await.unwrap().as_ref(), Some(&longer));
    pass(&store, Duration::from_secs(2)).await;
    assert_eq!(sweep_all(store.clone(), 10).await, 1);
    assert_eq!(load(&store, &longer.key).await.unwrap(), None);
    assert_eq!(load(&store, &forever.key).await.unwrap().as_ref(), Some(&forever));
    // A keep again, after one for ever.
    write(&store, again(&forever, Keep::For(Duration::from_millis(1)))).await;
    pass(&store, Duration::from_millis(5)).await;
    assert_eq!(sweep_all(store.clone(), 10).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn sweepers_never_take_what_writers_keep_alive() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let sweeper = tokio::spawn({
        let store = store.clone();
        async move {
            for _ in 0..200 {
                store.sweep(1_000).await.unwrap();
            }
        }
    });
    // Claims of keys whose last life is just over, while the sweeper checks the same ids.
    let keys: Vec<_> = (0..50).map(|_| sample::key("reborn").unwrap()).collect();
    for _ in 0..20 {
        for key in &keys {
            let found = load(&store, key).await.unwrap();
            let swap = match found {
                Some(found) => again(&found, BRIEF),
                None => first(key, BRIEF),
            };
            let _ = store.swap([swap].into()).await.unwrap();
        }
        let lasting = match load(&store, &keys[0]).await.unwrap() {
            Some(found) => store.swap([again(&found, LONG)].into()).await.unwrap(),
            None => store.swap([first(&keys[0], LONG)].into()).await.unwrap(),
        };
        if let SwapReply::Swapped(record) = &lasting.value[0] {
            pass(&store, Duration::from_millis(3)).await;
            assert_eq!(load(&store, &keys[0]).await.unwrap().as_ref(), Some(record));
            write(&store, again(record, BRIEF)).await;
        }
    }
    sweeper.await.unwrap();
}

#[tokio::test]
async fn what_redis_forgot_by_itself_leaves_nothing_behind_after_a_sweep() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    put_many(&store, 300).await;
    pass(&store, Duration::from_millis(5)).await;
    sweep_all(store, 1_000).await;
    let left = server.ask(&["KEYS", "*"]).unwrap();
    assert!(left.iter().all(|key| key.ends_with(":v")), "{left:?}");
}

#[tokio::test]
async fn a_record_that_was_listed_is_swept_once_wherever_its_entries_are() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    // Listed, and then kept for much shorter than before: it has an entry in two sets.
    let day = Keep::For(Duration::from_hours(24));
    let record = put(&store, day).await;
    let scan = || store.scan(Scan { limit: 10, ..Scan::default() });
    assert_eq!(scan().await.unwrap().value.records, std::slice::from_ref(&record));
    write(&store, again(&record, BRIEF)).await;
    put_many(&store, 3).await;
    pass(&store, Duration::from_millis(5)).await;
    assert_eq!(sweep_all(store.clone(), 100).await, 4);
    assert!(scan().await.unwrap().value.records.is_empty());
    let left = server.ask(&["KEYS", "*"]).unwrap();
    assert!(left.iter().all(|key| key.ends_with(":v")), "{left:?}");
}

#[tokio::test]
async fn a_record_whose_keep_was_shortened_before_it_was_listed_is_swept_in_time() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let record = put(&store, Keep::For(Duration::from_hours(24))).await;
    write(&store, again(&record, Keep::For(Duration::from_millis(500)))).await;
    let _ = store.scan(Scan { limit: 10, ..Scan::default() }).await.unwrap();
    pass(&store, Duration::from_millis(510)).await;
    assert_eq!(sweep_all(store.clone(), 100).await, 1);
}

#[tokio::test]
async fn a_large_number_of_new_records_is_listed_in_order_also_while_the_memory_is_full() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let keys: Vec<_> = (0..1_500).map(|_| sample::key("many").unwrap()).collect();
    store.swap(keys.iter().map(|key| first(key, LONG)).collect()).await.unwrap();
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    let page = store.scan(Scan { limit: 2_000, ..Scan::default() }).await.unwrap().value;
    let mut ids: Vec<_> = keys.iter().map(semel::Key::id).collect();
    ids.sort_unstable();
    assert_eq!(page.records.iter().map(|record| record.key.id()).collect::<Vec<_>>(), ids);
}
