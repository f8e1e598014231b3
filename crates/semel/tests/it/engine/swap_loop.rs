//! The loop from ruling to swap, driven by hand: what it says when stores or other callers misbehave.

use std::sync::Arc;
use std::time::Duration;

use semel::clock::Timestamp;
use semel::machine::claim::{Ask, Claimed, Probe, Reentry, claim};
use semel::record::{PermitId, Record, Version};
use semel::store::{Answer, SwapReply};
use semel::swap_loop::{Guess, Heard, Next, SwapLoop};
use semel::{BoxedSwapLoop, Error, ErrorKind, Key, LEASE_DEFAULT, Lapse, RETENTION_DEFAULT};

use crate::world::key;

const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);
/// How many races an ask loses before it gives up.
const RACES: u32 = 1_001;

fn ask(key: &Key, permit_id: u128) -> Ask {
    Ask {
        key: key.clone(),
        fingerprint: None,
        label: None,
        permit_id: PermitId::new(permit_id),
        owner: "me".into(),
        reentry: Reentry::Refused,
        lease: LEASE_DEFAULT,
        retention: RETENTION_DEFAULT,
        lapse: Lapse::Rerun,
        attempts_max: None,
        first_event: None,
        probe: Probe::None,
    }
}

/// A claim of `key` under permit 7.
fn claiming(key: &Key, guess: Guess) -> BoxedSwapLoop<Claimed> {
    let ask = ask(key, 7);
    SwapLoop::new(
        key.clone(),
        guess,
        Box::new(move |found: Option<&Record>, now| claim(found, &ask, now)) as _,
    )
    .permit_id(PermitId::new(7))
}

/// The record of `key` while another caller runs.
fn running(key: &Key) -> Arc<Record> {
    claim(None, &ask(key, 9), NOW).write.unwrap().next.stamp(Version::new(128), NOW)
}

fn swapped(reply: SwapReply) -> Heard {
    Heard::Swapped(Ok(Answer::new(NOW, reply)))
}

fn lost_reply() -> Heard {
    Heard::Swapped(Err(Error::new(ErrorKind::Unknown, "the reply was lost")))
}

/// Loses a race again and again, and says after how many it was given up, and how.
fn lose_races(mut asking: BoxedSwapLoop<Claimed>, heard: impl Fn() -> Heard) -> (u32, Error) {
    for races in 0.. {
        let next = match asking.next() {
            Ok(Next::Load(_)) => {
                asking.hear(Heard::Loaded(Ok(Answer::new(NOW, Ok(None))))).unwrap();
                asking.next()
            }
            next => next,
        };
        match next {
            Ok(Next::Swap(_)) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => return (races, error),
        }
        if let Err(error) = asking.hear(heard()) {
            return (races + 1, error);
        }
    }
    unreachable!()
}

#[test]
fn an_ask_that_loses_every_race_gives_up_after_a_thousand_and_nothing_happened() {
    for heard in [|| swapped(SwapReply::Stale(None)), || Heard::LostRace] {
        let (races, error) = lose_races(claiming(&key("1"), Guess::Absent), heard);
        assert_eq!((races, error.kind(), error.permit_id()), (RACES, ErrorKind::Unavailable, None));
    }
}

#[test]
fn an_ask_that_gives_up_after_a_lost_reply_does_not_say_that_nothing_happened() {
    for heard in [|| swapped(SwapReply::Stale(None)), || Heard::LostRace] {
        let mut asking = claiming(&key("1"), Guess::Absent);
        assert!(matches!(asking.next(), Ok(Next::Swap(_))));
        asking.hear(lost_reply()).unwrap();
        assert!(matches!(asking.next(), Ok(Next::Pause(_))));
        let (races, error) = lose_races(asking, heard);
        assert_eq!((races, error.kind()), (RACES, ErrorKind::Unknown));
        assert_eq!(error.permit_id(), Some(PermitId::new(7)), "what to ask again with");
    }
}

#[test]
fn a_damaged_record_is_unknown_only_if_a_reply_was_lost_before() {
    let damaged = || swapped(SwapReply::Damaged(Error::new(ErrorKind::Corrupt, "torn")));
    let mut asking = claiming(&key("1"), Guess::Absent);
    assert!(matches!(asking.next(), Ok(Next::Swap(_))));
    assert_eq!(asking.hear(damaged()).unwrap_err().kind(), ErrorKind::Corrupt);

    let mut asking = claiming(&key("1"), Guess::Absent);
    assert!(matches!(asking.next(), Ok(Next::Swap(_))));
    asking.hear(lost_reply()).unwrap();
    assert!(matches!(asking.next(), Ok(Next::Pause(_))));
    assert!(matches!(asking.next(), Ok(Next::Swap(_))));
    let error = asking.hear(damaged()).unwrap_err();
    assert_eq!((error.kind(), error.permit_id()), (ErrorKind::Unknown, Some(PermitId::new(7))));
}

#[test]
fn a_full_store_is_unknown_only_if_a_reply_was_lost_before() {
    for (is_lost, expected) in [(false, ErrorKind::Full), (true, ErrorKind::Unknown)] {
        let mut asking = claiming(&key("1"), Guess::Absent);
        assert!(matches!(asking.next(), Ok(Next::Swap(_))));
        if is_lost {
            asking.hear(lost_reply()).unwrap();
            assert!(matches!(asking.next(), Ok(Next::Pause(_))));
            assert!(matches!(asking.next(), Ok(Next::Swap(_))));
        }
        assert_eq!(asking.hear(swapped(SwapReply::Full)).unwrap_err().kind(), expected);
    }
}

#[test]
fn a_store_that_takes_no_such_write_now_is_unknown_only_if_a_reply_was_lost_before() {
    for (is_lost, expected) in [(false, ErrorKind::Unavailable), (true, ErrorKind::Unknown)] {
        let mut asking = claiming(&key("1"), Guess::Absent);
        assert!(matches!(asking.next(), Ok(Next::Swap(_))));
        if is_lost {
            asking.hear(lost_reply()).unwrap();
            assert!(matches!(asking.next(), Ok(Next::Pause(_))));
            assert!(matches!(asking.next(), Ok(Next::Swap(_))));
        }
        let refused = SwapReply::Refused(Error::new(ErrorKind::Unavailable, "no new claims now"));
        assert_eq!(asking.hear(swapped(refused)).unwrap_err().kind(), expected);
    }
}

#[test]
fn a_record_that_cannot_be_loaded_is_unknown_if_a_reply_was_lost_before() {
    let mut asking = claiming(&key("1"), Guess::Unknown);
    assert!(matches!(asking.next(), Ok(Next::Load(_))));
    asking.hear(Heard::Loaded(Err(Error::new(ErrorKind::Unknown, "lost")))).unwrap();
    assert!(matches!(asking.next(), Ok(Next::Pause(_))));
    let damaged = Err(Error::new(ErrorKind::Unavailable, "not on the standby yet"));
    let error = asking.hear(Heard::Loaded(Ok(Answer::new(NOW, damaged)))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
}

#[test]
fn an_ask_whose_time_is_over_is_not_made_again() {
    let mut asking = claiming(&key("1"), Guess::Absent);
    assert!(matches!(asking.next(), Ok(Next::Swap(_))));
    let late = Error::new(ErrorKind::Unknown, "no reply within 5 s").overdue();
    let error = asking.hear(Heard::Swapped(Err(late))).unwrap_err();
    assert_eq!((error.kind(), error.permit_id()), (ErrorKind::Unknown, Some(PermitId::new(7))));
}

#[test]
fn after_each_lost_reply_it_waits_longer_and_after_the_fourth_it_gives_up() {
    let mut asking = claiming(&key("1"), Guess::Absent);
    for millis in [5, 50, 250] {
        assert!(matches!(asking.next(), Ok(Next::Swap(_))));
        asking.hear(lost_reply()).unwrap();
        assert!(matches!(asking.next(), Ok(Next::Pause(pause)) if pause == Duration::from_millis(millis)));
    }
    assert!(matches!(asking.next(), Ok(Next::Swap(_))));
    assert_eq!(asking.hear(lost_reply()).unwrap_err().kind(), ErrorKind::Unknown);
}

#[test]
fn an_ask_that_must_not_be_made_twice_gives_up_after_the_first_lost_reply_to_a_swap() {
    let mut asking = claiming(&key("1"), Guess::Unknown).never_twice();
    assert!(matches!(asking.next(), Ok(Next::Load(_))));
    asking.hear(Heard::Loaded(Err(Error::new(ErrorKind::Unknown, "lost")))).unwrap();
    assert!(matches!(asking.next(), Ok(Next::Pause(_))), "a load changes nothing, and may be made again");
    assert!(matches!(asking.next(), Ok(Next::Load(_))));
    asking.hear(Heard::Loaded(Ok(Answer::new(NOW, Ok(None))))).unwrap();
    assert!(matches!(asking.next(), Ok(Next::Swap(_))));
    assert_eq!(asking.hear(lost_reply()).unwrap_err().kind(), ErrorKind::Unknown);
}

#[test]
fn a_record_of_another_key_is_never_taken_for_the_callers_own() {
    let other = || Some(running(&key("2")));
    let mut asking = claiming(&key("1"), Guess::Unknown);
    assert!(matches!(asking.next(), Ok(Next::Load(id)) if id == key("1").id()));
    let error = asking.hear(Heard::Loaded(Ok(Answer::new(NOW, Ok(other()))))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let mut asking = claiming(&key("1"), Guess::Absent);
    assert!(matches!(asking.next(), Ok(Next::Swap(_))));
    assert_eq!(asking.hear(swapped(SwapReply::Stale(other()))).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn what_was_only_guessed_is_loaded_before_it_is_answered() {
    let mut asking = claiming(&key("1"), Guess::Unchanged(running(&key("1"))));
    assert!(matches!(asking.next(), Ok(Next::Load(_))), "busy is no answer to give on a guess");
    asking.hear(Heard::Loaded(Ok(Answer::new(NOW, Ok(Some(running(&key("1")))))))).unwrap();
    let Ok(Next::Answer(settled)) = asking.next() else { panic!("the record was seen") };
    assert!(matches!(settled.answer, Claimed::Busy { .. }));
}

#[test]
fn a_lost_race_is_followed_by_a_load_and_what_is_found_decides() {
    let mut asking = claiming(&key("1"), Guess::Absent);
    assert!(matches!(asking.next(), Ok(Next::Swap(_))));
    asking.hear(Heard::LostRace).unwrap();
    assert!(matches!(asking.next(), Ok(Next::Load(_))), "the same swap would lose again");
    asking.hear(Heard::Loaded(Ok(Answer::new(NOW, Ok(Some(running(&key("1")))))))).unwrap();
    let Ok(Next::Answer(settled)) = asking.next() else { panic!("the record was seen") };
    assert!(matches!(settled.answer, Claimed::Busy { .. }));
}

#[test]
fn a_swap_that_was_not_asked_for_and_an_answer_that_is_missing_are_errors() {
    let mut asking = claiming(&key("1"), Guess::Absent);
    let unasked = asking.hear(swapped(SwapReply::Swapped(running(&key("1"))))).unwrap_err();
    assert_eq!(unasked.kind(), ErrorKind::Corrupt);
    let Heard::Loaded(Err(none)) = Heard::loaded(Ok(Answer::new(NOW, Vec::new()))) else { panic!() };
    assert_eq!(none.kind(), ErrorKind::Unknown);
    let Heard::Swapped(Err(none)) = Heard::swapped(Ok(Answer::new(NOW, [].into_iter().collect()))) else {
        panic!()
    };
    assert_eq!(none.kind(), ErrorKind::Unknown);
}
