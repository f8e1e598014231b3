//! Orders from a Redis stream, which redelivers: each is charged once. Ctrl-C ends it in order.
//!
//! ```text
//! redis-cli XADD orders '*' payload '{"id":"o-1","cents":100}'
//! cargo run -p semel-examples --features redis-streams --bin consume_redis -- redis://127.0.0.1:6379
//! ```

use std::time::Duration;

use semel::Semel;
use semel_examples::{charge, stop_at_ctrl_c};
use semel_file::FileStore;
use semel_redis_streams::RedisStreamSource;
use semel_stream::{Consumer, EventKey, OnMissingKey, Pipeline};

const FOLDER: &str = "semel-data";
const STREAM: &str = "orders";
const GROUP: &str = "billing";

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
    stop_at_ctrl_c(consumer.stopper());
    println!("reading {STREAM} at {url} as {name}; Ctrl-C to end");
    let report = consumer.run(charge).await?;
    println!("{} delivered, {} charged, {} seen before", report.delivered, report.ran, report.duplicates);
    Ok(())
}
