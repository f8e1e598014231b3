//! H40 to H42: several requests with one key at once.

use std::time::Duration;

use test_http::{Answer, Request};
use tokio::time::Instant;

use super::front::{Front, Kind};
use super::rules::rules;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;
use crate::binary::{ran, semel};
use crate::place::Place;

rules! {
    h40_of_two_at_once_one_runs_and_the_other_is_told_to_come_back
    h40_a_request_that_waits_replays_the_outcome
    h40_a_request_that_waits_runs_if_the_first_gives_up
    h40_a_request_that_waited_long_enough_is_told_to_come_back
    h41_a_hundred_at_once_over_two_processes_on_one_postgres_run_once
    h41_a_hundred_at_once_over_two_processes_on_one_redis_run_once
    h41_without_a_shared_store_each_process_would_run
    h42_a_409_of_the_service_is_told_apart_by_its_code
}

async fn h40_of_two_at_once_one_runs_and_the_other_is_told_to_come_back(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/gate/gate").key("k");
    let running = front.send_later(&ask);
    front.service.until_called(1).await;
    for _ in 0..3 {
        let busy = front.send(&ask).await;
        let problem = busy.refused(409, "in_flight");
        assert_eq!(problem["title"], "A request is outstanding for this Idempotency-Key");
        assert!(busy.retry_after() >= 1, "{busy:?}");
    }
    front.service.open("gate");
    let first = running.await.expect("ends");
    front.send(&ask).await.replays(first.ran(201));
    assert_eq!(front.service.count(), 1);
}

fn waiting(span: &str) -> Setup {
    Setup::new().rule(&format!("while_running = {{ wait = \"{span}\" }}"))
}

async fn h40_a_request_that_waits_replays_the_outcome(kind: Kind) {
    let front = Front::start(kind, waiting("30s")).await;
    let ask = Request::post("/gate/gate").key("k");
    let running = front.send_later(&ask);
    front.service.until_called(1).await;
    let waiting: Vec<_> = (0..5).map(|_| front.send_later(&ask)).collect();
    // Another key gets through meanwhile, and by then those that wait have been heard.
    front.send(&Request::post("/status/201").key("other")).await.ran(201);
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "somebody did not wait");
    front.service.open("gate");
    let first = running.await.expect("ends");
    first.ran(201);
    for waiting in waiting {
        waiting.await.expect("ends").replays(&first);
    }
    assert_eq!(front.service.count_of("k"), 1);
}

async fn h40_a_request_that_waits_runs_if_the_first_gives_up(kind: Kind) {
    let front = Front::start(kind, waiting("30s")).await;
    let ask = Request::post("/fails-first/gate").key("k");
    let running = front.send_later(&ask);
    front.service.until_called(1).await;
    let waiting = front.send_later(&ask);
    front.send(&Request::post("/status/201").key("other")).await.ran(201);
    front.service.open("gate");
    running.await.expect("ends").ran(500);
    assert_eq!(waiting.await.expect("ends").ran(201).text(), "call 3");
}

async fn h40_a_request_that_waited_long_enough_is_told_to_come_back(kind: Kind) {
    let front = Front::start(kind, waiting("300ms")).await;
    let ask = Request::post("/gate/gate").key("k");
    let running = front.send_later(&ask);
    front.service.until_called(1).await;
    let asked_at = Instant::now();
    let busy = front.send(&ask).await;
    busy.refused(409, "in_flight");
    assert!(busy.retry_after() >= 1, "{busy:?}");
    assert!(asked_at.elapsed() >= Duration::from_millis(290), "it did not wait");
    front.service.open("gate");
    running.await.expect("ends").ran(201);
    assert_eq!(front.service.count(), 1);
}

/// A hundred at once, by turns over two fronts.
async fn a_hundred_at_once(kind: Kind, shelf: &Shelf) {
    let service = Service::default();
    let fronts = [
        Front::start_on(kind, &Setup::new(), shelf, &service).await,
        Front::start_on(kind, &Setup::new(), shelf, &service).await,
    ];
    let ask = Request::post("/gate/gate").key("k");
    let asked: Vec<_> = (0..100).map(|number| fronts[number % 2].send_later(&ask)).collect();
    service.until_called(1).await;
    service.open("gate");
    let mut answers = Vec::new();
    for asked in asked {
        answers.push(asked.await.expect("ends"));
    }
    let is_run = |answer: &&Answer| answer.status == 201 && !answer.is_replay();
    let first = answers.iter().find(is_run).expect("one ran").clone();
    assert_eq!(answers.iter().filter(is_run).count(), 1);
    for answer in answers.iter().filter(|answer| !is_run(answer)) {
        if answer.status == 409 {
            answer.refused(409, "in_flight");
        } else {
            answer.replays(&first);
        }
    }
    assert_eq!(service.count(), 1);
    for front in &fronts {
        front.send(&ask).await.replays(&first);
    }
}

async fn h41_a_hundred_at_once_over_two_processes_on_one_postgres_run_once(kind: Kind) {
    let schema = tokio::task::spawn_blocking(Place::empty_schema).await.expect("PostgreSQL starts");
    let (url, _server) = schema;
    ran(semel().env("SEMEL_STORE", &url).arg("migrate")).fine();
    a_hundred_at_once(kind, &Shelf::at(&url)).await;
}

async fn h41_a_hundred_at_once_over_two_processes_on_one_redis_run_once(kind: Kind) {
    a_hundred_at_once(kind, &Shelf::on(Place::redis).await).await;
}

/// Control: what makes the hundred run once is the store that they share.
async fn h41_without_a_shared_store_each_process_would_run(kind: Kind) {
    let (service, shelves) = (Service::default(), [Shelf::plain(kind), Shelf::plain(kind)]);
    for shelf in &shelves {
        let front = Front::start_on(kind, &Setup::new(), shelf, &service).await;
        front.send(&Request::post("/status/201").key("k")).await.ran(201);
    }
    assert_eq!(service.count(), 2);
}

async fn h42_a_409_of_the_service_is_told_apart_by_its_code(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/status/409").key("k");
    let first = front.send(&ask).await;
    assert_eq!(first.ran(409).code(), None);
    assert_eq!(front.send(&ask).await.replays(&first).code(), None);
    let running = front.send_later(&Request::post("/gate/gate").key("other"));
    front.service.until_called(2).await;
    front.send(&Request::post("/gate/gate").key("other")).await.refused(409, "in_flight");
    front.service.open("gate");
    running.await.expect("ends").ran(201);
}
