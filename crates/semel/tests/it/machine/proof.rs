//! A permit is its id and its fence: a run under the same id that was granted anew is another run.

use std::sync::Arc;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::machine::amend::{Stepped, step};
use semel::machine::claim::claim;
use semel::machine::settle::{Completed, Proof, ReleaseAnswer, Renewed, complete, release, renew};
use semel::record::{Record, Step, Version};
use semel::{Key, Outcome};
use semel_testkit::sample;

const NOW: Timestamp = Timestamp::from_micros(1_000);

/// A record that a claim made at this version, and again at a later one, after the first was swept.
fn lives() -> (Arc<Record>, Arc<Record>, Proof) {
    let ask = sample::ask(&Key::new("op", "n").unwrap());
    let life = |version| claim(None, &ask, NOW).write.unwrap().next.stamp(Version::new(version), NOW);
    (life(7), life(9), Proof { permit_id: ask.permit_id, fence: Some(Version::new(7)) })
}

#[test]
fn a_permit_settles_the_run_that_it_was_granted_and_no_later_one_under_its_id() {
    let (own, other, proof) = lives();
    let (paid, lease) = (Outcome::success("paid"), Duration::from_secs(1));
    assert_eq!(complete(Some(&own), proof, &paid, NOW).answer, Completed::Done);
    assert_eq!(complete(Some(&other), proof, &paid, NOW).answer, Completed::Lost);
    assert_eq!(release(Some(&own), proof, "gave up", NOW).answer, ReleaseAnswer::Released);
    assert_eq!(release(Some(&other), proof, "gave up", NOW).answer, ReleaseAnswer::NotHolding);
    assert_eq!(renew(Some(&own), proof, lease, NOW).answer, Renewed::Renewed);
    assert_eq!(renew(Some(&other), proof, lease, NOW).answer, Renewed::Lost);
    let reserve = Step { name: "reserve".into(), value: [1].into() };
    assert_eq!(step(Some(&own), proof, &reserve, NOW).answer, Stepped::Stored);
    assert_eq!(step(Some(&other), proof, &reserve, NOW).answer, Stepped::Lost);
}

#[test]
fn a_retried_complete_is_known_by_its_fence_too() {
    let (own, other, proof) = lives();
    let paid = Outcome::success("paid");
    let done = |record: &Record| {
        let write = complete(Some(record), proof.permit_id, &paid, NOW).write.unwrap();
        write.next.stamp(Version::new(20), NOW)
    };
    assert_eq!(complete(Some(&done(&own)), proof, &paid, NOW).answer, Completed::Done);
    assert_eq!(complete(Some(&done(&other)), proof, &paid, NOW).answer, Completed::Lost);
}
