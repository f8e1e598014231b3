//! Settings that change while the store is used: noticed, shown, and where the promise is broken no new claims.

use semel::store::{Store, SwapReply};
use semel::{Claim, Decision, ErrorKind, Outcome, Semel};
use semel_redis::RedisStore;
use semel_testkit::sample;
use test_services::{AppendFsync, Redis};

use crate::fake_sentinel::{Announcing, FakeSentinel};
use crate::tries::{LONG, again, first, put, swap, until};

#[tokio::test]
async fn a_server_that_begins_to_delete_records_gets_no_new_claims_and_replays_go_on() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let semel = Semel::builder(store.clone()).no_sweep().build().unwrap();
    let (done, running) = (sample::key("done").unwrap(), sample::key("running").unwrap());
    let mut permits = Vec::new();
    for key in [&done, &running] {
        match semel.claim(Claim::new(key)).await.unwrap() {
            Decision::Run(permit) => permits.push(permit),
            other => panic!("{other:?}"),
        }
    }
    let running = permits.pop().unwrap();
    permits.pop().unwrap().complete(Outcome::success("done")).await.unwrap();
    assert!(store.broken_settings().is_empty());
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).unwrap();
    store.check().await.unwrap();
    assert_eq!(store.broken_settings().len(), 1);
    let error = semel.claim(Claim::new(&sample::key("new").unwrap())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("allkeys-lru"), "{error}");
    assert!(matches!(semel.claim(Claim::new(&done)).await.unwrap(), Decision::Replay(_)));
    running.complete(Outcome::success("done too")).await.unwrap();
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).unwrap();
    store.check().await.unwrap();
    assert!(store.broken_settings().is_empty());
    assert!(matches!(semel.claim(Claim::new(&sample::key("new").unwrap())).await.unwrap(), Decision::Run(_)));
}

#[tokio::test]
async fn durability_that_is_lost_stops_new_claims_where_it_was_demanded_and_is_shown_elsewhere() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let demanding = RedisStore::connect(&format!("{}?durability=always", server.url())).await.unwrap();
    let content = RedisStore::connect(&server.url()).await.unwrap();
    let record = put(&demanding, LONG).await;
    server.ask(&["CONFIG", "SET", "appendfsync", "everysec"]).unwrap();
    for store in [&demanding, &content] {
        store.check().await.unwrap();
        assert_eq!(store.broken_settings().len(), 1, "{:?}", store.broken_settings());
        assert!(store.survives().contains("the last second"), "{}", store.survives());
    }
    put(&content, LONG).await;
    let batch = [first(&sample::key("new").unwrap(), LONG), again(&record, LONG), first(&record.key, LONG)];
    let replies = demanding.swap(batch.into_iter().collect()).await.unwrap().value;
    assert!(
        matches!(&replies[0], SwapReply::Refused(why) if why.kind() == ErrorKind::Unavailable),
        "{replies:?}"
    );
    // It is the record of a run that was granted before.
    assert!(matches!(replies[1], SwapReply::Swapped(_)), "{replies:?}");
    assert!(matches!(&replies[2], SwapReply::Stale(Some(found)) if found.key == record.key), "{replies:?}");
    server.ask(&["CONFIG", "SET", "appendfsync", "always"]).unwrap();
    demanding.check().await.unwrap();
    put(&demanding, LONG).await;
}

#[tokio::test]
async fn settings_that_were_accepted_at_connect_are_not_broken() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    store.check().await.unwrap();
    assert!(store.broken_settings().is_empty());
}

#[tokio::test]
async fn a_failover_to_a_server_with_other_settings_is_noticed_at_its_first_use() {
    let good = Redis::start(AppendFsync::Always).unwrap();
    let cache = Redis::start_with(&[("maxmemory-policy", "allkeys-lru")]).unwrap();
    let sentinel = FakeSentinel::start(good.port(), Announcing::Yes).await;
    let store = RedisStore::connect(&FakeSentinel::url(&[&sentinel])).await.unwrap();
    put(&store, LONG).await;
    assert!(store.broken_settings().is_empty());
    sentinel.name(cache.port(), 2);
    sentinel.announce();
    until("new claims are refused", || async {
        let reply = swap(&store, first(&sample::key("new").unwrap(), LONG)).await.ok()?;
        matches!(reply, SwapReply::Refused(_)).then_some(())
    })
    .await;
    assert!(store.broken_settings()[0].setting.contains(&cache.port().to_string()));
}

#[tokio::test]
async fn what_survives_is_said_by_what_was_found() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    assert!(store.survives().starts_with("kill -9, a crash"), "{}", store.survives());
    assert!(store.survives().ends_with("no failover: no replica is attached"), "{}", store.survives());
    let _replica = server.replica().unwrap();
    store.check().await.unwrap();
    assert!(store.survives().contains("had not reached the replica"), "{}", store.survives());
}

#[tokio::test]
async fn a_store_is_ready_while_its_server_takes_writes() {
    let mut server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    store.ready().await.unwrap();
    assert!(server.ask(&["EXISTS", "semel:{000}:ready"]).unwrap() == ["1"], "it makes a real write");
    server.kill().unwrap();
    assert!(store.ready().await.is_err());
    assert!(store.ready().await.is_err());
}
