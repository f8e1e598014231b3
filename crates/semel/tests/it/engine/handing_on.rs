//! Permits that go from one process to another, and waiting for a record without claiming it.

use std::time::Duration;

use semel::record::State;
use semel::{Claim, ErrorKind, ReleaseAnswer};

use crate::world::{World, key, outcome, replayed};

#[tokio::test]
async fn a_permit_made_of_its_parts_settles_the_run_from_another_process() {
    let world = World::new();
    let parts = world.run(&key("1")).await.parts().unwrap();
    let handed = world.another().permit(parts.clone());
    assert_eq!(handed.parts(), Some(parts));
    handed.renew().await.unwrap();
    handed.put_step("charge", *b"7").await.unwrap();
    assert_eq!(&*handed.steps()[0].value, b"7");
    handed.complete(outcome("paid")).await.unwrap();
    assert_eq!(replayed(world.semel.claim(Claim::new(&key("1"))).await.unwrap()), "paid");
}

#[tokio::test]
async fn parts_of_a_run_that_was_taken_over_settle_nothing() {
    let world = World::new();
    let old = world.run(&key("1")).await;
    old.release("gave up").await.unwrap();
    let new = world.run(&key("1")).await;
    for parts in [
        old.parts().unwrap(),
        // The right id with another fence, and the right fence with another id.
        semel::PermitParts { fence: old.parts().unwrap().fence, ..new.parts().unwrap() },
        semel::PermitParts { permit_id: old.id(), ..new.parts().unwrap() },
    ] {
        let handed = world.another().permit(parts);
        assert_eq!(handed.complete(outcome("stolen")).await.unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(handed.renew().await.unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(handed.put_step("charge", *b"7").await.unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(handed.release("no").await.unwrap(), ReleaseAnswer::NotHolding);
    }
    new.complete(outcome("paid")).await.unwrap();
}

#[tokio::test]
async fn who_waits_for_a_record_gets_it_as_soon_as_it_is_settled() {
    let world = World::new();
    let permit = world.run(&key("1")).await;
    let (semel, id) = (world.semel.clone(), key("1").id());
    let waiting = tokio::spawn(async move { semel.get_settled(id, Duration::from_mins(1)).await });
    let mut waiters = world.semel.waiting();
    waiters.wait_for(|count| *count == 1).await.unwrap();
    permit.complete(outcome("paid")).await.unwrap();
    let record = waiting.await.unwrap().unwrap().unwrap();
    assert!(matches!(record.state, State::Done(_)));
    assert_eq!(record.duplicates.count, 0, "looking is no duplicate");
}

#[tokio::test(start_paused = true)]
async fn who_waits_too_long_is_told_how_it_stands() {
    let world = World::new();
    let id = key("1").id();
    assert_eq!(world.semel.get_settled(id, Duration::from_secs(1)).await.unwrap(), None, "there is none");
    let _permit = world.run(&key("1")).await;
    let record = world.semel.get_settled(id, Duration::from_secs(1)).await.unwrap().unwrap();
    assert!(matches!(record.state, State::Running(_)));
}
