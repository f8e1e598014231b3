//! Messages of a RabbitMQ queue, each processed once, however often it is published or delivered.
//!
//! ```text
//! cargo run -p semel-examples --features rabbitmq --bin consume_rabbitmq -- amqp://guest:guest@127.0.0.1:5672/%2f orders
//! rabbitmqadmin publish routing_key=orders payload='{"id": "order-7", "cents": 4200}'        charged
//! (the same again)                                                                            seen before
//! ```
//!
//! The key is a field of the message, because few producers write the property `message_id`. The queue is made if it is not there.
//! Receipts are in the folder `semel-data`: stop it with Ctrl-C or kill it, start it again, and nothing is charged twice.

use std::sync::Arc;

use anyhow::Context;
use semel::Semel;
use semel_examples::{Printed, charge, stop_at_ctrl_c};
use semel_file::FileStore;
use semel_rabbitmq::{Queue, RabbitMqSource};
use semel_stream::{Consumer, EventKey, OnMissingKey, Pipeline};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url =
        arguments.next().context("which broker? Say a URL, such as amqp://guest:guest@127.0.0.1:5672/%2f")?;
    let queue = arguments.next().unwrap_or_else(|| "orders".to_owned());
    let semel = Semel::new(FileStore::open("semel-data")?);
    let source = RabbitMqSource::connect(&url, &queue).queue(Queue::Durable).open().await?;
    let consumer = Consumer::new(Pipeline::new(&semel, "charges")?, source)
        .key(EventKey::Pointer("/id".into()))
        .on_missing_key(OnMissingKey::DeadLetter)
        .watch(Arc::new(Printed));
    stop_at_ctrl_c(consumer.stopper());
    let report = consumer.run(charge).await?;
    println!("{} charged, {} seen before, {} put aside", report.ran, report.duplicates, report.dead_letters);
    Ok(())
}
