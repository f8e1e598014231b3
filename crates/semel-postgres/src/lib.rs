//! semel on PostgreSQL: many processes, one store, and effects that commit together with their record.
//!
//! ```no_run
//! use semel::{Claim, Decision, Key, Outcome, Semel};
//! use semel_postgres::{CompleteIn, PostgresStore};
//!
//! # async fn charge(client: &mut tokio_postgres::Client) -> Result<(), Box<dyn std::error::Error>> {
//! let url = "postgres://semel@localhost/books";
//! semel_postgres::migrate(url).await?; // once; or `semel migrate`
//! let semel = Semel::new(PostgresStore::connect(url).await?);
//!
//! let key = Key::new("charge", "order-1042")?;
//! if let Decision::Run(permit) = semel.claim(Claim::new(&key)).await? {
//!     let transaction = client.transaction().await?;
//!     transaction.execute("INSERT INTO charges VALUES ($1)", &[&"order-1042"]).await?;
//!     // Both commit, or neither does; and if the permit was lost meanwhile, nothing can.
//!     permit.complete_in(&transaction, Outcome::success("ch_1")).await?;
//!     transaction.commit().await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What an acknowledgement survives, which settings are refused, and what the URL may say is in docs/stores.md.
//!
//! # Layout
//!
//! - `config`: where the servers are, from one URL; `check`: their settings, against what the promise needs; `rights`: those
//!   of the role.
//! - `store`: the four questions; `batch`: a batch on its way, until every swap is answered; `swap_answer`: one answer.
//! - `statement`: the SQL, from one list of columns; `row`: a record as a row; `lists`: what it keeps as JSON; `value`: the
//!   wire; `text`: characters that it refuses.
//! - `servers`: which of several servers is asked; `wire`: one connection; `session`: one that is set up and checked;
//!   `reconnecting`: one that comes back by itself, and on which every ask ends in time.
//! - `health`: what was found last of the server; `replication`: what is known to be on the synchronous standby.
//! - `schema`: the tables, and their versions; `error`: what a failure means, above all whether anything happened.
//! - `transaction`: asks inside the application's own transaction; `statement_cache`: the same with statements prepared
//!   once a connection; `sqlx`: inside a transaction of sqlx; `settled_listener`: waking across processes.
//! - `in_transaction` (feature `stream`): events of a stream, each processed in a transaction.

mod batch;
mod check;
mod config;
mod error;
mod health;
#[cfg(feature = "stream")]
mod in_transaction;
mod lists;
mod reconnecting;
mod replication;
mod rights;
mod row;
mod schema;
mod servers;
mod session;
mod settled_listener;
#[cfg(any(feature = "sqlx-0_8", feature = "sqlx-0_9"))]
mod sqlx;
mod statement;
mod statement_cache;
mod store;
mod swap_answer;
mod text;
mod transaction;
mod value;
mod wire;

pub use config::{Config, Durability, Pooling};
#[cfg(feature = "stream")]
pub use in_transaction::{Connecting, InTransaction, InTransactionHandled};
pub use schema::{Migrated, ensure_schema, migrate};
pub use settled_listener::SettledListener;
pub use statement_cache::{PreparedTransaction, StatementCache};
pub use store::PostgresStore;
pub use transaction::{CompleteIn, MoveOffsetIn, RecordOnceIn, Transaction};
