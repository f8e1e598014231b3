//! Events of NATS JetStream, each processed once, however often it is published or delivered.
//!
//! ```text
//! cargo run -p semel-examples --features nats --bin consume_nats -- nats://127.0.0.1:4222 ORDERS
//! nats pub orders.new '{"id": "order-7", "cents": 4200}' -H Nats-Msg-Id:order-7        charged
//! (the same again, later than the stream's own window for duplicates)             seen before
//! ```
//!
//! The stream must be there (`nats stream add ORDERS --subjects 'orders.>'`). Receipts are in the folder `semel-data`: stop it with
//! Ctrl-C or kill it, start it again, and nothing is charged twice.

use std::sync::Arc;

use anyhow::Context;
use semel::Semel;
use semel_examples::{Printed, charge, stop_at_ctrl_c};
use semel_file::FileStore;
use semel_nats::NatsSource;
use semel_stream::{Consumer, Pipeline};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context("which broker? Say a URL, such as nats://127.0.0.1:4222")?;
    let stream = arguments.next().unwrap_or_else(|| "ORDERS".to_owned());
    let semel = Semel::new(FileStore::open("semel-data")?);
    let source = NatsSource::connect(&url, &stream, "charges").open().await?;
    let consumer = Consumer::new(Pipeline::new(&semel, "charges")?, source).watch(Arc::new(Printed));
    stop_at_ctrl_c(consumer.stopper());
    let report = consumer.run(charge).await?;
    println!("{} charged, {} seen before, {} put aside", report.ran, report.duplicates, report.dead_letters);
    Ok(())
}
