//! semel on PostgreSQL: many processes, one store, and effects that commit together with their record.

mod check;
mod config;
mod error;
mod lane;
mod round;
mod row;
mod schema;
mod session;
#[cfg(feature = "sqlx")]
mod sqlx;
mod statement;
mod store;
mod text;
mod told;
mod transaction;
mod value;
mod wake;

pub use config::{Config, Durability};
pub use schema::{Migrated, ensure_schema, migrate};
pub use store::PostgresStore;
pub use transaction::{CompleteIn, RecordOnceIn, Transaction};
pub use wake::WakeUps;
