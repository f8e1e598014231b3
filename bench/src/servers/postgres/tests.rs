//! Every contestant on PostgreSQL does the work that it is measured by.

use std::time::Duration;

use semel::Semel;
use semel_postgres::{PostgresStore, migrate};
use test_services::Postgres;

use super::cratestack::Cratestack;
use super::per_call::PerCall;
use super::pool::connect;
use crate::contestants::trial::refuses_a_second_claim;
use crate::contestants::{Contestant, Engine};
use crate::inputs::{BODY_BYTES, Response};
use crate::runtime::runtime;
use crate::servers::census::{Census, checked, of_store};
use crate::servers::entry::Entry;
use crate::window::Plan;

#[test]
fn no_contestant_on_postgres_runs_a_key_twice_and_each_hands_back_the_outcome() {
    let (server, runtime) = (Postgres::start().unwrap(), runtime(2).unwrap());
    let url = server.url();
    let (semel, per_call, cratestack) = runtime.block_on(async {
        migrate(&url).await.unwrap();
        let semel = Semel::new(PostgresStore::connect(&url).await.unwrap());
        let semel = Engine::over(semel, Response::new().body);
        (semel, PerCall::load(&url, 10).await.unwrap(), Cratestack::load(&url, 10).await.unwrap())
    });
    refuses_a_second_claim(("semel", BODY_BYTES), &runtime, &semel);
    refuses_a_second_claim(("per call", BODY_BYTES), &runtime, &per_call);
    refuses_a_second_claim(("cratestack", BODY_BYTES), &runtime, &cratestack);
}

#[test]
fn a_row_that_nobody_was_told_of_on_postgres_is_noticed() {
    let (server, runtime) = (Postgres::start().unwrap(), runtime(2).unwrap());
    let url = server.url();
    let (store, client, semel, per_call) = runtime.block_on(async {
        migrate(&url).await.unwrap();
        let store = PostgresStore::connect(&url).await.unwrap();
        let semel = Entry::semel(store.clone(), "", 2_000).await.unwrap();
        let per_call = PerCall::load(&url, 2_000).await.unwrap();
        (store, connect(&url).await.unwrap(), semel, Entry::new("per call", "", per_call, 2_000))
    });
    let plan = Plan { callers: 8, span: Duration::from_millis(60) };
    for entry in [&semel, &per_call] {
        assert!(entry.entrant.window(&runtime, plan).unwrap().rate > 0.0);
        assert!(entry.entrant.replays(&runtime, plan).unwrap().rate > 0.0);
        let told = entry.entrant.told();
        assert!(told.ran > 0 && told.replayed > 0, "{told:?}");
    }
    let of_per_call = async || PerCall::census(&client).await;
    assert_eq!(checked(&semel, 2_000, &runtime, async || of_store(&store).await).unwrap().loaded, 2_000);
    let told = checked(&per_call, 2_000, &runtime, of_per_call).unwrap();
    let keys = 2_000 + told.ran;
    let unfinished = "INSERT INTO per_call VALUES ('one more', 1, '', 'running', NULL, now(), now())";
    runtime.block_on(client.batch_execute(unfinished)).unwrap();
    let found = runtime.block_on(of_per_call()).unwrap();
    assert_eq!(found, Census { records: keys + 1, done: keys, ..Census::default() });
    assert!(checked(&per_call, 2_000, &runtime, of_per_call).is_err());
    // A run without a complete, on semel's side.
    let engine = Engine::over(Semel::new(store.clone()), Response::new().body);
    drop(runtime.block_on(engine.claim(9_000_000)).unwrap());
    assert!(checked(&semel, 2_000, &runtime, async || of_store(&store).await).is_err());
}
