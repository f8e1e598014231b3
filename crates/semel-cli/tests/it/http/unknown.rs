//! H59: what a client hears between an outcome that is not known and the end of the lease.

use serde_json::Value;
use test_http::{Answer, Request, until};

use super::front::{Front, Kind};
use super::rules::rules;
use super::service::Service;
use super::setup::Setup;
use super::shelf::Shelf;

rules! {
    h59_a_retry_hears_that_the_outcome_is_unknown_and_when_the_policy_decides
    h59_a_retry_hears_it_after_the_process_has_changed
    h59_a_retry_of_what_still_runs_hears_that_it_runs
}

fn text(problem: &Value) -> &str {
    problem["detail"].as_str().expect("is text")
}

/// A retry within a lease of 60 s that began a moment ago.
fn says_what_is_so(retry: &Answer, then: &str) {
    let problem = retry.refused(409, "in_flight");
    assert_eq!(problem["outcome"], "unknown", "{retry:?}");
    for part in ["outcome is not known", "lease ends in", then] {
        assert!(text(&problem).contains(part), "no \"{part}\": {retry:?}");
    }
    assert!((40..=60).contains(&retry.retry_after()), "{retry:?}");
}

async fn h59_a_retry_hears_that_the_outcome_is_unknown_and_when_the_policy_decides(kind: Kind) {
    for (lapse, then) in [("rerun", "runs again"), ("hold", "held for review")] {
        let setup = Setup::new().rule(&format!("lease = \"60s\"\nlapse = \"{lapse}\""));
        let front = Front::start(kind, setup).await;
        // A response that breaks off, and an answer that never comes.
        for path in ["/broken", "/panic"] {
            let ask = Request::post(path).key(path);
            let first = front.send(&ask).await;
            first.refused(if kind == Kind::Layer && path == "/panic" { 500 } else { 504 }, "outcome_unknown");
            assert!((40..=60).contains(&first.retry_after()), "{first:?}");
            // What a handler that panicked leaves is written in the background.
            let retry = until("the retry to hear it", async || {
                let retry = front.send(&ask).await;
                let is_told = retry.problem()["outcome"] == "unknown";
                (is_told || path == "/broken").then_some(retry)
            });
            says_what_is_so(&retry.await, then);
            front.send(&ask.clone().body("another")).await.refused(422, "mismatch");
        }
        assert_eq!(front.service.count(), 2);
    }
}

async fn h59_a_retry_hears_it_after_the_process_has_changed(kind: Kind) {
    let (shelf, service) = (Shelf::plain(kind), Service::default());
    let setup = Setup::new().rule("lease = \"60s\"\nlapse = \"hold\"");
    let front = Front::start_on(kind, &setup, &shelf, &service).await;
    let ask = Request::post("/broken").key("k");
    front.send(&ask).await.refused(504, "outcome_unknown");
    front.kill();
    let other = Front::start_on(kind, &setup, &shelf, &service).await;
    says_what_is_so(&other.send(&ask).await, "held for review");
    assert_eq!(service.count(), 1);
}

async fn h59_a_retry_of_what_still_runs_hears_that_it_runs(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("lease = \"60s\"")).await;
    let ask = Request::post("/gate/g").key("k");
    let first = front.send_later(&ask);
    front.service.until_called(1).await;
    let retry = front.send(&ask).await;
    let problem = retry.refused(409, "in_flight");
    assert!(problem["outcome"].is_null() && text(&problem).contains("still runs"), "{retry:?}");
    assert!(retry.retry_after() <= 5, "{retry:?}");
    front.service.open("g");
    first.await.expect("is answered").ran(201);
}
