//! Histories of real callers at the same time: a store that keeps its promises passes, one that does not fails.

use std::sync::Arc;
use std::time::Duration;

use semel::machine::claim::{Ask, Claimed};
use semel::machine::settle::Resolution;
use semel::record::PermitId;
use semel::store::{MemoryStore, Store};
use semel::{Key, Lapse, Outcome};
use semel_testkit::history::{Asked, Event, Recorder, Told, Verdict, check, check_within};
use semel_testkit::saboteur::saboteurs;
use semel_testkit::{ManualClock, sample};

const CALLERS: usize = 16;

/// Asks at random, one thing after the other, like a caller that knows only the permits that it was given.
struct Caller {
    number: usize,
    key: Key,
    permit_id: PermitId,
    lease: Duration,
}

impl Caller {
    fn claim(&mut self) -> Ask {
        if rand::random_ratio(7, 8) {
            self.permit_id = sample::permit_id();
        }
        Ask {
            permit_id: self.permit_id,
            owner: format!("caller-{}", self.number).into(),
            lease: self.lease,
            retention: self.lease * 4,
            lapse: if rand::random() { Lapse::Rerun } else { Lapse::Hold },
            attempts_max: Some(3),
            ..sample::ask(&self.key)
        }
    }

    fn next(&mut self, ran: bool) -> Asked {
        let permit_id = self.permit_id;
        let outcome = || Outcome::success(rand::random::<[u8; 8]>().to_vec());
        match (ran, rand::random_range(0..16)) {
            (true, 0..8) | (false, 5) => Asked::Complete { permit_id, outcome: outcome() },
            (true, 8..10) | (false, 0) => Asked::Renew { permit_id, lease: self.lease },
            (true, 10..15) | (false, 1) => Asked::Release { permit_id, reason: "later".into() },
            (false, 2..4) => {
                let reason = "a person said so".into();
                Asked::Resolve { permit_id: sample::permit_id(), resolution: Resolution::Release { reason } }
            }
            (false, 4) => Asked::RecordOnce(Box::new(self.claim()), outcome()),
            (true, _) | (false, 6) => Asked::Get,
            (false, _) => Asked::Claim(Box::new(self.claim())),
        }
    }
}

/// The history of callers that ask `each` things of one key, with the clock moved on at random meanwhile.
async fn history(store: Arc<dyn Store>, clock: ManualClock, lease: Duration, each: usize) -> Vec<Event> {
    let recorder = Arc::new(Recorder::new());
    let key = sample::key("generated").unwrap();
    let start = Arc::new(tokio::sync::Barrier::new(CALLERS));
    let callers = (0..CALLERS).map(|number| {
        let mut caller = Caller { number, key: key.clone(), permit_id: sample::permit_id(), lease };
        let (store, recorder, clock) = (Arc::clone(&store), Arc::clone(&recorder), clock.clone());
        let start = Arc::clone(&start);
        tokio::spawn(async move {
            start.wait().await;
            let mut ran = false;
            for _ in 0..each {
                let asked = caller.next(ran);
                let answer = recorder.ask(caller.number, &*store, &caller.key, asked).await.unwrap();
                ran = answer.told == Told::Claimed(Claimed::Run);
                clock.advance(lease * rand::random_range(0..3) / 16);
                tokio::task::yield_now().await;
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
    recorder.events()
}

fn assert_linearizable(events: &[Event]) {
    match check(events) {
        Verdict::Linearizable { order } => {
            assert!(order.len() >= events.iter().filter(|event| event.answer.is_some()).count());
        }
        Verdict::Violation { explanation, .. } => panic!("{explanation}"),
        Verdict::Undecided { states, explanation } => {
            panic!("undecided after {states} states: {explanation}")
        }
    }
}

async fn memory_history() -> Vec<Event> {
    let clock = ManualClock::at(1_000_000);
    let store = MemoryStore::builder().clock(clock.clone()).build();
    history(Arc::new(store), clock, Duration::from_millis(5), 64).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_answers_of_the_memory_store_are_linearizable() {
    let events = memory_history().await;
    assert_eq!(events.len(), 1_024);
    assert_linearizable(&events);
}

/// A lost reply may have taken at any later moment, or never, so some histories with many of them cannot be decided in
/// reasonable time. One that can be must come up soon, and none may be a violation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_store_stays_linearizable_when_replies_are_lost() {
    for _ in 0..20 {
        let mut events = memory_history().await;
        for event in events.iter_mut().step_by(37) {
            (event.answer, event.now) = (None, None);
        }
        match check_within(&events, 5_000) {
            Verdict::Linearizable { .. } => return,
            Verdict::Violation { explanation, .. } => panic!("{explanation}"),
            Verdict::Undecided { .. } => {}
        }
    }
    panic!("none of twenty histories could be decided");
}

/// What a caller far from the store knows: the answer, its fence and its outcome, and not when it was decided.
fn from_afar(event: &mut Event) {
    event.now = None;
    if let Some(answer) = &mut event.answer {
        (answer.seen.version, answer.seen.written_at) = (None, None);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_store_is_linearizable_from_afar() {
    let mut events = memory_history().await;
    events.iter_mut().for_each(from_afar);
    assert_linearizable(&events);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_store_is_linearizable_without_its_stamps() {
    let mut events = memory_history().await;
    for answer in events.iter_mut().filter_map(|event| event.answer.as_mut()) {
        (answer.seen.version, answer.seen.written_at) = (None, None);
    }
    assert_linearizable(&events);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_checks_and_then_sets_is_not_linearizable() {
    let saboteur = saboteurs().into_iter().find(|saboteur| saboteur.name == "checks, then sets").unwrap();
    let clock = ManualClock::at(1);
    let events = history(Arc::new(saboteur.open()), clock, Duration::from_mins(1), 8).await;
    assert!(check(&events).is_violation(), "{:?}", check(&events));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_forged_answer_among_a_thousand_is_found() {
    let mut events = memory_history().await;
    let forged = events.iter_mut().rev().find_map(|event| {
        let answer = event.answer.as_mut()?;
        matches!(answer.told, Told::Claimed(Claimed::Busy { .. })).then_some(answer)
    });
    forged.unwrap().told = Told::Claimed(Claimed::Replay);
    assert!(check(&events).is_violation());
}
