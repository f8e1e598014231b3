//! tandem: multi-tenant, in a JSON file.

use std::time::Duration;

use semel::record::{Mismatches, State};
use semel::{Claim, ClaimedAll, Decision, ErrorKind, Fingerprint, Key, Outcome, OutcomeKind};
use serde_json::json;

use crate::world::{LEASE, World, granted, key, outcome, replayed, request};

#[test]
fn tandem_identity_is_a_digest_over_length_prefixed_parts_and_absent_differs_from_empty() {
    let of = |scope: &[&str]| Key::scoped(scope, "op", "k");
    assert_ne!(of(&["org", "ws"]).unwrap().id(), of(&["orgw", "s"]).unwrap().id());
    assert_ne!(of(&["org"]).unwrap().id(), of(&["org", "ws"]).unwrap().id());
    assert_eq!(of(&["org", ""]).unwrap_err().kind(), ErrorKind::Invalid, "empty is not absent");
}

#[tokio::test]
async fn tandem_every_answer_has_the_whole_record() {
    let world = World::new();
    let claim = |text: &str| Claim::new(&key("1")).fingerprint(request(text)).first_event("evt-1");
    let permit = granted(world.semel.claim(claim("first")).await.unwrap());
    let Decision::Busy(busy) = world.semel.claim(claim("first")).await.unwrap() else { panic!() };
    assert_eq!(busy.record().first_event.as_deref(), Some("evt-1"));
    permit.complete(outcome("done")).await.unwrap();
    let Decision::Replay(replay) = world.semel.claim(claim("first")).await.unwrap() else { panic!() };
    assert_eq!(replay.record().key, key("1"));
    let Decision::Mismatch(mismatch) = world.semel.claim(claim("other")).await.unwrap() else { panic!() };
    assert_eq!(mismatch.record().fingerprint, Some(request("first")));
}

#[tokio::test]
async fn tandem_mismatches_are_counted_their_fingerprints_kept_and_bounded() {
    let world = World::new();
    let claim = |text: &str| Claim::new(&key("1")).fingerprint(request(text));
    granted(world.semel.claim(claim("first")).await.unwrap()).complete(outcome("done")).await.unwrap();
    for wrong in ["a", "b", "a"] {
        assert!(matches!(world.semel.claim(claim(wrong)).await.unwrap(), Decision::Mismatch(_)));
    }
    let record = world.semel.get(&key("1")).await.unwrap().unwrap();
    assert_eq!(record.mismatches, Mismatches { count: 3, fingerprints: vec![request("a"), request("b")] });
    assert_ne!(Fingerprint::of_parts(["ab", "c"]), Fingerprint::of_parts(["a", "bc"]));
    // A completed key is not turned into anything else by it.
    assert_eq!(replayed(world.semel.claim(claim("first")).await.unwrap()), "done");
}

#[tokio::test]
async fn tandem_a_record_knows_owner_first_event_first_seen_last_seen_and_its_own_time() {
    let world = World::new();
    let short = Duration::from_mins(5);
    let claim = || Claim::new(&key("1")).owner("node-1").first_event("evt-1").retention(short);
    let permit = granted(world.semel.claim(claim()).await.unwrap());
    world.clock.advance(LEASE / 2);
    drop(world.semel.claim(claim().first_event("evt-2")).await.unwrap());
    world.semel.flush().await.unwrap();
    let record = world.semel.get(&key("1")).await.unwrap().unwrap();
    let State::Running(running) = &record.state else { panic!() };
    assert_eq!((&*running.grant.owner, record.first_event.as_deref()), ("node-1", Some("evt-1")));
    assert_eq!(record.duplicates.last_seen_at.unwrap().since(record.first_seen_at), LEASE / 2);
    permit.complete(outcome("done")).await.unwrap();
    world.clock.advance(short);
    assert!(world.semel.get(&key("1")).await.unwrap().is_none());
}

#[tokio::test]
async fn tandem_an_outcome_has_kind_completion_time_references_and_details() {
    let world = World::new();
    let posted = Outcome::new(OutcomeKind::Other("posted".into()), "bytes")
        .reference("message", "msg-1")
        .reference("thread", "thread-1")
        .details(&json!({ "channel": "ops" }));
    world.run(&key("1")).await.complete(posted).await.unwrap();
    let record = world.semel.get(&key("1")).await.unwrap().unwrap();
    let State::Done(done) = &record.state else { panic!() };
    assert_eq!(done.settled_at, record.changed_at);
    assert_eq!(done.outcome.kind().as_str(), "posted");
    let references: Vec<_> =
        done.outcome.references().iter().map(|reference| (&*reference.kind, &*reference.id)).collect();
    assert_eq!(references, [("message", "msg-1"), ("thread", "thread-1")]);
    assert_eq!(done.outcome.details_json(), Some(r#"{"channel":"ops"}"#));
}

#[tokio::test]
async fn tandem_time_is_handed_in() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    assert_eq!(world.semel.get(&key("1")).await.unwrap().unwrap().first_seen_at.as_micros(), 1_000_000_000);
    world.clock.advance(LEASE);
    assert!(world.run(&key("1")).await.fence() > permit.fence());
}

#[tokio::test]
async fn tandem_two_claims_for_one_delivery_are_all_or_nothing() {
    let world = World::new();
    let event = |id: &str| Claim::new(&Key::new("event", id).unwrap());
    let body = |digest: &str| Claim::new(&Key::new("body", digest).unwrap());
    let first = world.semel.claim_all(vec![event("evt-1"), body("d1")]).await.unwrap();
    assert!(matches!(first, ClaimedAll::Run(permits) if permits.len() == 2));
    let same_body = world.semel.claim_all(vec![event("evt-2"), body("d1")]).await.unwrap();
    assert!(matches!(same_body, ClaimedAll::Refused { .. }));
    let other = world.semel.claim_all(vec![event("evt-2"), body("d2")]).await.unwrap();
    assert!(matches!(other, ClaimedAll::Run(_)), "the refused delivery left nothing behind");
}

#[test]
fn tandem_fields_are_trimmed_and_empty_ones_refused_by_name() {
    assert_eq!(Key::scoped([" org "], " op ", " k ").unwrap(), Key::scoped(["org"], "op", "k").unwrap());
    for (field, refused) in [
        ("scope", Key::scoped([" "], "op", "k")),
        ("operation", Key::new(" ", "k")),
        ("name", Key::new("op", "")),
    ] {
        assert!(refused.unwrap_err().to_string().starts_with(field));
    }
}

#[tokio::test]
async fn tandem_a_claim_has_a_lease_at_most_eight_attempts_and_then_a_person_decides() {
    let world = World::with(|builder| builder.attempts_max(8));
    for attempt in 1..=8 {
        let permit = world.run(&key("1")).await;
        assert_eq!(permit.attempt(), attempt);
        permit.renew().await.unwrap();
        world.clock.advance(LEASE);
    }
    let Decision::Held(held) = world.semel.claim(Claim::new(&key("1"))).await.unwrap() else { panic!() };
    assert_eq!(held.reason(), "attempts");
}

#[tokio::test]
async fn tandem_an_older_shape_is_read_and_a_newer_one_refused_by_name() {
    let world = World::new();
    world.run(&key("1")).await.complete(outcome("done")).await.unwrap();
    let record = world.semel.get(&key("1")).await.unwrap().unwrap();
    let mut bytes = semel::codec::encode(&record).unwrap();
    assert_eq!(semel::codec::decode(&bytes).unwrap(), record);
    bytes[4] = 3;
    let error = semel::codec::decode(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Newer);
    assert!(error.to_string().contains("format 3 is newer"), "{error}");
}
