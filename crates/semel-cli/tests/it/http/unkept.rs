//! H56: responses that are not kept, and what their retries hear.

use test_http::{Ending, Request};

use super::front::{Front, Kind};
use super::responses::pattern;
use super::rules::rules;
use super::setup::Setup;

rules! {
    h56_five_mebibytes_reach_the_first_client_whole_and_the_retry_does_not_run
    h56_the_bound_is_what_is_still_kept
    h56_a_stream_of_events_reaches_the_first_client_as_it_comes
    h56_an_upgrade_reaches_the_first_client_and_its_retry_does_not_run
}

async fn h56_five_mebibytes_reach_the_first_client_whole_and_the_retry_does_not_run(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/big/5242880").key("k");
    let first = front.send(&ask).await;
    assert_eq!(first.ran(200).ending, Ending::Whole);
    assert!(first.body == pattern(5 << 20), "{} bytes, or others", first.body.len());
    for _ in 0..2 {
        let problem = front.send(&ask).await.refused(409, "outcome_not_kept");
        assert_eq!(problem["original_status"], 200);
    }
    front.send(&ask.body("another")).await.refused(422, "mismatch");
    assert_eq!(front.service.count(), 1);
}

async fn h56_the_bound_is_what_is_still_kept(kind: Kind) {
    let front = Front::start(kind, Setup::new().rule("response_bytes_max = 1000")).await;
    for (bytes, is_kept) in [(999, true), (1000, true), (1001, false)] {
        // Once in pieces and without a length, once in one.
        let asks = [Request::post(&format!("/big/{bytes}")), Request::post("/echo").body(pattern(bytes))];
        for (number, ask) in asks.into_iter().enumerate() {
            let ask = ask.key(&format!("{bytes}-{number}"));
            let first = front.send(&ask).await;
            assert!(first.ran(200).body == pattern(bytes), "{first:?}");
            let retry = front.send(&ask).await;
            if is_kept {
                retry.replays(&first);
            } else {
                retry.refused(409, "outcome_not_kept");
            }
        }
    }
    assert_eq!(front.service.count(), 6);
}

async fn h56_a_stream_of_events_reaches_the_first_client_as_it_comes(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/sse/gate").key("k");
    let mut connection = front.connect().await;
    connection.write_if_open(&ask.bytes()).await;
    let head = connection.head().await.expect("there is an answer");
    assert_eq!((head.status, head.is_replay()), (200, false));
    connection.up_to(b"data: call 1\n\n").await.expect("the first event comes before the second is made");
    // Its retry does not run, while it streams and afterwards.
    let problem = front.send(&ask).await.refused(409, "outcome_not_kept");
    assert_eq!(problem["original_status"], 200);
    front.service.open("gate");
    connection.up_to(b"data: the end\n\n").await.expect("the second event comes");
    front.send(&ask).await.refused(409, "outcome_not_kept");
    assert_eq!(front.service.count(), 1);
}

async fn h56_an_upgrade_reaches_the_first_client_and_its_retry_does_not_run(kind: Kind) {
    let front = Front::start(kind, Setup::new()).await;
    let ask = Request::post("/upgrade").key("k").header("connection", "upgrade").header("upgrade", "echo");
    let ask = ask.body("");
    let mut connection = front.connect().await;
    connection.write_if_open(&ask.bytes()).await;
    let head = connection.head().await.expect("there is an answer");
    assert_eq!((head.status, head.header("upgrade")), (101, Some("echo")));
    connection.write_if_open(b"not HTTP any more").await;
    connection.up_to(b"not HTTP any more").await.expect("it comes back");
    let problem = front.send(&ask).await.refused(409, "outcome_not_kept");
    assert_eq!(problem["original_status"], 101);
    assert_eq!(front.service.count(), 1);
}
