//! Small programs that show semel at work; each is a file in `src/bin`.
//!
//! - `axum_auth`: authentication before the layer, so that a revoked caller is not shown a stored answer.
//! - `axum_charge`: a charge that commits together with its answer, in one PostgreSQL transaction.
//! - `charge_once`: clients that retry, and a charge that happens once all the same.
//! - `consume_kafka`, `consume_lines`, `consume_nats`, `consume_rabbitmq`, `consume_redis`: orders from a topic, a file, a
//!   subject, a queue and a stream, each charged once. Those of brokers are behind a feature each.
//! - `take_over`: a worker that dies half-way, and the one that goes on after it.
//!
//! And `semel.toml`, a config of the proxy for three routes.
