//! H50 to H52: services that fail, and upstreams that cannot be reached or hang up.

use std::net::SocketAddr;

use test_http::{Answer, Request, until};
use tokio::net::TcpListener;

use super::front::{Front, Kind};
use super::rules::rules;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;

rules! {
    h50_a_5xx_releases_the_key_unless_said_otherwise
    h50_a_5xx_is_stored_by_choice
    h50_a_5xx_is_held_by_choice
    h51_statuses_that_mean_not_now_are_not_stored_and_other_4xx_are
    h51_a_route_may_say_which_statuses_are_not_stored
    h51_the_service_may_say_itself_what_becomes_of_its_response
    h52_what_never_left_is_released
    h52_what_was_sent_and_not_answered_is_unknown_until_the_lease_lapses
    h52_what_was_sent_and_not_answered_is_held_unless_rerun_is_said
    h52_a_response_that_breaks_off_is_unknown
    h52_a_claimed_request_is_never_sent_twice
}

async fn h50_a_5xx_releases_the_key_unless_said_otherwise(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for status in [500, 502, 503, 504, 599] {
        let ask = Request::post(&format!("/status/{status}")).key(&status.to_string());
        let (first, second) = (front.send(&ask).await, front.send(&ask).await);
        assert_ne!(first.ran(status).text(), second.ran(status).text());
        // A released key may be used for something else.
        front.send(&ask.body("another").to("/status/201")).await.ran(201);
        assert_eq!(front.service.count_of(&status.to_string()), 3);
    }
}

async fn h50_a_5xx_is_stored_by_choice(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("on_server_error = \"store\"")).await;
    for status in [500, 503] {
        let ask = Request::post(&format!("/status/{status}")).key(&status.to_string());
        let first = front.send(&ask).await;
        front.send(&ask).await.replays(first.ran(status));
        assert_eq!(front.service.count_of(&status.to_string()), 1);
    }
}

async fn h50_a_5xx_is_held_by_choice(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("on_server_error = \"hold\"")).await;
    let ask = Request::post("/status/500").key("k");
    assert_eq!(front.send(&ask).await.ran(500).text(), "call 1");
    for _ in 0..2 {
        front.send(&ask).await.refused(409, "outcome_held");
    }
    front.send(&ask.body("another")).await.refused(422, "mismatch");
    assert_eq!(front.service.count(), 1);
}

async fn h51_statuses_that_mean_not_now_are_not_stored_and_other_4xx_are(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let not_stored = [401, 403, 408, 413, 415, 425, 429];
    for status in not_stored.into_iter().chain([400, 402, 404, 405, 406, 409, 410, 412, 418, 422, 451]) {
        let ask = Request::post(&format!("/status/{status}")).key(&status.to_string());
        let (first, second) = (front.send(&ask).await, front.send(&ask).await);
        let runs = if not_stored.contains(&status) { 2 } else { 1 };
        assert_eq!((first.ran(status).status, second.status), (status, status));
        assert_eq!(front.service.count_of(&status.to_string()), runs, "{status}");
        assert_eq!(second.is_replay(), runs == 1, "{status}");
    }
}

async fn h51_a_route_may_say_which_statuses_are_not_stored(kind: Kind) {
    let front = Front::start(kind, Setup::new().route("/status/{n}", "statuses_not_kept = [404, 422]")).await;
    for (status, runs) in [(404, 2), (422, 2), (401, 1), (429, 1), (400, 1)] {
        let ask = Request::post(&format!("/status/{status}")).key(&status.to_string());
        front.send(&ask).await.ran(status);
        assert_eq!(front.send(&ask).await.is_replay(), runs == 1, "{status}");
        assert_eq!(front.service.count_of(&status.to_string()), runs, "{status}");
    }
}

/// Under the layer a word in the response decides; a proxy sees no such word, only the status.
async fn h51_the_service_may_say_itself_what_becomes_of_its_response(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("lease = \"500ms\"")).await;
    let by_word = [("keep", 500, 1), ("keep", 429, 1), ("release", 201, 2), ("release", 400, 2)];
    for (word, status, runs_by_word) in by_word {
        let key = format!("{word}-{status}");
        let ask = Request::post(&format!("/settle/{word}/{status}")).key(&key);
        front.send(&ask).await.ran(status);
        let second = front.send(&ask).await;
        let runs_by_status = if matches!(status, 500 | 429) { 2 } else { 1 };
        let runs = if kind == Kind::Layer { runs_by_word } else { runs_by_status };
        assert_eq!((front.service.count_of(&key), second.is_replay()), (runs, runs == 1), "{key}");
    }
    let held = Request::post("/settle/hold/201").key("held");
    let first = front.send(&held).await;
    first.ran(201);
    match kind {
        Kind::Layer => drop(front.send(&held).await.refused(409, "outcome_held")),
        Kind::Proxy => drop(front.send(&held).await.replays(&first).clone()),
    }
}

/// Where nothing listens, as yet.
async fn nowhere() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("is bound")
}

async fn h52_what_never_left_is_released(kind: Kind) {
    let (service, ask) = (Service::default(), Request::post("/status/201").key("k"));
    let shelf = Shelf::plain(kind);
    if kind == Kind::Layer {
        // Under the layer it is the handler that knows, and says so.
        let front = Front::start_on(kind, &Setup::new(), &shelf, &service).await;
        front.send(&ask.clone().to("/settle/release/502")).await.ran(502);
        assert_eq!(front.send(&ask).await.ran(201).text(), "call 2");
        return;
    }
    let upstream = nowhere().await;
    let front = Front::before(&format!("http://{upstream}"), &Setup::new(), &shelf, &service).await;
    for _ in 0..2 {
        front.send(&ask).await.refused(502, "upstream_unreachable");
        front.send(&Request::get("/status/200")).await.refused(502, "upstream_unreachable");
    }
    let listener = TcpListener::bind(upstream).await.expect("the port is still free");
    let serving = tokio::spawn(super::layered::serve(listener, service.router()));
    let first = front.send(&ask).await;
    assert_eq!(first.ran(201).text(), "call 1");
    front.send(&ask).await.replays(&first);
    serving.abort();
}

/// What a client hears when its run was lost: from a gateway, that the gateway does not know.
fn is_unknown(kind: Kind, answer: &Answer) {
    let status = if kind == Kind::Proxy { 504 } else { 500 };
    answer.refused(status, "outcome_unknown");
}

/// Asks until the lease has lapsed.
async fn after_the_lease(front: &Front, ask: &Request) -> Answer {
    until("the lease to lapse", async || {
        let answer = front.send(ask).await;
        if answer.code().as_deref() != Some("in_flight") {
            return Some(answer);
        }
        assert!((1..=2).contains(&answer.retry_after()), "{answer:?}");
        None
    })
    .await
}

async fn h52_what_was_sent_and_not_answered_is_unknown_until_the_lease_lapses(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("lease = \"1500ms\"\nlapse = \"rerun\"")).await;
    let ask = Request::post("/panic").key("k");
    is_unknown(kind, &front.send(&ask).await);
    let busy = front.send(&ask).await;
    busy.refused(409, "in_flight");
    assert!((1..=2).contains(&busy.retry_after()), "{busy:?}");
    assert_eq!(front.service.count(), 1);
    // A retry runs as the next attempt; it fails again, which is how we know that it ran.
    is_unknown(kind, &after_the_lease(&front, &ask).await);
    assert_eq!(front.service.count(), 2);
    if kind == Kind::Layer {
        assert_eq!(front.service.last().attempt, Some(2));
    }
}

async fn h52_what_was_sent_and_not_answered_is_held_unless_rerun_is_said(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("lease = \"1s\"")).await;
    let ask = Request::post("/panic").key("k");
    is_unknown(kind, &front.send(&ask).await);
    after_the_lease(&front, &ask).await.refused(409, "outcome_held");
    front.send(&ask).await.refused(409, "outcome_held");
    assert_eq!(front.service.count(), 1);
}

async fn h52_a_response_that_breaks_off_is_unknown(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("lease = \"1s\"")).await;
    let ask = Request::post("/broken").key("k");
    let first = front.send(&ask).await;
    first.refused(504, "outcome_unknown");
    front.send(&ask).await.refused(409, "in_flight");
    assert_eq!(front.service.count(), 1);
}

async fn h52_a_claimed_request_is_never_sent_twice(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let mut connection = front.connect().await;
    for number in 0..10 {
        // A connection to the service that was used before: the case in which clients like to try again.
        connection.send(&Request::get("/status/200")).await.ran(200);
        let key = number.to_string();
        is_unknown(kind, &connection.send(&Request::post("/panic").key(&key)).await);
        assert_eq!(front.service.count_of(&key), 1);
    }
}
