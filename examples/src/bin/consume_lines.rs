//! A file of orders, some of them written twice: each is charged once, also if the program is started again.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use semel::{Outcome, Semel};
use semel_file::FileStore;
use semel_stream::source::LinesSource;
use semel_stream::{Consumer, EventKey, Failure, OnMissingKey, Pipeline};
use serde::Deserialize;

/// Where the store is, and beside it the file that is read unless another one is named.
const FOLDER: &str = "semel-data";
const ORDERS: &str = "semel-data/orders.jsonl";

#[derive(Deserialize)]
struct Order {
    id: String,
    cents: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let semel = Semel::new(FileStore::open(FOLDER)?);
    let path = std::env::args().nth(1).map_or_else(sample, Ok)?;
    let source = if path == "-" { LinesSource::stdin() } else { LinesSource::open(&path)? };

    // The producer's own id of an order is what makes two lines the same event.
    let pipeline = Pipeline::new(&semel, "charge-orders")?;
    let consumer = Consumer::new(pipeline, source)
        .key(EventKey::Pointer("/id".into()))
        .on_missing_key(OnMissingKey::DeadLetter);
    let charged = Arc::new(AtomicU64::new(0));
    let report = consumer
        .run({
            let charged = Arc::clone(&charged);
            move |event, permit| {
                let charged = Arc::clone(&charged);
                async move {
                    // A line that makes no sense today makes none tomorrow: to the dead letters with it.
                    let order: Order = serde_json::from_slice(&event.payload)
                        .map_err(|error| Failure::Dead(error.to_string()))?;
                    charged.fetch_add(order.cents, Ordering::SeqCst);
                    println!(
                        "  charged {} cents for {}, attempt {}",
                        order.cents,
                        order.id,
                        permit.attempt()
                    );
                    Ok(Outcome::success(format!("ch_{}", order.id).into_bytes()))
                }
            }
        })
        .await?;

    println!("{path}: {} lines, {} charged, {} seen before", report.delivered, report.ran, report.duplicates);
    println!("{} cents in all", charged.load(Ordering::SeqCst));
    Ok(())
}

/// Five orders in seven lines.
fn sample() -> anyhow::Result<String> {
    let lines = [1, 2, 3, 2, 4, 1, 5].map(|id| format!("{{\"id\":\"o-{id}\",\"cents\":{id}00}}"));
    fs::write(ORDERS, lines.join("\n") + "\n").context("cannot write the sample")?;
    Ok(ORDERS.to_owned())
}
