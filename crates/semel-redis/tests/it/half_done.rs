//! Batches that a server stops half-way: unknown, never "nothing happened".

use semel::store::{Store, SwapReply, Swaps};
use semel::{ErrorKind, Key};
use semel_redis::{ACL_RULES, RedisStore};
use semel_testkit::sample;
use test_services::{AppendFsync, Redis, RedisCluster};

use crate::access::{allow, url};
use crate::tries::{LONG, again, first, load, put, swap, write};

/// Rights to everything but the set of due entries.
fn without_due_set() -> String {
    ACL_RULES.replace("~semel:*", "~semel:v ~semel:*:r:*")
}

async fn absent(store: &RedisStore, key: &Key) -> bool {
    load(store, key).await.unwrap().is_none()
}

#[tokio::test]
async fn a_script_that_stops_after_a_write_is_unknown_and_one_that_stops_before_it_is_not() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    allow(&server, "semel", ACL_RULES);
    let store = RedisStore::connect(&url(&server, "semel")).await.unwrap();
    let there = put(&store, LONG).await;
    let (one, two) = (sample::key("one").unwrap(), sample::key("two").unwrap());
    allow(&server, "semel", &without_due_set());
    let error = store.swap([first(&one, LONG), again(&there, LONG)].into_iter().collect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
    let error = store.swap([first(&one, LONG), first(&two, LONG)].into_iter().collect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    allow(&server, "semel", ACL_RULES);
    let written = load(&store, &there.key).await.unwrap().unwrap();
    assert!(written.version > there.version, "it was written before the script stopped");
    // A record without an entry in the set must not stay.
    assert!(absent(&store, &one).await && absent(&store, &two).await);
    assert!(matches!(swap(&store, first(&two, LONG)).await.unwrap(), SwapReply::Swapped(_)));
}

#[tokio::test]
async fn a_first_write_that_cannot_be_undone_is_unknown() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    allow(&server, "semel", ACL_RULES);
    let store = RedisStore::connect(&url(&server, "semel")).await.unwrap();
    allow(&server, "semel", &without_due_set().replace("+unlink ", "-unlink "));
    let error = swap(&store, first(&sample::key("one").unwrap(), LONG)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
}

#[tokio::test]
async fn a_set_of_another_type_refuses_new_records_and_no_others() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let there = put(&store, LONG).await;
    server.ask(&["DEL", "semel:new"]).unwrap();
    server.ask(&["SET", "semel:new", "no set"]).unwrap();
    let new = sample::key("new").unwrap();
    let replies =
        store.swap([first(&new, LONG), first(&there.key, LONG)].into_iter().collect()).await.unwrap().value;
    assert!(matches!(replies[0], SwapReply::Damaged(_)), "{replies:?}");
    assert!(matches!(replies[1], SwapReply::Stale(Some(_))), "{replies:?}");
    assert!(absent(&store, &new).await);
    write(&store, again(&there, LONG)).await;
}

#[tokio::test]
async fn a_batch_that_one_master_of_a_cluster_refuses_is_unknown() {
    let cluster = RedisCluster::start(AppendFsync::EverySecond).unwrap();
    for port in cluster.ports() {
        let mut words = vec!["ACL", "SETUSER", "semel", "on", ">s3cret"];
        words.extend(ACL_RULES.split_ascii_whitespace());
        cluster.ask(port, &words).unwrap();
    }
    let url = cluster.url().replace("://", "://semel:s3cret@");
    let store = RedisStore::connect(&url).await.unwrap();
    let keys: Vec<_> = (0..60).map(|_| sample::key("spread").unwrap()).collect();
    let refusing = cluster.master(1).unwrap();
    cluster.ask(refusing, &["ACL", "SETUSER", "semel", "-evalsha"]).unwrap();
    let error = store.swap(keys.iter().map(|key| first(key, LONG)).collect()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
    let mut written = 0;
    let mut refused = 0;
    for key in &keys {
        if load(&store, key).await.unwrap().is_some() {
            written += 1;
        } else {
            refused += 1;
            let error = swap(&store, first(key, LONG)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
        }
    }
    assert!(written > 0 && refused > 0, "{written} and {refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_batches_for_one_record_one_wins() {
    let url = test_services::redis_url().unwrap();
    let (left, right) = (RedisStore::connect(&url).await.unwrap(), RedisStore::connect(&url).await.unwrap());
    for _ in 0..50 {
        let records = [write(&left, first(&sample::key("a").unwrap(), LONG)).await];
        let batch = |store: RedisStore| {
            let swaps: Swaps = records.iter().chain(&records).map(|record| again(record, LONG)).collect();
            tokio::spawn(async move { store.swap(swaps).await.unwrap().value })
        };
        let (one, two) = (batch(left.clone()), batch(right.clone()));
        let replies = [one.await.unwrap(), two.await.unwrap()].concat();
        let won = replies.iter().filter(|reply| matches!(reply, SwapReply::Swapped(_))).count();
        assert_eq!(won, 1, "{replies:?}");
    }
}
