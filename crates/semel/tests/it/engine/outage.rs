//! What happens while the store does not answer.

use std::sync::Arc;
use std::time::Duration;

use semel::store::MemoryStore;
use semel::{Claim, Decision, ErrorKind, OnOutage, Once, Permit, ReleaseAnswer, Semel};
use semel_testkit::{Fault, FaultyStore};

use crate::world::{key, outcome};

fn away(fault: Fault, on_outage: OnOutage) -> Semel {
    let store = FaultyStore::new(Arc::new(MemoryStore::new()), move |_| fault);
    Semel::builder(store).on_outage(on_outage).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn closed_refuses_and_nothing_runs() {
    for (fault, kind) in
        [(Fault::Refuse, ErrorKind::Unavailable), (Fault::LoseAsk(Duration::ZERO), ErrorKind::Unknown)]
    {
        let semel = away(fault, OnOutage::Closed);
        let ended =
            semel.once(&key("1"), &(), async |_| -> Result<(), String> { panic!("must not run") }).await;
        assert!(matches!(ended, Err(semel::OnceError::Engine(error)) if error.kind() == kind));
        assert_eq!(semel.stats().unprotected, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_may_differ_from_its_engine_in_what_an_outage_means() {
    let claim = |on_outage| Claim::new(&key("1")).on_outage(on_outage);
    let closed = away(Fault::Refuse, OnOutage::Closed);
    assert_eq!(closed.claim(claim(OnOutage::Open)).await.unwrap().as_str(), "unprotected");
    let open = away(Fault::Refuse, OnOutage::Open);
    assert_eq!(open.claim(claim(OnOutage::Closed)).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn open_runs_and_says_unprotected_wherever_it_can_be_seen() {
    for fault in [Fault::Refuse, Fault::LoseAsk(Duration::ZERO)] {
        let semel = away(fault, OnOutage::Open);
        let ended = semel
            .once(&key("1"), &(), async |permit: Permit| {
                assert_eq!(permit.fence(), 0, "lower than any real fence");
                permit.step("charge", async || Ok::<_, String>(1)).await.map_err(|error| error.to_string())
            })
            .await;
        assert!(matches!(ended, Ok(Once::Unprotected(1))));
        assert_eq!(semel.stats().unprotected, 1);
        assert_eq!(semel.stats().run, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unprotected_permit_settles_nothing_and_is_never_lost() {
    let semel = away(Fault::Refuse, OnOutage::Open);
    let Decision::Unprotected(permit) = semel.claim(Claim::new(&key("1"))).await.unwrap() else { panic!() };
    let _heartbeat = permit.heartbeat();
    tokio::time::sleep(permit.lease() * 2).await;
    assert!(!permit.is_lost());
    permit.renew().await.unwrap();
    permit.complete(outcome("paid")).await.unwrap();
    assert_eq!(permit.release("nothing").await.unwrap(), ReleaseAnswer::NotHolding);
}

#[tokio::test]
async fn a_full_store_is_not_an_outage() {
    let store = MemoryStore::builder().records_max(1).build();
    let semel = Semel::builder(store).on_outage(OnOutage::Open).build().unwrap();
    assert!(matches!(semel.claim(Claim::new(&key("1"))).await.unwrap(), Decision::Run(_)));
    let error = semel.claim(Claim::new(&key("2"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
}

#[tokio::test(start_paused = true)]
async fn an_unprotected_permit_has_the_lease_and_the_permit_id_of_its_claim() {
    let semel = away(Fault::Refuse, OnOutage::Open);
    let (id, lease) = (semel::record::PermitId::new(7), Duration::from_secs(5));
    let claim = Claim::new(&key("1")).permit_id(id).lease(lease);
    let Decision::Unprotected(permit) = semel.claim(claim).await.unwrap() else { panic!() };
    assert_eq!((permit.id(), permit.lease()), (id, lease));
}

#[tokio::test(start_paused = true)]
async fn a_run_without_protection_does_not_keep_the_key_that_it_may_have_been_granted() {
    let store = Arc::new(MemoryStore::new());
    let faulty = FaultyStore::scripted(store.clone(), vec![Fault::LoseReply(Duration::ZERO); 4]);
    let semel = Semel::builder(faulty).on_outage(OnOutage::Open).no_sweep().build().unwrap();
    let another = Semel::builder_shared(store).no_sweep().build().unwrap();
    assert_eq!(semel.claim(Claim::new(&key("1"))).await.unwrap().as_str(), "unprotected");
    let next = another.claim_or_wait(Claim::new(&key("1")), Duration::from_secs(5)).await.unwrap();
    assert_eq!(next.as_str(), "run", "the claim took, and is given back");
}
