//! H65: keys, bodies and tokens stay out of what is written.

use test_http::{Request, until};

use super::front::{Front, Kind};
use super::rules::rules;
use super::setup::Setup;

rules! {
    h65_raw_keys_bodies_and_tokens_are_never_written
}

const KEY: &str = "raw-key-5f2c";
const SECRETS: [&str; 7] = [
    KEY,
    "raw-body-77aa",
    "raw-token-91bc",
    "raw-query-c0de",
    "raw-header-beef",
    "malformed raw-key",
    "raw-other-body",
];

/// Which of the secrets were written.
fn found(written: &str) -> Vec<&'static str> {
    SECRETS.into_iter().filter(|secret| written.contains(secret)).collect()
}

/// Every decision that there is, with secrets in whatever a client may send.
async fn decide_everything(front: &Front) {
    let ask = Request::post("/status/201?q=raw-query-c0de")
        .from("raw-token-91bc")
        .header("x-own", "raw-header-beef");
    let ask = ask.body("raw-body-77aa");
    let kept = ask.clone().key(KEY);
    let first = front.send(&kept).await;
    front.send(&kept).await.replays(first.ran(201));
    front.send(&kept.clone().body("raw-other-body")).await.refused(422, "mismatch");
    front.send(&ask.clone().key("malformed raw-key")).await.refused(400, "key_malformed");
    front.send(&ask.clone()).await.ran(201);
    front.send(&kept.clone().to("/echo").from("other raw-token-91bc")).await.ran(200);
    let running = front.send_later(&ask.clone().to("/gate/gate").key("raw-key-5f2c-2"));
    front.service.until_called(4).await;
    front.send(&ask.clone().to("/gate/gate").key("raw-key-5f2c-2")).await.refused(409, "in_flight");
    front.service.open("gate");
    running.await.expect("ends").ran(201);
    front.send(&ask.clone().to("/status/500").key("raw-key-5f2c-3")).await.ran(500);
    let lost = front.send(&ask.clone().to("/panic").key("raw-key-5f2c-4")).await;
    assert_eq!(lost.code().as_deref(), Some("outcome_unknown"));
    front.send(&ask.to("/big/2000000").key("raw-key-5f2c-5")).await.ran(200);
}

async fn h65_raw_keys_bodies_and_tokens_are_never_written(kind: Kind) {
    // Access logs are on: that is where they would be.
    let front = Front::start(kind, Setup::new()).await;
    decide_everything(&front).await;
    let written = until("something to be written", async || {
        let written = front.written();
        // The last decision is there: whatever was to be written is.
        let lines = written.lines().filter(|line| line.contains("run") || line.contains("key")).count();
        (lines >= 10).then_some(written)
    })
    .await;
    assert_eq!(found(&written), [""; 0], "{written}");
    // Controls: a line that does hold one is found; and what was searched is what would hold it.
    assert_eq!(found(&format!("{written}\nkey={KEY} decided")), [KEY]);
    if kind == Kind::Layer {
        tracing::info!(key = KEY, "said by the test");
        assert_eq!(found(&front.written()), [KEY]);
    } else {
        assert!(written.contains("/status/201"), "there is no access log: {written}");
    }
}
