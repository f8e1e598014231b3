//! Profiles: the same code with another table.

use test_http::Request;

use super::front::{Front, Kind};
use super::rules::rules;
use super::setup::Setup;

rules! {
    stripe_answers_a_mismatch_with_400
    stripe_stores_a_5xx_once_the_run_began
    stripe_remembers_for_a_day_and_marks_replays
    a_config_file_can_spell_a_profile_out
}

fn stripe() -> Setup {
    Setup::new().top("profile = \"stripe\"")
}

async fn stripe_answers_a_mismatch_with_400(kind: Kind) {
    for (setup, status) in [(stripe(), 400), (Setup::new(), 422)] {
        let front = Front::start(kind, setup).await;
        let ask = Request::post("/status/201").key("k");
        let first = front.send(&ask).await;
        front.send(&ask.clone().body("another")).await.refused(status, "mismatch");
        front.send(&ask).await.replays(first.ran(201));
    }
}

async fn stripe_stores_a_5xx_once_the_run_began(kind: Kind) {
    for (setup, runs) in [(stripe(), 1), (Setup::new(), 2)] {
        let front = Front::start(kind, setup).await;
        let ask = Request::post("/status/500").key("k");
        front.send(&ask).await.ran(500);
        assert_eq!(front.send(&ask).await.is_replay(), runs == 1);
        assert_eq!(front.service.count(), runs);
    }
}

async fn stripe_remembers_for_a_day_and_marks_replays(kind: Kind) {
    let front = Front::start(kind, stripe()).await;
    let ask = Request::post("/status/201").key("k");
    let first = front.send(&ask).await;
    let retry = front.send(&ask).await;
    assert_eq!(retry.replays(first.ran(201)).header("idempotent-replayed"), Some("true"));
    let end = httpdate::parse_http_date(first.header("idempotency-expires").expect("there is an end"));
    let date = httpdate::parse_http_date(first.header("date").expect("there is a date"));
    let span = end.expect("a date").duration_since(date.expect("a date")).expect("is later").as_secs();
    assert!((86_390..=86_410).contains(&span), "{span} s");
}

async fn a_config_file_can_spell_a_profile_out(kind: Kind) {
    let spelled_out = Setup::new()
        .rule("on_server_error = \"store\"")
        .table("statuses", "mismatch = 400\nin_flight = 425\nkey_missing = 428")
        .table("headers", "replayed = \"Idempotent-Replayed\"\nexpires = \"off\"")
        .route("/required", "key = \"required\"");
    let front = Front::start(kind, spelled_out).await;
    let ask = Request::post("/status/500").key("k");
    let first = front.send(&ask).await;
    assert_eq!(first.ran(500).header("idempotency-expires"), None);
    front.send(&ask).await.replays(&first);
    front.send(&ask.body("another")).await.refused(400, "mismatch");
    front.send(&Request::post("/required")).await.refused(428, "key_missing");
    let running = front.send_later(&Request::post("/gate/gate").key("running"));
    front.service.until_called(2).await;
    front.send(&Request::post("/gate/gate").key("running")).await.refused(425, "in_flight");
    front.service.open("gate");
    running.await.expect("ends").ran(201);
}
