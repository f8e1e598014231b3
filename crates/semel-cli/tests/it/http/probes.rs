//! H57: a probe finds out what became of a run whose end is not known.

use test_http::{Answer, Request, until};

use super::front::{Front, Kind};
use super::rules::rules;
use super::setup::Setup;

rules! {
    h57_a_probe_that_is_answered_2xx_is_the_outcome_that_retries_get
    h57_a_probe_that_is_answered_404_lets_the_retry_run
    h57_a_probe_that_is_answered_anything_else_leaves_the_key_held
    h57_a_probe_that_is_not_answered_in_time_leaves_the_key_held
    h57_a_probe_asks_for_the_key_with_the_headers_that_it_names_and_no_others
    h57_an_outcome_that_a_probe_found_is_bounded_like_any_other
    h57_a_run_that_ends_is_never_probed
}

/// The retry of a run whose end is not known, once its lease has lapsed.
async fn after_the_lease(front: &Front, ask: &Request) -> Answer {
    until("the lease to lapse", async || {
        let answer = front.send(ask).await;
        (answer.code().as_deref() != Some("in_flight")).then_some(answer)
    })
    .await
}

/// A front with this probe before a run whose end is not known, and the retry after its lease.
async fn probed(kind: Kind, setup: Setup) -> (Front, Request, Answer) {
    let front = Front::start(kind, setup.rule("lease = \"500ms\"")).await;
    let ask = Request::post("/panics-first").from("alice").header("x-tenant", "t-1").key("\"pay 1\"");
    assert_eq!(front.send(&ask).await.code().as_deref(), Some("outcome_unknown"));
    let retry = after_the_lease(&front, &ask).await;
    (front, ask, retry)
}

fn with_probe(path: &str) -> Setup {
    Setup::new().probe(path, &["authorization"], "5s")
}

/// How often the service was asked to run, and how often it was probed.
fn asked(front: &Front) -> (usize, usize) {
    let calls = front.service.calls();
    let probes = calls.iter().filter(|call| call.method == "GET").count();
    (calls.len() - probes, probes)
}

async fn h57_a_probe_that_is_answered_2xx_is_the_outcome_that_retries_get(kind: Kind) {
    let (front, ask, found) = probed(kind, with_probe("/headers?key={key}")).await;
    assert!(found.is_replay(), "{found:?}");
    assert_eq!(found.status, 201);
    assert!(found.header("location").is_some() && found.header("set-cookie").is_none(), "{found:?}");
    let again = front.send(&ask).await;
    assert_eq!((again.status, again.text(), again.is_replay()), (201, found.text(), true));
    assert_eq!(asked(&front), (1, 1));
}

async fn h57_a_probe_that_is_answered_404_lets_the_retry_run(kind: Kind) {
    let (front, ask, ran) = probed(kind, with_probe("/status/404?key={key}")).await;
    assert_eq!(ran.ran(201).text(), "call 3");
    front.send(&ask).await.replays(&ran);
    assert_eq!(asked(&front), (2, 1));
}

async fn h57_a_probe_that_is_answered_anything_else_leaves_the_key_held(kind: Kind) {
    // Still running; a redirect; not allowed; broken.
    for status in [409, 303, 401, 500] {
        let (front, ask, held) = probed(kind, with_probe(&format!("/status/{status}?key={{key}}"))).await;
        held.refused(409, "outcome_held");
        assert_eq!(held.retry_after(), 10, "{held:?}");
        front.send(&ask).await.refused(409, "outcome_held");
        assert_eq!(asked(&front), (1, 1), "{status}");
    }
    if kind == Kind::Proxy {
        // The connection ends before there is an answer.
        let (front, _, held) = probed(kind, with_probe("/panic?key={key}")).await;
        held.refused(409, "outcome_held");
        assert_eq!(asked(&front), (1, 1));
    }
}

async fn h57_a_probe_that_is_not_answered_in_time_leaves_the_key_held(kind: Kind) {
    let (front, ask, held) = probed(kind, Setup::new().probe("/gate/shut?key={key}", &[], "200ms")).await;
    held.refused(409, "outcome_held");
    assert_eq!(held.retry_after(), 10, "{held:?}");
    // Another request under the key is a mismatch before anything else.
    front.send(&ask.body("another")).await.refused(422, "mismatch");
    assert_eq!(asked(&front), (1, 1));
}

async fn h57_a_probe_asks_for_the_key_with_the_headers_that_it_names_and_no_others(kind: Kind) {
    let (front, ..) = probed(kind, with_probe("/status/200?at={path}&key={key}")).await;
    let probe = front.service.last();
    assert_eq!(probe.method, "GET");
    assert_eq!(probe.uri.to_string(), "/status/200?at=/panics-first&key=pay%201");
    assert_eq!(probe.header("authorization"), Some("Bearer alice"));
    assert_eq!((probe.header("x-tenant"), probe.header("idempotency-key")), (None, None));
    assert!(probe.body.is_empty() && probe.header("content-length").is_none(), "{probe:?}");
}

async fn h57_an_outcome_that_a_probe_found_is_bounded_like_any_other(kind: Kind) {
    let setup = with_probe("/big/2000?key={key}").rule("response_bytes_max = 1000");
    let (front, _, found) = probed(kind, setup).await;
    assert_eq!(found.refused(409, "outcome_not_kept")["original_status"], 200);
    assert_eq!(asked(&front), (1, 1));
}

async fn h57_a_run_that_ends_is_never_probed(kind: Kind) {
    let front = Front::start(kind, with_probe("/status/404?key={key}")).await;
    let ask = Request::post("/status/201").key("k");
    let first = front.send(&ask).await;
    front.send(&ask).await.replays(first.ran(201));
    assert_eq!(asked(&front), (1, 0));
}
