//! A day's work: what a store of a shop has in it, and what comes in while one looks.

use std::time::Duration;

use semel::{Claim, Decision, Fingerprint, Key, Lapse, Outcome, Result, Semel};
use semel_stream::{Pipeline, Position, dead_letter};
use serde_json::json;

const TENANTS: [&[&str]; 4] = [&["acme", "eu"], &["acme", "us"], &["globex"], &["initech", "billing"]];
const OPERATIONS: [&str; 5] = ["charge", "refund", "send-invoice", "ship", "create-account"];
const OWNERS: [&str; 3] =
    ["worker-7f9c@ip-10-0-4-17", "worker-2b11@ip-10-0-4-30", "billing-cron@ip-10-0-9-2"];

/// Fills a store that has nothing in it.
pub(crate) async fn fill(semel: &Semel, records: usize) -> Result<()> {
    for number in 0..records {
        let (key, outcome) = (key(number)?, outcome(number));
        let _ = semel
            .record_once(Claim::new(&key).fingerprint(Fingerprint::from_bytes([7; 32])), outcome)
            .await?;
    }
    running(semel).await?;
    held(semel).await?;
    streams(semel).await
}

/// What comes in.
pub(crate) async fn some_more(semel: &Semel, round: u64) -> Result<()> {
    let wave = 3_u64.saturating_add(round / 50 % 7);
    for number in 0..wave {
        let key = Key::scoped(["acme", "eu"], "charge", &format!("order-{}", 90_000 + round * 10 + number))?;
        let _ = semel.record_once(Claim::new(&key), outcome(usize::try_from(number).unwrap_or(0))).await?;
        if number % 2 == 0 {
            let _ = semel.claim(Claim::new(&key)).await?;
        }
    }
    if round.is_multiple_of(9) {
        let _ = semel.claim(Claim::new(&Key::scoped(["acme", "eu"], "charge", "order-88110")?)).await?;
        let _ = semel.claim(Claim::new(&Key::scoped(["globex"], "ship", "parcel-3301")?)).await?;
    }
    if round.is_multiple_of(31) {
        let other = Fingerprint::from_bytes([9; 32]);
        let _ = semel
            .claim(Claim::new(&key(usize::try_from(round % 97).unwrap_or(0))?).fingerprint(other))
            .await?;
    }
    Ok(())
}

fn key(number: usize) -> Result<Key> {
    let tenant = TENANTS.get(number % TENANTS.len()).copied().unwrap_or_default();
    let operation = OPERATIONS.get(number % OPERATIONS.len()).copied().unwrap_or_default();
    Key::scoped(tenant, operation, &format!("order-{}", 10_000 + number))
}

fn outcome(number: usize) -> Outcome {
    let value = json!({ "id": format!("ch_{number:06}"), "amount": 4_200 + number, "currency": "EUR", "captured": true });
    Outcome::success(value.to_string().into_bytes()).primary_reference(format!("ch_{number:06}"))
}

async fn running(semel: &Semel) -> Result<()> {
    for (number, owner) in (0..7).zip(OWNERS.into_iter().cycle()) {
        let key = Key::scoped(["acme", "eu"], "charge", &format!("order-{}", 88_110 + number))?;
        // The third is not renewed, and lapses while one looks.
        let lease = if number == 2 { Duration::from_secs(1) } else { Duration::from_hours(1) };
        let claim = Claim::new(&key).owner(owner).lease(lease).lapse(Lapse::Hold);
        if let Decision::Run(permit) = semel.claim(claim).await? {
            if number == 1 {
                permit
                    .step("reserve-stock", || async { Ok::<_, std::io::Error>("shelf 14".to_owned()) })
                    .await
                    .ok();
            }
            std::mem::forget(permit);
        }
    }
    Ok(())
}

async fn held(semel: &Semel) -> Result<()> {
    let stuck = [
        (TENANTS[2], "ship", "parcel-3301", "lapsed"),
        (TENANTS[0], "refund", "refund-771", "the provider timed out after the request was sent"),
        (TENANTS[3], "send-invoice", "2026-11/4711", "attempts"),
    ];
    for (tenant, operation, name, reason) in stuck {
        let claim =
            Claim::new(&Key::scoped(tenant, operation, name)?).lapse(Lapse::Hold).first_event("evt_88213");
        if let Decision::Run(permit) = semel.claim(claim).await? {
            let _ = permit.hold(reason).await?;
        }
    }
    Ok(())
}

async fn streams(semel: &Semel) -> Result<()> {
    let orders = Pipeline::builder(semel, "order-mails").scope(["acme"]).build()?;
    let events = (0..240).map(|number| (format!("order.paid/{number}"), Outcome::success(*b"mailed")));
    let _ = orders.record(events).await?;
    let _ =
        orders.record([("order.paid/977", dead_letter(5, "no such mailbox: jane@example.invalid"))]).await?;
    let _ = orders
        .record([("order.paid/978", dead_letter(5, "template `paid.html` has no block `total`"))])
        .await?;
    for (stream, position) in [("orders/0", 48_113), ("orders/1", 48_020), ("orders/2", 47_998)] {
        let reader = orders.take(stream).await?;
        let _ = reader.commit(Position::new(position), Some(&format!("order.paid/{position}"))).await?;
    }
    let ledger = Pipeline::new(semel, "ledger")?;
    let _ = ledger
        .record((0..80).map(|number| (format!("payment/{number}"), Outcome::success(*b"booked"))))
        .await?;
    let _ = ledger.commit_shared("payments", Position::new(80), Some("payment/80")).await?;
    Ok(())
}
