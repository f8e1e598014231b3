//! A lost reply is unknown, never failed: asking again settles it.

use std::sync::Arc;
use std::time::Duration;

use semel::record::PermitId;
use semel::store::MemoryStore;
use semel::{Claim, ErrorKind, RecordedOnce, ReleaseAnswer, Semel};
use semel_testkit::{Fault, FaultyStore};

use crate::world::{follows_a_run_that_was_given_back, granted, key, outcome, replayed};

const NOW: Duration = Duration::ZERO;

fn behind(script: Vec<Fault>) -> (Semel, Semel) {
    let store = Arc::new(MemoryStore::new());
    // A sweep of its own would take a fault out of the script.
    let semel = Semel::builder(FaultyStore::scripted(store.clone(), script)).no_sweep().build().unwrap();
    (semel, Semel::builder_shared(store).owner("another").build().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_claim_finds_its_own_permit_again() {
    for lost in [Fault::LoseReply(NOW), Fault::LoseAsk(NOW)] {
        let (semel, another) = behind(vec![lost; 3]);
        let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
        assert_eq!(permit.attempt(), 1);
        assert_eq!(another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
        permit.complete(outcome("paid")).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_complete_release_renewal_or_record_is_recognised_when_it_is_asked_again() {
    let (semel, another) = behind(vec![Fault::None, Fault::LoseReply(NOW), Fault::LoseReply(NOW)]);
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    permit.complete(outcome("paid")).await.unwrap();
    assert_eq!(replayed(another.claim(Claim::new(&key("1"))).await.unwrap()), "paid");

    let (semel, _) = behind(vec![Fault::None, Fault::LoseReply(NOW), Fault::None, Fault::LoseReply(NOW)]);
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    permit.renew().await.unwrap();
    permit.release("gave up").await.unwrap();
    assert_eq!(granted(semel.claim(Claim::new(&key("1"))).await.unwrap()).attempt(), 2);

    let (semel, _) = behind(vec![Fault::LoseReply(NOW)]);
    let recorded = semel.record_once(Claim::new(&key("1")), outcome("event-1")).await.unwrap();
    assert!(matches!(recorded, RecordedOnce::Recorded(_)), "its own record is not a duplicate");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_never_hears_is_given_back_so_that_another_may_run() {
    let (semel, another) = behind(vec![Fault::LoseReply(NOW); 4]);
    let error = semel.claim(Claim::new(&key("1"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(follows_a_run_that_was_given_back(&granted(another.claim(Claim::new(&key("1"))).await.unwrap())));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_can_be_asked_again_under_its_permit_is_not_given_back() {
    let (semel, another) = behind(vec![Fault::LoseReply(NOW); 4]);
    let claim = || Claim::new(&key("1")).permit_id(PermitId::new(7));
    assert_eq!(semel.claim(claim()).await.unwrap_err().kind(), ErrorKind::Unknown);
    let permit = granted(semel.claim(claim()).await.unwrap());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        another.claim(Claim::new(&key("1"))).await.unwrap().as_str(),
        "busy",
        "its run was given away"
    );
    permit.complete(outcome("paid")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_reply_a_refusal_is_still_unknown() {
    // The first ask took; "nothing happened" is true of the later ones only.
    let (semel, another) =
        behind(vec![Fault::None, Fault::LoseReply(NOW), Fault::Refuse, Fault::Refuse, Fault::Refuse]);
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    let error = permit.complete(outcome("paid")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    assert_eq!(replayed(another.claim(Claim::new(&key("1"))).await.unwrap()), "paid");
    permit.complete(outcome("paid")).await.unwrap();
    assert_eq!(permit.release("too late").await.unwrap(), ReleaseAnswer::NotHolding);
}

#[tokio::test(start_paused = true)]
async fn a_doubled_ask_changes_nothing_the_second_time() {
    let later = Duration::from_secs(5);
    let (semel, another) = behind(vec![Fault::Double(later); 2]);
    let permit = granted(semel.claim(Claim::new(&key("1"))).await.unwrap());
    permit.complete(outcome("paid")).await.unwrap();
    let before = another.get(&key("1")).await.unwrap();
    tokio::time::sleep(later * 2).await;
    assert_eq!(another.get(&key("1")).await.unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn a_claim_under_a_permit_of_ones_own_is_not_given_back_before_it_is_asked_again() {
    let (semel, another) = behind(vec![Fault::LoseReply(NOW); 4]);
    let claim = || Claim::new(&key("1")).permit_id(PermitId::new(7));
    assert_eq!(semel.claim(claim()).await.unwrap_err().kind(), ErrorKind::Unknown);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(another.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "busy");
    assert_eq!(granted(semel.claim(claim()).await.unwrap()).attempt(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_error_says_what_the_store_said() {
    let (semel, _) = behind(vec![Fault::LoseAsk(NOW); 4]);
    let error = semel.claim(Claim::new(&key("1"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown);
    assert!(std::error::Error::source(&error).is_some(), "{error:?}");
}
