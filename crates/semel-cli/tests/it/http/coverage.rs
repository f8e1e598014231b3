//! H10 to H12: which requests are covered, and what refusals look like.

use std::collections::HashSet;
use test_http::{Answer, Ending, Request};

use super::front::{Front, Kind};
use super::responses::pattern;
use super::rules::rules;
use super::setup::Setup;

rules! {
    h10_post_and_patch_are_covered_unless_said_otherwise
    h10_put_and_delete_are_covered_by_choice
    h10_safe_methods_pass_untouched_even_with_a_key
    h11_a_missing_key_passes_where_it_is_optional
    h11_a_missing_key_is_refused_where_it_is_required
    h11_the_key_is_forwarded_as_it_was_sent
    h11_bodies_of_requests_that_are_not_covered_have_no_bound
    h11_responses_to_requests_that_are_not_covered_stream
    h12_refusals_are_problems_with_a_code_and_a_stable_type
    h12_the_base_of_the_type_is_configurable
    h12_a_refusal_shows_nothing_of_what_is_stored
}

async fn h10_post_and_patch_are_covered_unless_said_otherwise(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for (method, runs) in [("POST", 1), ("PATCH", 1), ("PUT", 2), ("DELETE", 2)] {
        let ask = Request::post("/things/1").method(method).key(method);
        let first = front.send(&ask).await;
        first.ran(201);
        let second = front.send(&ask).await;
        assert_eq!(front.service.count_of(method), runs, "{method}");
        assert_eq!(second.is_replay(), runs == 1, "{method}");
    }
}

async fn h10_put_and_delete_are_covered_by_choice(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("methods = [\"PUT\", \"DELETE\"]")).await;
    for (method, runs) in [("PUT", 1), ("DELETE", 1), ("POST", 2)] {
        let ask = Request::post("/things/1").method(method).key(method);
        let first = front.send(&ask).await;
        first.ran(201);
        let second = front.send(&ask).await;
        assert_eq!(front.service.count_of(method), runs, "{method}");
        assert_eq!(second.is_replay(), runs == 1, "{method}");
    }
}

async fn h10_safe_methods_pass_untouched_even_with_a_key(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("key = \"required\"")).await;
    for (number, method) in ["GET", "HEAD", "OPTIONS", "TRACE"].into_iter().enumerate() {
        let ask = Request::new(method, "/status/200").key("k");
        for _ in 0..2 {
            let answer = front.send(&ask).await;
            answer.ran(200);
            assert_eq!(answer.header("idempotency-expires"), None, "{method}");
        }
        // Also with a key that is none, and without one.
        front.send(&Request::new(method, "/status/200").key("no key at all")).await.ran(200);
        front.send(&Request::new(method, "/status/200")).await.ran(200);
        assert_eq!(front.service.count(), (number + 1) * 4, "{method}");
    }
}

async fn h11_a_missing_key_passes_where_it_is_optional(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let (first, second) =
        (front.send(&Request::post("/status/201")).await, front.send(&Request::post("/status/201")).await);
    assert_eq!((first.ran(201).text(), second.ran(201).text()), ("call 1", "call 2"));
    let known = ["content-type", "content-length", "date", "transfer-encoding", "connection"];
    for (name, _) in &first.headers {
        assert!(known.contains(&name.to_ascii_lowercase().as_str()), "{name} was added: {first:?}");
    }
}

async fn h11_a_missing_key_is_refused_where_it_is_required(kind: Kind) {
    let setup =
        Setup::new().route("/charges/{id}", "key = \"required\"").route("/notes", "key = \"optional\"");
    let front = Front::start(kind, setup).await;
    let problem = front.send(&Request::post("/charges/7")).await.refused(400, "key_missing");
    assert_eq!(problem["title"], "Idempotency-Key is missing");
    assert_eq!(front.service.count(), 0);
    front.send(&Request::post("/charges/7").key("k")).await.ran(201);
    front.send(&Request::post("/notes")).await.ran(201);
    front.send(&Request::post("/elsewhere")).await.ran(201);
}

async fn h11_the_key_is_forwarded_as_it_was_sent(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    for key in ["bare-key", "\"quoted key\"", "\"k\";v=1"] {
        front.send(&Request::post("/charges").key(key)).await.ran(201);
        assert_eq!(front.service.last().header("idempotency-key"), Some(key));
    }
}

async fn h11_bodies_of_requests_that_are_not_covered_have_no_bound(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("request_bytes_max = 1024")).await;
    let body = pattern(3 << 20);
    let without_key = front.send(&Request::post("/echo").body(body.clone())).await;
    assert!(without_key.ran(200).body == body, "{without_key:?}");
    let other_method = front.send(&Request::post("/echo").method("PUT").key("k").body(body.clone())).await;
    assert!(other_method.ran(200).body == body, "{other_method:?}");
    // Control: the bound is there for those that are covered.
    front.send(&Request::post("/echo").key("k").body(body)).await.refused(413, "body_too_large");
}

async fn h11_responses_to_requests_that_are_not_covered_stream(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let mut connection = front.connect().await;
    connection.write_if_open(&Request::post("/halves/gate").bytes()).await;
    let head = connection.head().await.expect("there is an answer");
    assert_eq!(head.status, 200);
    connection.up_to(b"data: call 1\n\n").await.expect("the first half comes before the second is made");
    front.service.open("gate");
    connection.up_to(b"data: the end\n\n").await.expect("the second half comes");
}

/// Answers of all kinds that one front gives without its service.
async fn refusals(front: &Front) -> Vec<(u16, &'static str, Answer)> {
    let charge = |body: &str| Request::post("/required").key("k").body(body);
    front.send(&charge("stored-request-s3cret")).await.ran(201);
    let running = front.send_later(&Request::post("/gate/gate").key("running"));
    front.service.until_called(2).await;
    front.send(&Request::post("/big/5000").key("big")).await.ran(200);
    let refusals = vec![
        (400, "key_missing", front.send(&Request::post("/required")).await),
        (400, "key_malformed", front.send(&Request::post("/required").key("")).await),
        (422, "mismatch", front.send(&charge("another body")).await),
        (409, "in_flight", front.send(&Request::post("/gate/gate").key("running")).await),
        (409, "outcome_not_kept", front.send(&Request::post("/big/5000").key("big")).await),
        (
            413,
            "body_too_large",
            front.send(&Request::post("/required").key("long").body(vec![0; 5000])).await,
        ),
    ];
    front.service.open("gate");
    running.await.expect("ends").ran(201);
    refusals
}

fn bounded() -> Setup {
    let bounds = "request_bytes_max = 4000\nresponse_bytes_max = 4000";
    Setup::new().rule(bounds).route("/required", "key = \"required\"")
}

async fn h12_refusals_are_problems_with_a_code_and_a_stable_type(kind: Kind) {
    let front = Front::start(kind, bounded()).await;
    let mut types = HashSet::new();
    for (status, code, answer) in refusals(&front).await {
        let problem = answer.refused(status, code);
        assert_eq!(problem["type"], format!("urn:semel:problem:{code}"));
        assert!(types.insert(problem["type"].to_string()), "{code} has a type of its own");
        assert_eq!(answer.ending, Ending::Whole);
    }
    assert_eq!(types.len(), 6);
}

async fn h12_the_base_of_the_type_is_configurable(kind: Kind) {
    let setup = bounded().top("problem_base = \"https://errors.test/\"");
    let front = Front::start(kind, setup).await;
    for (status, code, answer) in refusals(&front).await {
        assert_eq!(answer.refused(status, code)["type"], format!("https://errors.test/{code}"));
    }
}

async fn h12_a_refusal_shows_nothing_of_what_is_stored(kind: Kind) {
    let front = Front::start(kind, bounded()).await;
    for (_, code, answer) in refusals(&front).await {
        let shown = format!("{:?}{}", answer.headers, answer.text());
        for secret in ["s3cret", "call 1", "another body"] {
            assert!(!shown.contains(secret), "{code} shows {secret}: {answer:?}");
        }
        // Neither a digest: nothing that looks like one.
        let longest = shown.split(|c: char| !c.is_ascii_hexdigit()).map(str::len).max();
        assert!(longest < Some(16), "{code} shows a digest: {answer:?}");
    }
}
