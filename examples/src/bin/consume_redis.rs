//! Orders from a Redis stream, which redelivers: each is charged once. Ctrl-C ends it in order.
//!
//! ```text
//! redis-cli XADD orders '*' payload '{"id":"o-1","cents":100}'
//! cargo run -p semel-examples --features redis-streams --bin consume_redis -- redis://127.0.0.1:6379
//! ```

use std::time::Duration;

use semel::{Outcome, Semel};
use semel_file::FileStore;
use semel_redis_streams::RedisStreamSource;
use semel_stream::{Consumer, EventKey, Failure, OnMissingKey, Pipeline};
use serde::Deserialize;

const FOLDER: &str = "semel-data";
const STREAM: &str = "orders";
const GROUP: &str = "billing";

#[derive(Deserialize)]
struct Order {
    id: String,
    cents: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    // The name of the process that reads: the same after a restart, and nobody else's.
    let name = std::env::args().nth(2).unwrap_or_else(|| "billing-1".to_owned());
    let semel = Semel::new(FileStore::open(FOLDER)?);
    let pipeline = Pipeline::new(&semel, "charge-orders")?;
    let source = RedisStreamSource::builder(&url, STREAM, GROUP, &name)
        .claim_idle(Duration::from_secs(30))
        .connect()
        .await?;

    let consumer = Consumer::new(pipeline, source)
        .key(EventKey::Pointer("/id".into()))
        .on_missing_key(OnMissingKey::DeadLetter)
        .attempts_max(5);
    let stopper = consumer.stopper();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopper.stop();
        }
    });
    println!("reading {STREAM} at {url} as {name}; Ctrl-C to end");
    let report = consumer
        .run(async |event, permit| {
            // An entry that makes no sense today makes none tomorrow: to the dead letters with it.
            let order: Order =
                serde_json::from_slice(&event.payload).map_err(|error| Failure::Dead(error.to_string()))?;
            println!("  charged {} cents for {}, attempt {}", order.cents, order.id, permit.attempt());
            Ok(Outcome::success(format!("ch_{}", order.id).into_bytes()))
        })
        .await?;
    println!("{} delivered, {} charged, {} seen before", report.delivered, report.ran, report.duplicates);
    Ok(())
}
