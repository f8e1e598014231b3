//! What cratestack does over HTTP is done here too, and what it gets wrong is not.

use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;
use test_http::{Request, until};

use super::front::{Front, Kind};
use super::responses::{KEPT, ONE_HOP, pattern};
use super::rules::rules;
use super::setup::Setup;

rules! {
    cratestack_a_replay_has_status_headers_and_body_with_a_marker
    cratestack_busy_is_409_another_request_422_and_a_bad_key_400
    cratestack_who_cannot_be_told_is_refused_and_forwarded_headers_are_not_trusted
    cratestack_a_streamed_response_passes_through_and_an_oversized_one_is_noticed
    cratestack_a_crash_does_not_block_the_key_for_a_day
    cratestack_a_client_that_hangs_up_does_not_block_the_key_for_a_day
    cratestack_a_response_over_the_bound_is_not_run_twice
    cratestack_a_refreshed_token_is_the_same_caller
}

async fn cratestack_a_replay_has_status_headers_and_body_with_a_marker(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/headers").key("k");
    let first = front.send(&ask).await;
    let retry = front.send(&ask).await;
    assert_eq!(retry.replays(first.ran(201)).header("idempotent-replayed"), Some("true"));
    for (name, _) in KEPT {
        assert_eq!(retry.all(name), first.all(name), "{name}");
    }
    let ask = Request::post("/hop").key("hop");
    front.send(&ask).await.ran(201);
    let retry = front.send(&ask).await;
    for (name, value) in ONE_HOP {
        assert!(!retry.all(name).contains(&value), "{name}: {retry:?}");
    }
}

async fn cratestack_busy_is_409_another_request_422_and_a_bad_key_400(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/gate/gate").key("k");
    let running = front.send_later(&ask);
    front.service.until_called(1).await;
    let busy = front.send(&ask).await;
    busy.refused(409, "in_flight");
    assert!(busy.retry_after() >= 1);
    front.send(&ask.clone().body("another")).await.refused(422, "mismatch");
    front.send(&Request::post("/gate/gate").key("")).await.refused(400, "key_malformed");
    front.service.open("gate");
    running.await.expect("ends").ran(201);
}

async fn cratestack_who_cannot_be_told_is_refused_and_forwarded_headers_are_not_trusted(kind: Kind) {
    let setup = Setup::new().table("principal", "from = \"header\"\nheader = \"x-user\"");
    let front = Front::start(kind, setup).await;
    let ask = Request::post("/status/201").key("k");
    front.send(&ask.clone().header("x-forwarded-for", "203.0.113.7")).await.refused(400, "caller_unknown");
    front.send(&ask.header("x-forwarded-user", "ada")).await.refused(400, "caller_unknown");
    assert_eq!(front.service.count(), 0);
}

async fn cratestack_a_streamed_response_passes_through_and_an_oversized_one_is_noticed(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let mut connection = front.connect().await;
    connection.write_if_open(&Request::post("/sse/gate").key("stream").bytes()).await;
    connection.up_to(b"data: call 1\n\n").await.expect("it comes as it is made");
    front.service.open("gate");
    connection.up_to(b"data: the end\n\n").await.expect("all of it");
    let ask = Request::post("/big/3000000").key("big");
    assert!(front.send(&ask).await.ran(200).body == pattern(3_000_000));
    front.send(&ask).await.refused(409, "outcome_not_kept");
}

/// It blocks the key for a lease at most.
async fn cratestack_a_crash_does_not_block_the_key_for_a_day(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("lease = \"1s\"\nlapse = \"rerun\"")).await;
    let ask = Request::post("/panics-first").key("k");
    let first = front.send(&ask).await;
    assert_eq!(first.code().as_deref(), Some("outcome_unknown"), "{first:?}");
    let second = until("the lease to lapse", async || {
        let answer = front.send(&ask).await;
        (answer.code().as_deref() != Some("in_flight")).then_some(answer)
    })
    .await;
    assert_eq!(second.ran(201).text(), "call 2");
    front.send(&ask).await.replays(&second);
}

async fn cratestack_a_client_that_hangs_up_does_not_block_the_key_for_a_day(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/gate/gate").key("k");
    let mut connection = front.connect().await;
    connection.write_if_open(&ask.bytes()).await;
    front.service.until_called(1).await;
    drop(connection);
    front.service.open("gate");
    let retry = until("the outcome", async || {
        let answer = front.send(&ask).await;
        (answer.code().as_deref() != Some("in_flight")).then_some(answer)
    })
    .await;
    assert_eq!((retry.status, retry.is_replay(), front.service.count()), (201, true, 1), "{retry:?}");
}

async fn cratestack_a_response_over_the_bound_is_not_run_twice(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/big/2500000").key("k");
    front.send(&ask).await.ran(200);
    for _ in 0..3 {
        front.send(&ask).await.refused(409, "outcome_not_kept");
    }
    assert_eq!(front.service.count(), 1);
}

const SECRET: &str = "a secret of enough bytes for HS256";

fn token(caller: &str, issued: &str, secret: &str) -> String {
    // Far in the future: a time that no test waits for.
    let claims = json!({ "sub": caller, "jti": issued, "exp": 32_503_680_000_u64 });
    encode(&Header::default(), &claims, &EncodingKey::from_secret(secret.as_bytes())).expect("is signed")
}

async fn cratestack_a_refreshed_token_is_the_same_caller(kind: Kind) {
    let folder = tempfile::tempdir().expect("a folder for a test");
    let file = folder.path().join("secret");
    std::fs::write(&file, SECRET).expect("is written");
    let lines = format!("from = \"jwt\"\nalgorithm = \"HS256\"\nsecret_file = \"{}\"", file.display());
    let front = Front::start(kind, Setup::new().table("principal", &lines)).await;
    let ask = |token: &str| Request::post("/status/201").key("k").from(token);
    let first = front.send(&ask(&token("ada", "1", SECRET))).await;
    first.ran(201);
    front.send(&ask(&token("ada", "2", SECRET))).await.replays(&first);
    assert_eq!(front.send(&ask(&token("bob", "1", SECRET))).await.ran(201).text(), "call 2");
    // Who signs with another secret is nobody, whoever it says it is.
    front
        .send(&ask(&token("ada", "3", "another secret, also long enough")))
        .await
        .refused(401, "caller_unknown");
    front.send(&ask("ada")).await.refused(401, "caller_unknown");
    // Control: by the token itself, a refreshed one is somebody else.
    let by_token = Front::start(kind, Setup::new()).await;
    by_token.send(&ask(&token("ada", "1", SECRET))).await.ran(201);
    by_token.send(&ask(&token("ada", "2", SECRET))).await.ran(201);
}
