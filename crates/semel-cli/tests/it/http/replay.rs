//! H20 to H23: first runs and replays.

use test_http::{Answer, Ending, Request};

use super::front::{Front, Kind};
use super::multiplexed::Multiplexed;
use super::responses::{KEPT, NOT_KEPT, ONE_HOP, pattern};
use super::rules::rules;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;
use super::tamper::tamper;
use crate::place::Place;

rules! {
    h20_the_first_request_runs_once_and_its_response_is_unchanged
    h20_what_is_sent_reaches_the_service_unchanged
    h21_a_retry_gets_the_same_status_and_body_and_the_marker
    h21_a_retry_gets_the_headers_that_go_from_end_to_end
    h21_the_name_of_the_marker_is_configurable
    h21_a_retry_over_another_version_of_http_gets_the_same
    h22_what_is_for_one_client_only_is_never_replayed
    h22_hop_by_hop_headers_are_never_replayed
    h22_several_headers_of_one_name_keep_their_order
    h22_a_route_may_name_the_headers_to_keep
    h22_a_record_that_was_tampered_with_is_not_replayed
    h22_a_cookie_in_a_record_is_not_replayed
    h23_a_binary_body_replays_byte_for_byte
    h23_a_replay_has_the_right_length_and_some_have_no_body
}

/// Headers that semel or a server of HTTP may add to a first run.
const ADDED: [&str; 5] = ["idempotency-expires", "date", "content-length", "transfer-encoding", "connection"];

/// The headers among these names, in the order in which they came.
fn among(answer: &Answer, wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    let named = |name: &String| wanted.iter().any(|(wanted, _)| wanted.eq_ignore_ascii_case(name));
    let found = answer.headers.iter().filter(|(name, _)| named(name));
    sorted(found.map(|(name, value)| (name.to_lowercase(), value.clone())))
}

/// By name; those of one name stay in their order.
fn sorted(headers: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut headers: Vec<_> = headers.collect();
    headers.sort_by(|(one, _), (other, _)| one.cmp(other));
    headers
}

fn expected(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    sorted(wanted.iter().map(|(name, value)| (name.to_lowercase(), (*value).to_owned())))
}

async fn h20_the_first_request_runs_once_and_its_response_is_unchanged(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let first = front.send(&Request::post("/headers").key("k")).await;
    assert_eq!(first.ran(201).text(), "{\"call\":1}");
    let all: Vec<_> = KEPT.into_iter().chain(NOT_KEPT).collect();
    assert_eq!(among(&first, &all), expected(&all));
    for (name, _) in &first.headers {
        let known = all.iter().map(|(known, _)| *known).chain(ADDED);
        assert!(
            known.into_iter().any(|known| known.eq_ignore_ascii_case(name)),
            "{name} was added: {first:?}"
        );
    }
    assert_eq!(front.service.count(), 1);
}

async fn h20_what_is_sent_reaches_the_service_unchanged(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let body = pattern(70_000);
    let ask =
        Request::post("/echo?a=1&b=%2F%20&c").key("k").header("x-own", "first").header("x-own", "second");
    front.send(&ask.header("accept-language", "de, en;q=0.5").body(body.clone())).await.ran(200);
    let call = front.service.last();
    assert_eq!(
        (call.method.as_str(), call.uri.path_and_query().unwrap().as_str()),
        ("POST", "/echo?a=1&b=%2F%20&c")
    );
    assert_eq!(call.headers.get_all("x-own").iter().collect::<Vec<_>>(), ["first", "second"]);
    assert_eq!(call.header("accept-language"), Some("de, en;q=0.5"));
    assert!(call.body == body, "another body of {} bytes", call.body.len());
}

async fn h21_a_retry_gets_the_same_status_and_body_and_the_marker(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for (number, status) in [200, 201, 202, 206, 303, 400, 404, 409, 410, 418, 422].into_iter().enumerate() {
        let ask = Request::post(&format!("/status/{status}")).key(&format!("k-{status}"));
        let first = front.send(&ask).await;
        assert_eq!(first.ran(status).text(), format!("call {}", number + 1));
        for _ in 0..2 {
            front.send(&ask).await.replays(&first);
        }
        assert_eq!(front.service.count(), number + 1);
    }
}

async fn h21_a_retry_gets_the_headers_that_go_from_end_to_end(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/headers").key("k");
    let first = front.send(&ask).await;
    let retry = front.send(&ask).await;
    retry.replays(&first);
    assert_eq!(among(&retry, &KEPT), expected(&KEPT));
    assert_eq!(front.service.count(), 1);
}

async fn h21_the_name_of_the_marker_is_configurable(kind: Kind) {
    let front = Front::start(kind, Setup::new().table("headers", "replayed = \"X-Served-Again\"")).await;
    let ask = Request::post("/status/201").key("k");
    let (first, retry) = (front.send(&ask).await, front.send(&ask).await);
    assert_eq!((first.header("x-served-again"), retry.header("x-served-again")), (None, Some("true")));
    assert_eq!(retry.header("idempotent-replayed"), None);
    assert_eq!(first.body, retry.body);
}

async fn h21_a_retry_over_another_version_of_http_gets_the_same(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let connection = Multiplexed::open(front.address()).await;
    for (key, binary) in [("one", false), ("two", true)] {
        let ask =
            if binary { Request::post("/echo").body(pattern(100_000)) } else { Request::post("/headers") };
        let ask = ask.key(key);
        let first = connection.send(&ask).await;
        assert!(!first.is_replay() && first.code().is_none(), "{first:?}");
        for retry in [connection.send(&ask).await, front.send(&ask).await] {
            retry.replays(&first);
            assert_eq!(retry.all("link"), first.all("link"));
        }
        connection.send(&ask.clone().body("another")).await.refused(422, "mismatch");
        assert_eq!(front.service.count_of(key), 1);
    }
}

async fn h22_what_is_for_one_client_only_is_never_replayed(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/headers").key("k");
    let first = front.send(&ask).await;
    assert_eq!(among(&first, &NOT_KEPT), expected(&NOT_KEPT), "the first client gets all");
    let retry = front.send(&ask).await;
    for (name, value) in NOT_KEPT {
        assert!(!retry.replays(&first).all(name).contains(&value), "{name} was kept: {retry:?}");
    }
    assert!(!format!("{retry:?}").contains("s3cret"));
}

async fn h22_hop_by_hop_headers_are_never_replayed(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/hop").key("k");
    let first = front.send(&ask).await;
    first.ran(201);
    let retry = front.send(&ask).await;
    for (name, value) in ONE_HOP {
        assert!(!retry.replays(&first).all(name).contains(&value), "{name} was kept: {retry:?}");
    }
}

async fn h22_several_headers_of_one_name_keep_their_order(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/headers").key("k");
    let (first, retry) = (front.send(&ask).await, front.send(&ask).await);
    for answer in [&first, &retry] {
        assert_eq!(answer.all("x-several"), ["first", "second", "first"]);
        assert_eq!(answer.all("link"), ["</charges>; rel=\"up\"", "</charges/2>; rel=\"next\""]);
    }
    assert!(retry.is_replay());
}

async fn h22_a_route_may_name_the_headers_to_keep(kind: Kind) {
    let setup =
        Setup::new().route("/headers", "headers_kept = [\"Location\", \"Set-Cookie\", \"Content-Type\"]");
    let front = Front::start(kind, setup).await;
    let ask = Request::post("/headers").key("k");
    let first = front.send(&ask).await;
    assert_eq!(among(&first, &KEPT), expected(&KEPT), "the first client gets all");
    let retry = front.send(&ask).await;
    retry.replays(&first);
    let kept = |(name, _): &&(&str, &str)| ["location", "content-type"].contains(name);
    let kept: Vec<_> = KEPT.iter().filter(kept).copied().collect();
    assert_eq!(among(&retry, &KEPT), expected(&kept));
    assert_eq!(retry.all("set-cookie"), [""; 0], "not even by name");
}

/// What a front answers whose store was tampered with after the first run, and how the first run was answered.
async fn after_tampering(kind: Kind, ask: &Request, from: &[u8], to: &[u8]) -> (Answer, Answer) {
    let (shelf, service) = (Shelf::on(Place::redis).await, Service::default());
    let front = Front::start_on(kind, &Setup::new(), &shelf, &service).await;
    let first = front.send(ask).await;
    tamper(&shelf, from, to).await;
    // One that has not seen the record before it was changed.
    let other = Front::start_on(kind, &Setup::new(), &shelf, &service).await;
    let retry = other.send(ask).await;
    assert_eq!(service.count(), 1, "it does not run again");
    (first, retry)
}

async fn h22_a_record_that_was_tampered_with_is_not_replayed(kind: Kind) {
    let ask = Request::post("/status/201").key("k");
    // Control: what was not changed is replayed.
    let (first, retry) = after_tampering(kind, &ask, b"text/plain", b"text/plain").await;
    retry.replays(&first);
    let (_, retry) = after_tampering(kind, &ask, b"text/plain", b"a\r\nevil: 1").await;
    assert!(!retry.is_replay() && retry.code().is_some(), "{retry:?}");
    assert!(!format!("{retry:?}").contains("evil"), "{retry:?}");
}

async fn h22_a_cookie_in_a_record_is_not_replayed(kind: Kind) {
    let ask = Request::post("/headers").key("k");
    let (first, retry) = after_tampering(kind, &ask, b"x-smuggled", b"set-cookie").await;
    assert_eq!(first.header("x-smuggled"), Some("evil"));
    assert!(!format!("{retry:?}").contains("evil"), "{retry:?}");
}

async fn h23_a_binary_body_replays_byte_for_byte(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let every_byte: Vec<u8> = (0..=255).collect();
    for (number, body) in [every_byte, pattern(300_000), vec![0], Vec::new()].into_iter().enumerate() {
        let ask = Request::post("/echo").key(&number.to_string()).body(body.clone());
        let ask = ask.header("content-type", "application/octet-stream");
        let first = front.send(&ask).await;
        assert!(first.ran(200).body == body, "{first:?}");
        let retry = front.send(&ask).await;
        retry.replays(&first);
        assert_eq!(retry.header("content-length"), Some(body.len().to_string().as_str()));
        assert_eq!(retry.ending, Ending::Whole);
    }
    assert_eq!(front.service.count(), 4);
}

async fn h23_a_replay_has_the_right_length_and_some_have_no_body(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for status in [204, 304] {
        let ask = Request::post(&format!("/empty/{status}")).key(&status.to_string());
        let mut connection = front.connect().await;
        let first = connection.send(&ask).await;
        first.ran(status);
        // On the same connection: a body that was not announced would be read as the next response.
        let retry = connection.send(&ask).await;
        retry.replays(&first);
        let next = connection.send(&Request::get("/status/200")).await;
        next.ran(200);
        assert!(retry.all("content-length").iter().all(|length| *length == "0"), "{retry:?}");
        assert_eq!(retry.all("transfer-encoding"), [""; 0]);
    }
}
