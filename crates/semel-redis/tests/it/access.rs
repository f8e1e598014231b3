//! Users of the access list: the documented rights are enough, and each of them is needed.

use semel::ErrorKind;
use semel::store::{Scan, Store, SwapReply};
use semel_redis::{ACL_RULES, RedisStore, Verdict};
use test_services::{AppendFsync, Redis};

use crate::tries::{LONG, again, first, load, put, swap};

pub(crate) fn allow(server: &Redis, user: &str, rights: &str) {
    let mut words = vec!["ACL", "SETUSER", user, "on", ">s3cret"];
    words.extend(rights.split_ascii_whitespace());
    server.ask(&words).unwrap();
}

pub(crate) fn url(server: &Redis, user: &str) -> String {
    format!("redis://{user}:s3cret@127.0.0.1:{}", server.port())
}

#[tokio::test]
async fn the_documented_rights_are_enough_for_everything() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    allow(&server, "semel", ACL_RULES);
    let store = RedisStore::connect(&url(&server, "semel")).await.unwrap();
    let record = put(&store, LONG).await;
    assert_eq!(load(&store, &record.key).await.unwrap().as_ref(), Some(&record));
    assert!(matches!(swap(&store, again(&record, LONG)).await.unwrap(), SwapReply::Swapped(_)));
    server.ask(&["SCRIPT", "FLUSH"]).unwrap();
    let brief = put(&store, semel::record::Keep::For(std::time::Duration::ZERO)).await;
    assert_eq!(store.sweep(9).await.unwrap().value.removed, 1);
    assert_eq!(load(&store, &brief.key).await.unwrap(), None);
    let page = store.scan(Scan { limit: 9, ..Scan::default() }).await.unwrap().value;
    assert_eq!(page.records.len(), 1);
    store.ready().await.unwrap();
    let findings = store.check().await.unwrap();
    assert!(findings.iter().all(|finding| finding.verdict == Verdict::Kept), "{findings:?}");
}

#[tokio::test]
async fn a_right_that_is_missing_is_refused_at_connect_with_the_command_that_grants_it() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    for missing in ["evalsha", "script|load", "zadd", "set", "zrem", "unlink", "getrange", "setrange", "mget"]
    {
        allow(&server, "few", "reset");
        allow(&server, "few", &ACL_RULES.replace(&format!("+{missing} "), ""));
        let error = RedisStore::connect(&url(&server, "few")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{missing}: {error:?}");
        let text = error.to_string();
        assert!(text.contains(&format!("may not run {missing} ")), "{text}");
        let grant = text.split('`').nth(1).unwrap();
        let words: Vec<_> = grant.split_ascii_whitespace().collect();
        assert_eq!(words[..3], ["ACL", "SETUSER", "few"]);
        server.ask(&words).unwrap();
        RedisStore::connect(&url(&server, "few")).await.unwrap();
    }
    // Keys of another prefix than the user may touch.
    let error = RedisStore::connect(&format!("{}?prefix=other", url(&server, "few"))).await.unwrap_err();
    assert!(error.to_string().contains("~other:*"), "{error}");
}

#[tokio::test]
async fn a_right_that_is_taken_away_is_invalid_and_nothing_happened() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    for missing in ["evalsha", "zadd", "set", "get"] {
        allow(&server, missing, ACL_RULES);
        let store = RedisStore::connect(&url(&server, missing)).await.unwrap();
        server.ask(&["ACL", "SETUSER", missing, &format!("-{missing}")]).unwrap();
        let key = semel_testkit::sample::key("few").unwrap();
        let error = swap(&store, first(&key, LONG)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{missing}: {error:?}");
        assert!(error.to_string().contains(&format!("run `ACL SETUSER {missing} ")), "{error}");
        allow(&server, missing, ACL_RULES);
        assert_eq!(load(&store, &key).await.unwrap(), None, "{missing}");
        let findings = store.check().await.unwrap();
        assert!(findings.iter().all(|finding| finding.verdict == Verdict::Kept), "{findings:?}");
    }
}

#[tokio::test]
async fn a_check_finds_a_right_that_was_taken_away() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    allow(&server, "semel", ACL_RULES);
    let store = RedisStore::connect(&url(&server, "semel")).await.unwrap();
    server.ask(&["ACL", "SETUSER", "semel", "-zadd"]).unwrap();
    let findings = store.check().await.unwrap();
    let broken: Vec<_> = findings.iter().filter(|finding| finding.verdict == Verdict::Broken).collect();
    assert_eq!(broken.len(), 1, "{findings:?}");
    assert_eq!(broken[0].found.as_deref(), Some("not zadd"));
    assert!(broken[0].wanted.starts_with("ACL SETUSER semel "), "{}", broken[0].wanted);
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_never_shown() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    allow(&server, "semel", ACL_RULES);
    let wrong = format!("redis://semel:gu3ss@127.0.0.1:{}", server.port());
    let error = RedisStore::connect(&wrong).await.unwrap_err();
    assert!(!format!("{error:?}").contains("gu3ss"), "{error:?}");
    let store = RedisStore::connect(&url(&server, "semel")).await.unwrap();
    assert!(!format!("{store:?}").contains("s3cret"), "{store:?}");
}
