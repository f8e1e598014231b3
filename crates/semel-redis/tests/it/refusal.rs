//! Servers that cannot keep the promise are refused, and what was found is returned.

use semel::ErrorKind;
use semel_redis::{ACL_RULES, Durability, RedisStore, Verdict};
use semel_testkit::sample;
use test_services::{AppendFsync, Redis};

use crate::tries::{LONG, first, put, swap};

#[tokio::test]
async fn a_server_that_deletes_records_for_room_is_refused() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    for policy in ["allkeys-lru", "volatile-lfu", "allkeys-random"] {
        server.ask(&["CONFIG", "SET", "maxmemory-policy", policy]).unwrap();
        let error = RedisStore::connect(&server.url()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(policy) && error.to_string().contains("noeviction"), "{error}");
    }
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]).unwrap();
    RedisStore::connect(&server.url()).await.unwrap();
}

#[tokio::test]
async fn a_server_that_hides_its_configuration_is_refused_by_what_it_does_show() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    let rights = ACL_RULES.replace("+config|get ", "");
    let mut words = vec!["ACL", "SETUSER", "limited", "on", ">s3cret"];
    words.extend(rights.split_ascii_whitespace());
    server.ask(&words).unwrap();
    let url = format!("redis://limited:s3cret@127.0.0.1:{}", server.port());
    let store = RedisStore::connect(&url).await.unwrap();
    assert_eq!(store.durability(), Durability::Unreadable);
    let findings = store.check().await.unwrap();
    let verdict = |name: &str| {
        findings.iter().find(|finding| finding.setting.starts_with(name)).map(|finding| finding.verdict)
    };
    assert_eq!(verdict("durability"), Some(Verdict::Unreadable));
    assert_eq!(verdict("maxmemory-policy"), Some(Verdict::Kept));
    server.ask(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).unwrap();
    assert!(RedisStore::connect(&url).await.unwrap_err().to_string().contains("allkeys-lru"));
}

#[tokio::test]
async fn a_replica_is_refused_until_it_is_promoted() {
    let master = Redis::start(AppendFsync::Always).unwrap();
    let mut replica = master.replica().unwrap();
    let error = RedisStore::connect(&replica.url()).await.unwrap_err();
    assert!(error.to_string().contains("is a replica"), "{error}");
    replica.promote().unwrap();
    RedisStore::connect(&replica.url()).await.unwrap();
}

#[tokio::test]
async fn a_master_that_became_a_replica_takes_nothing_and_says_so() {
    let master = Redis::start(AppendFsync::Always).unwrap();
    let other = Redis::start(AppendFsync::Always).unwrap();
    let store = RedisStore::connect(&master.url()).await.unwrap();
    put(&store, LONG).await;
    master.ask(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]).unwrap();
    let error = swap(&store, first(&sample::key("demoted").unwrap(), LONG)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    master.ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    put(&store, LONG).await;
}

#[tokio::test]
async fn the_class_of_durability_is_found_and_the_wanted_one_held_against_it() {
    for (settings, found) in [
        (vec![("appendfsync", "always")], Durability::Always),
        (vec![("appendfsync", "everysec")], Durability::EverySecond),
        (vec![("appendfsync", "no")], Durability::SystemDecides),
        (vec![("appendonly", "no"), ("save", "3600 1")], Durability::Snapshots),
        (vec![("appendonly", "no")], Durability::None),
    ] {
        let server = Redis::start_with(&settings).unwrap();
        let store = RedisStore::connect(&server.url()).await.unwrap();
        assert_eq!(store.durability(), found);
        let wanted = format!("{}?durability=always", server.url());
        assert_eq!(RedisStore::connect(&wanted).await.is_ok(), found == Durability::Always, "{found}");
        let findings = store.check().await.unwrap();
        let broken = findings.iter().filter(|finding| finding.verdict != Verdict::Kept).count();
        assert_eq!(broken, usize::from(found != Durability::Always), "{findings:?}");
        let content = RedisStore::builder(&server.url()).durability(found).connect().await.unwrap();
        let findings = content.check().await.unwrap();
        assert!(findings.iter().all(|finding| finding.verdict == Verdict::Kept), "{findings:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_means_that_nothing_happened() {
    let url = {
        let server = Redis::start(AppendFsync::Always).unwrap();
        server.url()
    };
    assert_eq!(RedisStore::connect(&url).await.unwrap_err().kind(), ErrorKind::Unavailable);
}
