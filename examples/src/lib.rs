//! Small programs that show semel at work; each is a file in `src/bin`.
//!
//! - `axum_auth`: authentication before the layer, so that a revoked caller is not shown a stored answer.
//! - `axum_charge`: a charge that commits together with its answer, in one PostgreSQL transaction.
//! - `charge_once`: clients that retry, and a charge that happens once all the same.
//! - `charge_sqlx_0_8`, `charge_sqlx_0_9`: a charge and its outcome in one transaction of sqlx, for each release behind a feature.
//! - `consume_kafka`, `consume_lines`, `consume_nats`, `consume_rabbitmq`, `consume_redis`: orders from a topic, a file, a
//!   subject, a queue and a stream, each charged once. Those of brokers are behind a feature each.
//! - `take_over`: a worker that dies half-way, and the one that goes on after it.
//!
//! And `semel.toml`, a config of the proxy for three routes.
//!
//! What the examples that read from a broker share is here: the handler, what they print, and how they end.

use std::sync::Arc;

use semel::{Outcome, Permit};
use semel_stream::{Event, Failure, Handled, Step, Stopper, Watch};
use serde::Deserialize;

/// An order, as producers write it: `{"id": "order-7", "cents": 4200}`.
#[derive(Deserialize)]
struct Order {
    id: String,
    cents: u64,
}

/// What must happen once for each event: the handler of the examples that read from a broker.
#[expect(clippy::unused_async, reason = "a real charge waits for its provider")]
pub async fn charge(event: Arc<Event>, permit: Permit) -> Handled {
    // What cannot be read now can never be read: to the dead letters with it.
    let order: Order =
        serde_json::from_slice(&event.payload).map_err(|error| Failure::Dead(error.to_string()))?;
    println!("  charged {} cents for {}, attempt {}", order.cents, order.id, permit.attempt());
    Ok(Outcome::success(format!("ch_{}", order.id).into_bytes()))
}

/// Prints what happens beside the charges.
pub struct Printed;

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

/// Ends a consumer in order at Ctrl-C: what runs may finish.
pub fn stop_at_ctrl_c(stopper: Stopper) {
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stopper.stop();
        }
    });
}
