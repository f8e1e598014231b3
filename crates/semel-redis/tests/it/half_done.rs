//! Batches that a server stops half-way: unknown, never "nothing happened".

use semel::store::{Store, SwapReply, Swaps};
use semel::{ErrorKind, Key};
use semel_redis::{ACL_RULES, RedisStore};
use semel_testkit::sample;
use test_services::{AppendFsync, Redis, RedisCluster};

use crate::access::{allow, url};
use crate::tries::{LONG, again, first, load, swap, write};

fn tag(key: &Key) -> String {
    key.id().to_string()[..3].to_owned()
}

/// Two keys with different tags.
fn two_keys() -> (Key, Key) {
    let one = sample::key("one").unwrap();
    loop {
        let two = sample::key("two").unwrap();
        if tag(&two) != tag(&one) {
            return (one, two);
        }
    }
}

/// Rights to everything but the set of due entries of this key.
fn without_due_set_of(other: &Key) -> String {
    let patterns = format!("~semel:v ~semel:*:r:* ~semel:{{{}}}:due", tag(other));
    ACL_RULES.replace("~semel:*", &patterns)
}

#[tokio::test]
async fn a_script_that_stops_after_a_write_is_unknown_and_one_that_stops_before_it_is_not() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    allow(&server, "semel", ACL_RULES);
    let store = RedisStore::connect(&url(&server, "semel")).await.unwrap();
    let (one, two) = two_keys();
    allow(&server, "semel", &without_due_set_of(&one));
    let error = store.swap(Swaps::from_vec(vec![first(&one, LONG), first(&two, LONG)])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
    let error = swap(&store, first(&two, LONG)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error:?}");
    allow(&server, "semel", ACL_RULES);
    assert!(load(&store, &one).await.unwrap().is_some(), "it was written before the script stopped");
    assert_eq!(load(&store, &two).await.unwrap(), None, "a record without an entry in its set must not stay");
    assert!(matches!(swap(&store, first(&two, LONG)).await.unwrap(), SwapReply::Swapped(_)));
}

#[tokio::test]
async fn a_first_write_that_cannot_be_undone_is_unknown() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    allow(&server, "semel", ACL_RULES);
    let store = RedisStore::connect(&url(&server, "semel")).await.unwrap();
    let (one, two) = two_keys();
    allow(&server, "semel", &without_due_set_of(&one).replace("+unlink ", "-unlink "));
    let error = swap(&store, first(&two, LONG)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "{error:?}");
}

#[tokio::test]
async fn a_set_of_another_type_fails_its_own_records_alone() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let (one, two) = two_keys();
    server.ask(&["SET", &format!("semel:{{{}}}:due", tag(&two)), "no set"]).unwrap();
    let batch = vec![first(&one, LONG), first(&two, LONG), first(&one, LONG)];
    let replies = store.swap(Swaps::from_vec(batch)).await.unwrap().value;
    assert!(matches!(replies[0], SwapReply::Swapped(_)), "{replies:?}");
    assert!(matches!(replies[1], SwapReply::Damaged(_)), "{replies:?}");
    assert!(matches!(replies[2], SwapReply::Stale(Some(_))), "{replies:?}");
    assert_eq!(load(&store, &two).await.unwrap(), None);
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
