//! Every contestant on Redis does the work that it is measured by.

use std::time::Duration;

use semel::Semel;
use semel_redis::RedisStore;
use test_services::{AppendFsync, Redis};

use super::per_call::{PerCall, census};
use crate::contestants::Engine;
use crate::contestants::trial::refuses_a_second_claim;
use crate::inputs::{BODY_BYTES, Response};
use crate::runtime::runtime;
use crate::servers::census::{checked, of_store};
use crate::servers::entry::Entry;
use crate::window::Plan;

#[test]
fn no_contestant_on_redis_runs_a_key_twice_and_each_hands_back_the_outcome() {
    let (server, runtime) = (Redis::start(AppendFsync::Always).unwrap(), runtime(2).unwrap());
    let url = server.url();
    let (semel, per_call) = runtime.block_on(async {
        let semel = Semel::new(RedisStore::connect(&url).await.unwrap());
        (Engine::over(semel, Response::new().body), PerCall::load(&url, 10).await.unwrap())
    });
    refuses_a_second_claim(("semel", BODY_BYTES), &runtime, &semel);
    refuses_a_second_claim(("per call", BODY_BYTES), &runtime, &per_call);
}

#[test]
fn a_key_that_nobody_was_told_of_on_redis_is_noticed() {
    let (server, runtime) = (Redis::start(AppendFsync::EverySecond).unwrap(), runtime(2).unwrap());
    let url = server.url();
    let (store, semel, per_call) = runtime.block_on(async {
        let store = RedisStore::connect(&url).await.unwrap();
        let semel = Entry::semel(store.clone(), "", 2_000).await.unwrap();
        (store, semel, Entry::new("per call", "", PerCall::load(&url, 2_000).await.unwrap(), 2_000))
    });
    let plan = Plan { callers: 8, span: Duration::from_millis(60) };
    for entry in [&semel, &per_call] {
        assert!(entry.entrant.window(&runtime, plan).unwrap().rate > 0.0);
        assert!(entry.entrant.replays(&runtime, plan).unwrap().rate > 0.0);
    }
    assert!(checked(&semel, 2_000, &runtime, async || of_store(&store).await).unwrap().replayed > 0);
    assert!(checked(&per_call, 2_000, &runtime, async || census(&url).await).unwrap().ran > 0);
    server.ask(&["SET", "per-call:one more", "r"]).unwrap();
    assert!(checked(&per_call, 2_000, &runtime, async || census(&url).await).is_err());
}
