//! Orders from a topic of Kafka, whose partitions move between readers: each is charged once. Ctrl-C ends it in order.
//!
//! ```text
//! cargo run -p semel-examples --features kafka --bin consume_kafka -- 127.0.0.1:9092 orders
//! ```

use semel::Semel;
use semel_examples::{charge, stop_at_ctrl_c};
use semel_file::FileStore;
use semel_kafka::KafkaSource;
use semel_stream::{Checkpoint, Consumer, EventKey, OnMissingKey, Order as InOrder, Pipeline};

const FOLDER: &str = "semel-data";
const GROUP: &str = "billing";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let brokers = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9092".to_owned());
    let topic = std::env::args().nth(2).unwrap_or_else(|| "orders".to_owned());
    let semel = Semel::new(FileStore::open(FOLDER)?);
    let pipeline = Pipeline::new(&semel, "charge-orders")?;
    let source = KafkaSource::connect(&brokers, &[&topic], GROUP)?;

    // Records of one customer, who is their key, stay in order; those of others run beside them.
    let consumer = Consumer::new(pipeline, source)
        .key(EventKey::Pointer("/id".into()))
        .on_missing_key(OnMissingKey::DeadLetter)
        .order(InOrder::PartitionKey)
        .checkpoint(Checkpoint::Every(100));
    stop_at_ctrl_c(consumer.stopper());
    println!("reading {topic} at {brokers}; Ctrl-C to end");
    let report = consumer.run(charge).await?;
    println!("{} delivered, {} charged, {} seen before", report.delivered, report.ran, report.duplicates);
    for (stream, position) in &report.offsets {
        println!("  {stream} is done up to {position}");
    }
    Ok(())
}
