//! H64: the memory that one caller can make a front hold is bounded, and others do not hear of it.

use test_http::{Answer, Request, until};
use tokio::task::JoinSet;

use super::front::{Front, Kind};
use super::multiplexed::Multiplexed;
use super::rules::rules;
use super::setup::Setup;

rules! {
    h64_replays_that_a_caller_does_not_read_take_no_room_from_others
    h64_runs_whose_responses_are_not_read_take_no_room_from_others
    h64_a_caller_past_its_share_is_refused_until_it_reads
}

const MIB: usize = 1 << 20;

/// 32 MiB in all, of which a caller has 8.
fn setup() -> Setup {
    Setup::new().table("bounds", "held_bytes_max = \"32MiB\"")
}

/// Runs of 24 other callers at once: all of them are answered, and kept.
async fn others_are_served_and_kept(front: &Front, name: &str) {
    let ask = |number: usize| {
        Request::post("/big/262144").from(&format!("other {number}")).key(&format!("{name}-{number}"))
    };
    let running: Vec<_> = (0..24).map(|number| front.send_later(&ask(number))).collect();
    let mut first: Vec<Answer> = Vec::new();
    for answer in running {
        first.push(answer.await.expect("is answered"));
    }
    for (number, first) in first.iter().enumerate() {
        front.send(&ask(number)).await.replays(first.ran(200));
    }
}

async fn h64_replays_that_a_caller_does_not_read_take_no_room_from_others(kind: Kind) {
    let front = Front::start(kind, setup()).await;
    let ask = Request::post(&format!("/big/{MIB}")).from("eve").key("k");
    front.send(&ask).await.ran(200);
    // With no window at all a body waits in front of its connection; with a small one, inside of it.
    for window in [0, 1] {
        let connection = Multiplexed::with_window(front.address(), window).await;
        let mut unread = Vec::new();
        for _ in 0..60 {
            unread.push(connection.send_unread(&ask).await);
        }
        let replayed = unread.iter().filter(|response| response.status() == 200).count();
        assert!((4..=8).contains(&replayed), "{replayed} replays of 1 MiB with a window of {window}");
        for refused in unread.iter().filter(|response| response.status() != 200) {
            assert_eq!(refused.status(), 503);
            assert!(refused.headers().contains_key("retry-after"), "{refused:?}");
        }
        others_are_served_and_kept(&front, &window.to_string()).await;
    }
}

async fn h64_runs_whose_responses_are_not_read_take_no_room_from_others(kind: Kind) {
    let front = Front::start(kind, setup()).await;
    let connection = Multiplexed::with_window(front.address(), 0).await;
    let mut runs = JoinSet::new();
    for number in 0..60 {
        let ask = Request::post(&format!("/big/{MIB}")).from("eve").key(&number.to_string());
        runs.spawn(connection.send_unread(&ask));
    }
    let mut answered = Vec::new();
    for _ in 0..10 {
        answered.push(runs.join_next().await.expect("there are more").expect("is answered"));
    }
    others_are_served_and_kept(&front, "k").await;
}

async fn h64_a_caller_past_its_share_is_refused_until_it_reads(kind: Kind) {
    let front = Front::start(kind, setup()).await;
    let ask = Request::post(&format!("/big/{MIB}")).from("eve").key("k");
    let first = front.send(&ask).await;
    let connection = Multiplexed::with_window(front.address(), 0).await;
    let mut unread = Vec::new();
    for _ in 0..20 {
        unread.push(connection.send_unread(&ask).await);
    }
    let refused = front.send(&ask).await;
    refused.refused(503, "overloaded");
    assert!(refused.retry_after() >= 1, "{refused:?}");
    // What it does not read is dropped with its streams.
    drop(unread);
    let served = until("the caller to be served again", async || {
        let answer = front.send(&ask).await;
        (answer.status == 200).then_some(answer)
    });
    served.await.replays(&first);
}
