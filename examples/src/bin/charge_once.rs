//! Clients that retry, and a charge that happens once all the same, also if the program is started again.
#![expect(clippy::arithmetic_side_effects, reason = "small counts")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use semel::{Key, Once, Semel};
use semel_file::FileStore;
use serde::Serialize;
use tokio::sync::Mutex;

/// Where the store is. What is charged once stays charged, whatever becomes of this process.
const FOLDER: &str = "semel-data";
const ORDERS: u64 = 100;
const TRIES_EACH: u64 = 5;

#[derive(Serialize)]
struct Charge {
    order: u64,
    cents: u64,
}

/// A provider that counts what it is asked to do, and takes its time.
#[derive(Default)]
struct Provider {
    charges: AtomicU64,
}

impl Provider {
    async fn charge(&self, charge: &Charge) -> Result<String, String> {
        self.charges.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(2)).await;
        Ok(format!("ch_{}", charge.order))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let semel = Semel::new(FileStore::open(FOLDER)?);
    let provider = Arc::new(Provider::default());
    let told: Arc<Mutex<BTreeMap<&'static str, u64>>> = Arc::default();

    let mut clients = Vec::new();
    for order in 1..=ORDERS {
        for attempt in 0..TRIES_EACH {
            let (semel, provider, told) = (semel.clone(), Arc::clone(&provider), Arc::clone(&told));
            // The last try of every tenth order is not a retry: somebody changed the amount.
            let cents = if attempt + 1 == TRIES_EACH && order % 10 == 0 { 1 } else { 4_200 };
            clients.push(tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(attempt * 10)).await;
                let what = try_to_charge(&semel, &provider, Charge { order, cents }).await?;
                *told.lock().await.entry(what).or_default() += 1;
                anyhow::Ok(())
            }));
        }
    }
    for client in clients {
        client.await??;
    }

    println!("{ORDERS} orders, each asked for {TRIES_EACH} times at once");
    for (what, count) in &*told.lock().await {
        println!("  {count:>4}  {what}");
    }
    println!("the provider charged {} times", provider.charges.load(Ordering::SeqCst));
    Ok(())
}

async fn try_to_charge(semel: &Semel, provider: &Provider, charge: Charge) -> anyhow::Result<&'static str> {
    let key = Key::scoped(["shop"], "charge", &format!("order-{}", charge.order))?;
    let once = semel.once(&key, &charge, async |_permit| provider.charge(&charge).await).await;
    Ok(match once.map_err(|error| anyhow::anyhow!("{error}"))? {
        Once::Ran(_) => "ran",
        Once::Replayed(_) => "replayed: the stored answer, nothing charged",
        Once::Busy(_) => "busy: somebody else is charging, ask again",
        Once::Mismatch(_) => "mismatch: the order was charged with another amount",
        Once::Held(_) => "held: somebody must look",
        Once::Unprotected(_) => "unprotected: the store is away",
    })
}
