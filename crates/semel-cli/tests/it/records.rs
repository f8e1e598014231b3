//! One record of every kind, to try commands on.

use std::time::Duration;

use semel::record::PermitId;
use semel::{Claim, Decision, Fingerprint, Key, Lapse, Outcome, Permit, Semel};
use serde_json::json;

use crate::place::Place;

/// What every record of [`fill`] is called.
pub(crate) const NAMES: [&str; 6] = ["order-1", "order-2", "order-3", "p-1", "p-2", "p-3"];

/// A lease that is over before anybody can look.
const SHORT: Duration = Duration::from_millis(1);

/// One done with text, one done with bytes, one running, one lapsed, one held, one released. Hands back the permit id of
/// the running one.
pub(crate) fn fill(place: &Place) -> PermitId {
    place.with(async |semel| {
        done(&semel).await;
        let permit =
            run(&semel, Claim::new(&key("order-3")).lease(Duration::from_hours(1)).first_event("evt-88"))
                .await;
        let reserved = permit.step("reserve", || async { Ok::<_, std::io::Error>(81) }).await;
        assert!(reserved.is_ok(), "a step is stored");
        run(&semel, Claim::new(&key("p-1")).lapse(Lapse::Hold).lease(SHORT)).await;
        hold(&semel, &key("p-2")).await;
        let released = run(&semel, Claim::new(&key("p-3"))).await;
        released.release("try later").await.expect("is released");
        permit.id()
    })
}

async fn done(semel: &Semel) {
    let fingerprint = Fingerprint::of(&("EUR", 4_200)).expect("is JSON");
    let permit =
        run(semel, Claim::new(&key("order-1")).fingerprint(fingerprint).label("POST /charges")).await;
    let outcome = Outcome::success("{\"id\":\"ch_1\"}")
        .reference("charge", "ch_1")
        .reference("account", "acct_9")
        .details(&json!({ "fee": 12 }));
    permit.complete(outcome).await.expect("is completed");
    let other = Fingerprint::of(&("EUR", 1)).expect("is JSON");
    let mismatch = semel.claim(Claim::new(&key("order-1")).fingerprint(other)).await.expect("is answered");
    assert!(matches!(mismatch, Decision::Mismatch(_)));
    let permit = run(semel, Claim::new(&key("order-2"))).await;
    permit.complete(Outcome::failure(vec![0, 1, 2, 0xff])).await.expect("is completed");
}

/// Has a key held: its lease lapses under `hold`, and somebody asks.
pub(crate) async fn hold(semel: &Semel, key: &Key) {
    run(semel, Claim::new(key).lapse(Lapse::Hold).lease(SHORT)).await;
    for _ in 0..1_000 {
        if let Decision::Held(_) = semel.claim(Claim::new(key)).await.expect("is answered") {
            return;
        }
        tokio::time::sleep(SHORT).await;
    }
    panic!("a lapsed run was never held");
}

pub(crate) async fn run(semel: &Semel, claim: Claim) -> Permit {
    let decision = semel.claim(claim).await.expect("is answered");
    let Decision::Run(permit) = decision else { panic!("was not told to run but {}", decision.as_str()) };
    permit
}

/// The key of a record of [`fill`]: charges belong to acme, payouts to globex.
pub(crate) fn key(name: &str) -> Key {
    let key = match name {
        "order-3" => Key::scoped(["acme", "us"], "charge", name),
        order if order.starts_with("order") => Key::scoped(["acme", "eu"], "charge", name),
        _ => Key::scoped(["globex"], "payout", name),
    };
    key.expect("is fine")
}
