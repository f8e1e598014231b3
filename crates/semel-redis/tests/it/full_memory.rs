//! A server whose memory is full: no new records, and everything that was granted is settled.

use std::time::Duration;

use semel::record::Keep;
use semel::store::{Store, SwapReply, Swaps};
use semel::{Claim, Decision, ErrorKind, Outcome, Semel};
use semel_redis::RedisStore;
use semel_testkit::sample;
use test_services::{AppendFsync, Redis, RedisCluster};

use crate::tries::{LONG, again, first, load, pass, put, swap, write};

fn fill(server: &Redis) {
    server.ask(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
}

#[tokio::test]
async fn a_full_memory_takes_no_new_record_and_every_change_of_one_that_is_there() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let (one, two) = (put(&store, LONG).await, put(&store, LONG).await);
    fill(&server);
    let new = sample::key("full").unwrap();
    let batch = vec![
        first(&new, LONG),
        again(&one, LONG),
        first(&two.key, LONG),
        first(&new, LONG),
        again(&two, LONG),
    ];
    for batch in [batch.clone(), batch.into_iter().skip(1).collect()] {
        let replies = store.swap(Swaps::from_vec(batch)).await.unwrap().value;
        let (full, there): (Vec<_>, Vec<_>) =
            replies.into_iter().partition(|reply| matches!(reply, SwapReply::Full));
        assert!(!full.is_empty());
        assert!(
            there.iter().all(|reply| !matches!(reply, SwapReply::Damaged(_) | SwapReply::Stale(None))),
            "{there:?}"
        );
    }
    assert!(load(&store, &one.key).await.unwrap().unwrap().version > one.version);
    assert!(load(&store, &two.key).await.unwrap().unwrap().version > two.version);
    assert_eq!(load(&store, &new).await.unwrap(), None);
    server.ask(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    assert!(matches!(swap(&store, first(&new, LONG)).await.unwrap(), SwapReply::Swapped(_)));
}

#[tokio::test]
async fn runs_that_were_granted_complete_and_release_and_replay_while_the_memory_is_full() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let semel = Semel::builder(store.clone()).no_sweep().build().unwrap();
    let (done, released) = (sample::key("done").unwrap(), sample::key("released").unwrap());
    let mut permits = Vec::new();
    for key in [&done, &released] {
        match semel.claim(Claim::new(key)).await.unwrap() {
            Decision::Run(permit) => permits.push(permit),
            other => panic!("{other:?}"),
        }
    }
    fill(&server);
    permits.pop().unwrap().release("later").await.unwrap();
    permits.pop().unwrap().complete(Outcome::success(vec![7; 10_000])).await.unwrap();
    assert!(matches!(semel.claim(Claim::new(&done)).await.unwrap(), Decision::Replay(_)));
    assert!(matches!(semel.claim(Claim::new(&released)).await.unwrap(), Decision::Run(_)));
    let error = semel.claim(Claim::new(&sample::key("new").unwrap())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full, "{error:?}");
    assert_eq!(store.ready().await.unwrap_err().kind(), ErrorKind::Full);
}

#[tokio::test]
async fn a_cluster_whose_memory_is_full_settles_too() {
    let cluster = RedisCluster::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&cluster.url()).await.unwrap();
    let mut records = Vec::new();
    for _ in 0..20 {
        records.push(put(&store, LONG).await);
    }
    for n in 0..3 {
        cluster.ask(cluster.master(n).unwrap(), &["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    }
    for record in &records {
        write(&store, again(record, LONG)).await;
        let new = swap(&store, first(&sample::key("new").unwrap(), LONG)).await.unwrap();
        assert!(matches!(new, SwapReply::Full), "{new:?}");
    }
}

#[tokio::test]
async fn a_sweep_makes_room_while_the_memory_is_full() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let brief = Keep::For(Duration::from_millis(100));
    let longer = put(&store, brief).await;
    let longer = write(&store, again(&longer, LONG)).await;
    put(&store, brief).await;
    // Nothing but a record whose entry must be moved, and one that is past its keep.
    pass(&store, Duration::from_millis(150)).await;
    fill(&server);
    assert_eq!(store.sweep(10).await.unwrap().value.removed, 1);
    assert_eq!(load(&store, &longer.key).await.unwrap().as_ref(), Some(&longer));
}
