//! What operators do to a record applies to what they were shown, and to nothing else.

use semel::record::State;
use semel::{Claim, OperatorAnswer, Resolution};

use crate::world::{World, granted, key, outcome, replayed};

fn release() -> Resolution {
    Resolution::Release { reason: "it never left".into() }
}

#[tokio::test]
async fn a_record_at_the_version_that_was_shown_is_settled() {
    let world = World::new();
    world.run(&key("1")).await.hold("no answer").await.unwrap();
    let shown = world.semel.get(&key("1")).await.unwrap().unwrap();
    let version = Some(shown.version.get());
    let answer =
        world.semel.resolve_shown(&shown, Resolution::Done(outcome("looked")), version).await.unwrap();
    assert_eq!(answer, OperatorAnswer::Resolved);
    assert_eq!(replayed(world.semel.claim(Claim::new(&key("1"))).await.unwrap()), "looked");
    let answer = world.semel.resolve_shown(&shown, release(), None).await.unwrap();
    assert_eq!(answer, OperatorAnswer::NotHeld, "it is done");
}

#[tokio::test]
async fn a_record_that_was_held_anew_since_it_was_shown_is_left_alone() {
    let world = World::new();
    // Under the same permit id: that alone does not make it the same run.
    let own = || Claim::new(&key("1")).permit_id(semel::record::PermitId::new(7));
    granted(world.semel.claim(own()).await.unwrap()).hold("no answer").await.unwrap();
    let shown = world.semel.get(&key("1")).await.unwrap().unwrap();
    world.semel.resolve(&key("1"), release()).await.unwrap();
    granted(world.semel.claim(own()).await.unwrap()).hold("no answer again").await.unwrap();
    let before = world.semel.get(&key("1")).await.unwrap();
    let version = Some(shown.version.get());
    let answers = [
        world.semel.resolve_shown(&shown, release(), version).await.unwrap(),
        world.semel.release_shown(&shown, "stuck", version).await.unwrap(),
    ];
    assert_eq!(answers, [OperatorAnswer::Changed; 2]);
    assert_eq!(world.semel.get(&key("1")).await.unwrap(), before);
    let answer = world.semel.resolve_shown(&shown, release(), None).await.unwrap();
    assert_eq!(answer, OperatorAnswer::Resolved, "whatever it is by now");
}

#[tokio::test]
async fn a_run_that_renewed_its_lease_is_still_what_was_shown() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    let shown = world.semel.get(&key("1")).await.unwrap().unwrap();
    permit.renew().await.unwrap();
    let refused = world.semel.resolve_shown(&shown, release(), None).await.unwrap();
    assert_eq!(refused, OperatorAnswer::NotHeld, "a run is released, not resolved");
    let answer = world.semel.release_shown(&shown, "stuck", Some(shown.version.get())).await.unwrap();
    assert_eq!(answer, OperatorAnswer::Released);
    assert_eq!(world.run(&key("1")).await.attempt(), 2);
}

#[tokio::test]
async fn a_run_that_was_shown_before_its_renewal_and_read_after_it_is_still_that_run() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    let on_the_page = world.semel.get(&key("1")).await.unwrap().unwrap().version.get();
    permit.renew().await.unwrap();
    let read = world.semel.get(&key("1")).await.unwrap().unwrap();
    assert_ne!(read.version.get(), on_the_page);
    let answer = world.semel.release_shown(&read, "stuck", Some(on_the_page)).await.unwrap();
    assert_eq!(answer, OperatorAnswer::Released);
    let State::Released(released) = world.semel.get(&key("1")).await.unwrap().unwrap().state else {
        panic!()
    };
    assert_eq!(&*released.reason, "stuck");
    // The next run is another one, whatever the page says.
    world.run(&key("1")).await;
    let read = world.semel.get(&key("1")).await.unwrap().unwrap();
    let answer = world.semel.release_shown(&read, "stuck", Some(on_the_page)).await.unwrap();
    assert_eq!(answer, OperatorAnswer::Changed);
}

#[tokio::test]
async fn a_version_that_is_of_no_such_record_changes_nothing() {
    let world = World::new();
    let permit = granted(world.semel.claim(Claim::new(&key("1"))).await.unwrap());
    let shown = world.semel.get(&key("1")).await.unwrap().unwrap();
    let answer = world.semel.release_shown(&shown, "stuck", Some(shown.version.get() + 1)).await.unwrap();
    assert_eq!(answer, OperatorAnswer::Changed);
    permit.complete(outcome("paid")).await.unwrap();
}

#[tokio::test]
async fn a_run_that_lapsed_under_hold_is_released_as_held_whenever_it_was_shown() {
    for was_shown_before in [true, false] {
        let world = World::with(|builder| builder.lapse(semel::Lapse::Hold).attempts_max(1));
        world.run(&key("1")).await;
        let before = world.semel.get(&key("1")).await.unwrap().unwrap();
        world.clock.advance(crate::world::LEASE);
        let after = world.semel.get(&key("1")).await.unwrap().unwrap();
        let shown = if was_shown_before { before } else { after };
        let version = Some(shown.version.get());
        let answer = world.semel.release_shown(&shown, "it never left", version).await.unwrap();
        assert_eq!(answer, OperatorAnswer::Released);
        // As from a held record: its attempts count no more, or it would be held again at once.
        assert_eq!(world.run(&key("1")).await.attempt(), 2, "shown before: {was_shown_before}");
    }
}

#[tokio::test]
async fn a_run_that_was_shown_as_held_and_completed_late_has_changed() {
    let world = World::with(|builder| builder.lapse(semel::Lapse::Hold));
    let permit = world.run(&key("1")).await;
    world.clock.advance(crate::world::LEASE);
    let shown = world.semel.get(&key("1")).await.unwrap().unwrap();
    assert_eq!(shown.version.get(), permit.fence(), "nothing was written since it was granted");
    permit.complete(outcome("paid")).await.unwrap();
    let version = Some(shown.version.get());
    let resolved = world.semel.resolve_shown(&shown, release(), version).await.unwrap();
    let released = world.semel.release_shown(&shown, "it never left", version).await.unwrap();
    assert_eq!([resolved, released], [OperatorAnswer::Changed; 2]);
    assert_eq!(replayed(world.semel.claim(Claim::new(&key("1"))).await.unwrap()), "paid");
}

#[tokio::test]
async fn the_reason_for_releasing_a_held_record_is_in_the_record() {
    let world = World::new();
    world.run(&key("1")).await.hold("no answer").await.unwrap();
    let shown = world.semel.get(&key("1")).await.unwrap().unwrap();
    let answer = world.semel.release_shown(&shown, "it never left", None).await.unwrap();
    assert_eq!(answer, OperatorAnswer::Released);
    let State::Released(released) = world.semel.get(&key("1")).await.unwrap().unwrap().state else {
        panic!()
    };
    assert_eq!(&*released.reason, "it never left");
}
