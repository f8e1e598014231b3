//! A master behind a sentinel, and the one that is promoted when it is gone.

use semel::ErrorKind;
use semel_redis::RedisStore;
use semel_testkit::sample;
use test_services::{AppendFsync, Redis, Sentinel};

use crate::tries::{LONG, first, load, put, swap, until};

#[tokio::test]
async fn a_failover_is_followed_to_the_new_master() {
    let mut master = Redis::start(AppendFsync::Always).unwrap();
    let replica = master.replica().unwrap();
    let sentinel = Sentinel::start(&master).unwrap();
    let url = format!("redis+sentinel://127.0.0.1:{}/{}", sentinel.port(), Sentinel::MASTER);
    let store = RedisStore::connect(&url).await.unwrap();
    let record = put(&store, LONG).await;
    let copy = RedisStore::connect(&url).await.unwrap();
    // What has not reached the replica is lost with the master.
    until("the replica has it", || async {
        (replica.ask(&["DBSIZE"]).unwrap() == master.ask(&["DBSIZE"]).unwrap()).then_some(())
    })
    .await;
    master.kill().unwrap();
    let promoted = sentinel.until_master_is_not(master.port()).unwrap();
    assert_eq!(promoted, replica.port());
    let key = sample::key("after").unwrap();
    let after = until("the new master takes writes", || async {
        swap(&store, first(&key, LONG)).await.ok().map(drop)
    });
    after.await;
    assert_eq!(load(&store, &record.key).await.unwrap().as_ref(), Some(&record));
    // A store that asked for nothing meanwhile finds the new master as well.
    until("another store finds it", || async { load(&copy, &key).await.ok().flatten() }).await;
}

#[tokio::test]
async fn a_master_that_no_sentinel_knows_is_named() {
    let master = Redis::start(AppendFsync::Always).unwrap();
    let _replica = master.replica().unwrap();
    let sentinel = Sentinel::start(&master).unwrap();
    let url = format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/other", sentinel.port());
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("`other`"), "{error}");
}
