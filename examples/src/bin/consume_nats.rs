//! Events of NATS JetStream, each processed once, however often it is published or delivered.
//!
//! ```text
//! cargo run -p semel-examples --features nats --bin consume_nats -- nats://127.0.0.1:4222 ORDERS
//! nats pub orders.new '{"order": 7, "cents": 4200}' -H Nats-Msg-Id:order-7        charged
//! (the same again, later than the stream's own window for duplicates)             seen before
//! ```
//!
//! The stream must be there (`nats stream add ORDERS --subjects 'orders.>'`). Receipts are in the folder `semel-data`: stop it with
//! Ctrl-C or kill it, start it again, and nothing is charged twice.

use std::sync::Arc;

use anyhow::Context;
use semel::{Outcome, Permit, Semel};
use semel_file::FileStore;
use semel_nats::NatsSource;
use semel_stream::{Consumer, Event, Failure, Handled, Pipeline, Step, Watch};
use serde::Deserialize;

#[derive(Deserialize)]
struct Order {
    order: u64,
    cents: u64,
}

/// What must happen once.
async fn charge(event: Arc<Event>, permit: Permit) -> Handled {
    // What cannot be read now can never be read: no use in trying again.
    let order: Order =
        serde_json::from_slice(&event.payload).map_err(|error| Failure::Dead(error.to_string()))?;
    println!("charged {} cents for order {} (attempt {})", order.cents, order.order, permit.attempt());
    Ok(Outcome::success(format!("charge-{}", order.order).into_bytes()))
}

/// Prints what happens beside the charges.
struct Printed;

impl Watch for Printed {
    fn saw(&self, step: &Step<'_>) {
        if let Step::Duplicate(at) = step {
            println!("seen before: {}", at.key.unwrap_or("?"));
        } else if let Step::DeadLetter { at, error, .. } = step {
            println!("put aside: {} ({error})", at.key.unwrap_or("?"));
        } else if let Step::Waiting(error) = step {
            println!("waiting: {error}");
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context("which broker? Say a URL, such as nats://127.0.0.1:4222")?;
    let stream = arguments.next().unwrap_or_else(|| "ORDERS".to_owned());
    let semel = Semel::new(FileStore::open("semel-data")?);
    let source = NatsSource::connect(&url, &stream, "charges").open().await?;
    let consumer = Consumer::new(Pipeline::new(&semel, "charges")?, source).watch(Arc::new(Printed));
    let stopper = consumer.stopper();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopper.stop();
        }
    });
    let report = consumer.run(charge).await?;
    println!("{} charged, {} seen before, {} put aside", report.ran, report.duplicates, report.dead_letters);
    Ok(())
}
