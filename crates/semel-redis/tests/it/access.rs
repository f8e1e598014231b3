//! Users of the access list: the documented rights are enough, and each of them is needed.

use semel::ErrorKind;
use semel::store::{Scan, Store, SwapReply};
use semel_redis::{ACL_RULES, RedisStore, Verdict};
use test_services::{AppendFsync, Redis};

use crate::tries::{LONG, again, first, load, put, swap};

fn allow(server: &Redis, user: &str, rights: &str) {
    let mut words = vec!["ACL", "SETUSER", user, "on", ">s3cret"];
    words.extend(rights.split_ascii_whitespace());
    server.ask(&words).unwrap();
}

fn url(server: &Redis, user: &str) -> String {
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
    let findings = store.check().await.unwrap();
    assert!(findings.iter().all(|finding| finding.verdict == Verdict::Kept), "{findings:?}");
}

#[tokio::test]
async fn a_right_that_is_missing_is_noticed_and_never_taken_for_nothing() {
    let server = Redis::start(AppendFsync::Always).unwrap();
    for missing in ["evalsha", "zadd", "set"] {
        allow(&server, missing, &ACL_RULES.replace(&format!("+{missing} "), ""));
        let store = RedisStore::connect(&url(&server, missing)).await.unwrap();
        let key = semel_testkit::sample::key("few").unwrap();
        let error = swap(&store, first(&key, LONG)).await.unwrap_err();
        // A script that was stopped half-way may have written: nobody may take that for nothing.
        assert_eq!(error.kind(), ErrorKind::Unknown, "{missing}: {error:?}");
        assert!(error.to_string().contains("give its user the rights"), "{error}");
    }
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
