//! H53 to H55: processes that die or sleep, and stores that are down.

use std::time::Duration;

use semel::record::Record;
use semel::store::Scan;
use semel::{Resolution, Semel};
use test_http::{Answer, Client, Request, until};
use test_services::{AppendFsync, Redis};
use tokio::time::Instant;

use super::front::{Front, Kind};
use super::rules::rules;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;
use crate::place::Place;

rules! {
    h53_after_the_lease_of_a_dead_process_a_retry_runs_again_where_rerun_is_said
    h53_after_the_lease_of_a_dead_process_the_key_is_held_unless_rerun_is_said
    h53_a_run_that_lives_is_renewed_beyond_its_lease
    h53_what_was_kept_before_the_death_is_still_replayed
    h54_a_worker_that_lost_its_lease_cannot_overwrite_the_newer_record
    h55_while_the_store_is_down_requests_with_a_key_are_refused
    h55_while_the_store_is_down_requests_run_unprotected_by_choice
}

/// Lets a front die amid a run of this request.
async fn die_amid(kind: Kind, setup: &Setup, shelf: &Shelf, service: &Service, ask: &Request) {
    let before = service.count();
    let front = Front::start_on(kind, setup, shelf, service).await;
    let mut connection: Client = front.connect().await;
    connection.write_if_open(&ask.bytes()).await;
    service.until_called(before + 1).await;
    front.kill();
    assert_eq!(connection.answer_to("POST").await, None, "nobody answers");
}

/// Asks until something else is told than that the first still runs.
async fn in_the_end(front: &Front, ask: &Request) -> Answer {
    until("the lease to lapse", async || {
        let answer = front.send(ask).await;
        (answer.code().as_deref() != Some("in_flight")).then_some(answer)
    })
    .await
}

/// The only record that there is. Nobody else may use the store meanwhile.
async fn record(shelf: &Shelf) -> Record {
    let store = shelf.opening().await;
    let page = store.scan(Scan { limit: 2, ..Scan::default() }).await.expect("is up").value;
    let [record] = <[_; 1]>::try_from(page.records).expect("there is one record");
    std::sync::Arc::unwrap_or_clone(record)
}

async fn h53_after_the_lease_of_a_dead_process_a_retry_runs_again_where_rerun_is_said(kind: Kind) {
    let (shelf, service) = (Shelf::plain(kind), Service::default());
    let (setup, ask) =
        (Setup::new().rule("lease = \"2s\"\nlapse = \"rerun\""), Request::post("/gate/gate").key("k"));
    die_amid(kind, &setup, &shelf, &service, &ask).await;
    service.open("gate");
    let front = Front::start_on(kind, &setup, &shelf, &service).await;
    front.send(&ask).await.refused(409, "in_flight");
    let second = in_the_end(&front, &ask).await;
    assert_eq!(second.ran(201).text(), "call 2");
    front.send(&ask).await.replays(&second);
    front.kill();
    assert_eq!((record(&shelf).await.attempt, service.count()), (2, 2));
}

async fn h53_after_the_lease_of_a_dead_process_the_key_is_held_unless_rerun_is_said(kind: Kind) {
    let (shelf, service) = (Shelf::plain(kind), Service::default());
    let setup = Setup::new().rule("lease = \"1s\"");
    let ask = Request::post("/gate/gate").key("k");
    die_amid(kind, &setup, &shelf, &service, &ask).await;
    service.open("gate");
    let front = Front::start_on(kind, &setup, &shelf, &service).await;
    in_the_end(&front, &ask).await.refused(409, "outcome_held");
    front.send(&ask).await.refused(409, "outcome_held");
    front.kill();
    assert_eq!(service.count(), 1);
    // Until somebody decides.
    let key = record(&shelf).await.key;
    let semel = Semel::builder_shared(shelf.opening().await).build().expect("is fine");
    let release = Resolution::Release { reason: "looked: nothing was charged".into() };
    semel.resolve(&key, release).await.expect("is held");
    drop(semel);
    let front = Front::start_on(kind, &setup, &shelf, &service).await;
    assert_eq!(front.send(&ask).await.ran(201).text(), "call 2");
}

async fn h53_a_run_that_lives_is_renewed_beyond_its_lease(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("lease = \"600ms\"")).await;
    let ask = Request::post("/gate/gate").key("k");
    let running = front.send_later(&ask);
    front.service.until_called(1).await;
    let started_at = Instant::now();
    until("three leases to pass", async || {
        front.send(&ask).await.refused(409, "in_flight");
        (started_at.elapsed() > Duration::from_millis(1_800)).then_some(())
    })
    .await;
    front.service.open("gate");
    let first = running.await.expect("ends");
    front.send(&ask).await.replays(first.ran(201));
    assert_eq!(front.service.count(), 1);
}

async fn h53_what_was_kept_before_the_death_is_still_replayed(kind: Kind) {
    let (shelf, service) = (Shelf::plain(kind), Service::default());
    let front = Front::start_on(kind, &Setup::new(), &shelf, &service).await;
    let ask = Request::post("/headers").key("k");
    let first = front.send(&ask).await;
    first.ran(201);
    front.kill();
    let front = Front::start_on(kind, &Setup::new(), &shelf, &service).await;
    front.send(&ask).await.replays(&first);
    assert_eq!(service.count(), 1);
}

async fn h54_a_worker_that_lost_its_lease_cannot_overwrite_the_newer_record(kind: Kind) {
    let (shelf, service) = (Shelf::on(Place::redis).await, Service::default());
    let (setup, ask) =
        (Setup::new().rule("lease = \"1s\"\nlapse = \"rerun\""), Request::post("/turns").key("k"));
    let mut slow = Front::start_on(kind, &setup, &shelf, &service).await;
    let other = Front::start_on(kind, &setup, &shelf, &service).await;
    let running = slow.send_later(&ask);
    service.until_called(1).await;
    slow.freeze().await;
    // The lease lapses unrenewed, and the next attempt runs elsewhere and ends.
    service.open("turn-2");
    let newer = in_the_end(&other, &ask).await;
    assert_eq!(newer.ran(201).text(), "call 2");
    slow.thaw();
    service.open("turn-1");
    let late = running.await.expect("ends");
    assert_ne!(late.text(), "call 1", "what was lost is not reported: {late:?}");
    for front in [&slow, &other] {
        front.send(&ask).await.replays(&newer);
    }
    assert_eq!(service.count(), 2);
}

async fn own_redis() -> Redis {
    let start = || Redis::start(AppendFsync::Always).expect("Redis starts");
    tokio::task::spawn_blocking(start).await.expect("Redis starts")
}

async fn h55_while_the_store_is_down_requests_with_a_key_are_refused(kind: Kind) {
    let (mut redis, service) = (own_redis().await, Service::default());
    let setup = Setup::new().table("timeouts", "store = \"500ms\"");
    let front = Front::start_on(kind, &setup, &Shelf::at(&redis.url()), &service).await;
    let ask = Request::post("/status/201").key("k");
    redis.kill().expect("is ours");
    for _ in 0..2 {
        let refused = front.send(&ask).await;
        refused.refused(503, "store_unavailable");
        assert!(refused.retry_after() >= 1, "{refused:?}");
    }
    assert_eq!(service.count(), 0);
    // What has no key needs no store.
    front.send(&Request::post("/status/201")).await.ran(201);
    redis.resume().expect("comes back");
    let back = until("the store to be found again", async || {
        let answer = front.send(&ask).await;
        (answer.status != 503).then_some(answer)
    })
    .await;
    front.send(&ask).await.replays(back.ran(201));
    assert_eq!(service.count_of("k"), 1);
}

async fn h55_while_the_store_is_down_requests_run_unprotected_by_choice(kind: Kind) {
    let (mut redis, service) = (own_redis().await, Service::default());
    let setup = Setup::new().rule("on_outage = \"open\"").table("timeouts", "store = \"500ms\"");
    let front = Front::start_on(kind, &setup, &Shelf::at(&redis.url()), &service).await;
    let protected = front.send(&Request::post("/status/201").key("before")).await;
    assert_eq!(protected.ran(201).header("idempotency-protected"), None);
    redis.kill().expect("is ours");
    for number in 0..2 {
        let answer = front.send(&Request::post("/status/201").key("k")).await;
        assert_eq!(answer.ran(201).header("idempotency-protected"), Some("false"));
        assert_eq!(answer.header("idempotency-expires"), None, "nothing is kept: {answer:?}");
        assert_eq!(service.count_of("k"), number + 1);
    }
}
