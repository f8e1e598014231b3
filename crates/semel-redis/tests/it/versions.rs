//! Versions grow also if the record, the counter or the clock is lost.

use std::time::Duration;

use semel::record::Keep;
use semel_redis::RedisStore;
use semel_testkit::sample;
use test_services::{AppendFsync, Redis};

use crate::tries::{LONG, again, first, load, pass, put, write};

const COUNTER: &str = "semel:v";

#[tokio::test]
async fn versions_grow_after_redis_forgot_the_record() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let key = sample::key("forgotten").unwrap();
    let before = write(&store, first(&key, Keep::For(Duration::from_millis(5)))).await;
    pass(&store, Duration::from_millis(10)).await;
    assert_eq!(load(&store, &key).await.unwrap(), None);
    let after = write(&store, first(&key, LONG)).await;
    assert!(after.version > before.version);
}

#[tokio::test]
async fn versions_grow_after_the_counter_was_lost() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let mut record = put(&store, LONG).await;
    for _ in 0..50 {
        server.ask(&["DEL", COUNTER]).unwrap();
        let next = write(&store, again(&record, LONG)).await;
        assert!(next.version > record.version);
        record = next;
    }
}

#[tokio::test]
async fn versions_grow_while_the_clock_is_behind_them() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let mut record = put(&store, LONG).await;
    // As if the counter had been moved by a server whose clock was a day ahead.
    let ahead = record.version.get() + 86_400_000_000;
    server.ask(&["SET", COUNTER, &ahead.to_string()]).unwrap();
    for step in 1..=50 {
        record = write(&store, again(&record, LONG)).await;
        assert_eq!(record.version.get(), ahead + step);
        assert!(record.changed_at.as_micros() < ahead, "moments come from the clock alone");
        assert_eq!(load(&store, &record.key).await.unwrap().as_ref(), Some(&record));
    }
}
