//! A run whose lease lapsed under `hold` is listed as held, before any claim has written that.

use std::time::Duration;

use semel::record::StateKind;
use semel::store::{Caching, Filter, Scan, Store};
use semel::{Claim, Decision, Key, Lapse, Semel};
use semel_redis::RedisStore;
use test_services::{AppendFsync, Redis};

use crate::tries::pass;

#[tokio::test]
async fn a_run_that_lapsed_under_hold_is_listed_as_held_and_not_as_running() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let semel = Semel::builder(store.clone()).no_sweep().build().unwrap();
    let brief = Duration::from_millis(5);
    let runs = [
        ("hold", Lapse::Hold, brief),
        ("rerun", Lapse::Rerun, brief),
        ("good", Lapse::Hold, brief * 100_000),
    ];
    for (name, lapse, lease) in runs {
        let claim = Claim::new(&Key::new("lapse", name).unwrap()).lease(lease).lapse(lapse);
        assert!(matches!(semel.claim(claim).await.unwrap(), Decision::Run(_)));
    }
    pass(&store, brief).await;
    let names = async |state: StateKind| {
        let filter = Filter { states: vec![state], ..Filter::default() };
        let page = semel.scan(Scan { filter, after: None, limit: 100 }).await.unwrap();
        let mut names: Vec<_> = page.records.iter().map(|record| record.key.name().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(StateKind::Held).await, ["hold"]);
    assert_eq!(names(StateKind::Running).await, ["good", "rerun"]);
}

#[tokio::test]
async fn engines_may_keep_what_they_are_answered() {
    let server = Redis::start(AppendFsync::EverySecond).unwrap();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    assert_eq!(store.load(Vec::new()).await.unwrap().caching, Caching::Allowed);
    assert_eq!(store.swap(Vec::new().into()).await.unwrap().caching, Caching::Allowed);
}
