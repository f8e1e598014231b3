//! Two callers with the same key see nothing of each other, in whatever state it is.

use test_http::{Request, until};

use super::front::{Front, Kind};
use super::rules::rules;
use super::setup::Setup;

rules! {
    h60_a_running_key_of_another_caller_blocks_nobody
    h60_a_kept_outcome_of_another_caller_is_never_seen
    h60_a_released_key_of_another_caller_is_never_seen
    h60_a_held_key_of_another_caller_holds_nobody
    h60_an_outcome_that_was_not_kept_is_not_kept_for_its_caller_only
    h60_a_mismatch_of_another_caller_is_never_seen
}

/// Bob, who is nobody's friend, asks with the key that ada used, and is served as if she had never been.
async fn bob_is_alone(front: &Front, ask: &Request) {
    let before = front.service.count();
    let bobs = ask.without_caller().from("bob").to("/status/201").body("of bob's own");
    let first = front.send(&bobs).await;
    assert_eq!(first.ran(201).text(), format!("call {}", before + 1));
    front.send(&bobs).await.replays(&first);
    front.send(&bobs.body("another")).await.refused(422, "mismatch");
    assert_eq!(front.service.count(), before + 1);
}

async fn h60_a_running_key_of_another_caller_blocks_nobody(kind: Kind) {
    for setup in [Setup::new(), Setup::new().rule("while_running = { wait = \"30s\" }")] {
        let front = Front::start(kind, setup).await;
        let ask = Request::post("/gate/gate").key("k").from("ada");
        let running = front.send_later(&ask);
        front.service.until_called(1).await;
        bob_is_alone(&front, &ask).await;
        front.service.open("gate");
        let first = running.await.expect("ends");
        front.send(&ask).await.replays(first.ran(201));
    }
}

async fn h60_a_kept_outcome_of_another_caller_is_never_seen(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/status/201").key("k").from("ada");
    let first = front.send(&ask).await;
    first.ran(201);
    bob_is_alone(&front, &ask).await;
    front.send(&ask).await.replays(&first);
}

async fn h60_a_released_key_of_another_caller_is_never_seen(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("attempts_max = 2")).await;
    let ask = Request::post("/status/500").key("k").from("ada");
    for _ in 0..2 {
        front.send(&ask).await.ran(500);
    }
    // Ada has used up her attempts; bob has all of his.
    front.send(&ask).await.refused(409, "outcome_held");
    bob_is_alone(&front, &ask).await;
}

async fn h60_a_held_key_of_another_caller_holds_nobody(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("lapse = \"hold\"\nlease = \"500ms\"")).await;
    let ask = Request::post("/panic").key("k").from("ada");
    front.send(&ask).await;
    until("the key to be held", async || {
        (front.send(&ask).await.code().as_deref() == Some("outcome_held")).then_some(())
    })
    .await;
    bob_is_alone(&front, &ask).await;
    front.send(&ask).await.refused(409, "outcome_held");
}

async fn h60_an_outcome_that_was_not_kept_is_not_kept_for_its_caller_only(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("response_bytes_max = 100")).await;
    let ask = Request::post("/big/200").key("k").from("ada");
    front.send(&ask).await.ran(200);
    front.send(&ask).await.refused(409, "outcome_not_kept");
    bob_is_alone(&front, &ask).await;
    front.send(&ask).await.refused(409, "outcome_not_kept");
}

async fn h60_a_mismatch_of_another_caller_is_never_seen(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/status/201").key("k").from("ada");
    let first = front.send(&ask).await;
    front.send(&ask.clone().body("another")).await.refused(422, "mismatch");
    bob_is_alone(&front, &ask).await;
    front.send(&ask).await.replays(&first);
}
