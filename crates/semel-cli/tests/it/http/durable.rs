//! H24 to H26: nothing is told before it is kept, runs outlive their clients, and how long a retry is safe.

use std::time::{Duration, SystemTime};

use semel::clock::{Clock, SystemClock};
use test_http::{Answer, Client, Ending, Request, until};
use test_services::{AppendFsync, Redis};

use super::front::{Front, Kind};
use super::multiplexed::Multiplexed;
use super::rules::rules;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;
use crate::place::Place;

rules! {
    h24_whoever_has_the_whole_response_finds_it_kept
    h24_a_response_that_cannot_be_kept_is_not_reported
    h24_the_last_byte_of_a_streamed_response_waits_for_the_store
    h25_a_run_goes_on_when_its_client_goes_away
    h25_a_client_that_leaves_amid_the_response_loses_nothing
    h26_the_end_of_safe_retries_is_told_and_does_not_slide
    h26_only_what_is_kept_has_such_an_end
}

async fn h24_whoever_has_the_whole_response_finds_it_kept(kind: Kind) {
    let (shelf, service) = (Shelf::on(Place::redis).await, Service::default());
    let front = Front::start_on(kind, &Setup::new(), &shelf, &service).await;
    // Another process, which knows nothing but what is stored.
    let other = Front::start_on(kind, &Setup::new(), &shelf, &service).await;
    for number in 0..20 {
        let ask = Request::post("/status/201").key(&number.to_string());
        let first = front.send(&ask).await;
        first.ran(201);
        other.send(&ask).await.replays(&first);
    }
    assert_eq!(service.count(), 20);
}

/// A front on a Redis of the test's own.
async fn on_own_redis(kind: Kind, setup: &Setup) -> (Front, Redis) {
    let start = || Redis::start(AppendFsync::Always).expect("Redis starts");
    let redis = tokio::task::spawn_blocking(start).await.expect("Redis starts");
    let front = Front::start_on(kind, setup, &Shelf::at(&redis.url()), &Service::default()).await;
    (front, redis)
}

fn impatient() -> Setup {
    Setup::new().rule("lease = \"2s\"").table("timeouts", "store = \"500ms\"")
}

async fn h24_a_response_that_cannot_be_kept_is_not_reported(kind: Kind) {
    let (front, mut redis) = on_own_redis(kind, &impatient()).await;
    // Control: while the store is there, it is.
    assert_eq!(front.send(&Request::post("/status/201").key("before")).await.ran(201).text(), "call 1");
    let running = front.send_later(&Request::post("/gate/gate").key("k"));
    front.service.until_called(2).await;
    redis.kill().expect("is ours");
    front.service.open("gate");
    let answer = running.await.expect("ends");
    assert!(!answer.text().contains("call 2"), "reported, and nobody keeps it: {answer:?}");
    answer.refused(504, "outcome_unknown");
}

async fn h24_the_last_byte_of_a_streamed_response_waits_for_the_store(kind: Kind) {
    let (front, mut redis) = on_own_redis(kind, &impatient()).await;
    let ask = Request::post("/halves/gate").key("k");
    let address = front.address();
    let running = tokio::spawn(async move {
        let mut connection = Client::connect(address).await;
        connection.write_if_open(&ask.bytes()).await;
        connection.answer_to("POST").await
    });
    front.service.until_called(1).await;
    redis.kill().expect("is ours");
    front.service.open("gate");
    let is_whole = |answer: &Answer| answer.ending == Ending::Whole && answer.text().contains("the end");
    let answer = running.await.expect("ends");
    assert!(!answer.as_ref().is_some_and(is_whole), "the whole of what nobody keeps: {answer:?}");
}

/// Asks until the run is over and its outcome is there.
async fn outcome(front: &Front, ask: &Request) -> Answer {
    until("the outcome", async || {
        let answer = front.send(ask).await;
        if answer.status == 409 {
            answer.refused(409, "in_flight");
            return None;
        }
        Some(answer)
    })
    .await
}

async fn h25_a_run_goes_on_when_its_client_goes_away(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let service = front.service.clone();
    // One that closes, and one that was killed.
    for (key, leave) in [("closed", drop as fn(Client)), ("killed", Client::reset)] {
        let mut connection = front.connect().await;
        connection.write_if_open(&Request::post("/gate/gate").key(key).bytes()).await;
        until("the run", async || (service.count_of(key) == 1).then_some(())).await;
        leave(connection);
    }
    // And one whose connection is of the kind that every server sees the end of.
    let connection = Multiplexed::open(front.address()).await;
    let left = tokio::spawn(connection.send(&Request::post("/gate/gate").key("left")));
    until("the run", async || (service.count_of("left") == 1).then_some(())).await;
    left.abort();
    // Control: without a key, such a run ends with its client; and by then the others have ended as well, if they do.
    let left = tokio::spawn(connection.send(&Request::post("/gate/gate")));
    service.until_called(4).await;
    left.abort();
    until("the run to be cut off", async || (service.cut_off() > 0).then_some(())).await;
    assert_eq!(service.cut_off(), 1);
    service.open("gate");
    for key in ["closed", "killed", "left"] {
        let retry = outcome(&front, &Request::post("/gate/gate").key(key)).await;
        assert_eq!((retry.status, retry.is_replay()), (201, true), "{key}: {retry:?}");
        assert_eq!((service.count_of(key), service.cut_off()), (1, 1), "{key}");
    }
}

async fn h25_a_client_that_leaves_amid_the_response_loses_nothing(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/halves/gate").key("k");
    let mut connection = front.connect().await;
    connection.write_if_open(&ask.bytes()).await;
    front.service.until_called(1).await;
    drop(connection);
    front.send(&Request::get("/status/200")).await.ran(200);
    front.service.open("gate");
    let retry = outcome(&front, &ask).await;
    assert!(retry.is_replay(), "{retry:?}");
    assert_eq!((retry.status, retry.text()), (200, "data: call 1\n\ndata: the end\n\n"));
    assert_eq!(front.service.count_of("k"), 1);
}

fn expires(answer: &Answer) -> SystemTime {
    let text = answer.header("idempotency-expires").expect("there is an end");
    httpdate::parse_http_date(text).expect("an HTTP date")
}

async fn h26_the_end_of_safe_retries_is_told_and_does_not_slide(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("retention = \"2h\"")).await;
    let ask = Request::post("/status/201").key("k");
    let now = SystemTime::UNIX_EPOCH + Duration::from_micros(SystemClock::default().now().as_micros());
    let first = front.send(&ask).await;
    let end = expires(first.ran(201));
    let (early, late) = (now + Duration::from_secs(7_190), now + Duration::from_secs(7_230));
    assert!(early < end && end < late, "{first:?}");
    // The next second begins, and a later retry hears of the same end.
    let retry = until("another second", async || {
        let retry = front.send(&ask).await;
        (retry.header("date") != first.header("date")).then_some(retry)
    })
    .await;
    assert_eq!(retry.replays(&first).header("idempotency-expires"), first.header("idempotency-expires"));
}

async fn h26_only_what_is_kept_has_such_an_end(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for status in [500, 503, 401, 429] {
        let answer = front.send(&Request::post(&format!("/status/{status}")).key(&status.to_string())).await;
        assert_eq!(answer.ran(status).header("idempotency-expires"), None, "{status}");
    }
    let without_key = front.send(&Request::post("/status/201")).await;
    assert_eq!(without_key.ran(201).header("idempotency-expires"), None);
    let refused = front.send(&Request::post("/status/201").key("")).await;
    assert_eq!(refused.header("idempotency-expires"), None);
    let kept = front.send(&Request::post("/status/404").key("404")).await;
    assert!(kept.ran(404).header("idempotency-expires").is_some());
}
