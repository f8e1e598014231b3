//! semel on PostgreSQL: many processes, one store, and effects that commit together with their record.

mod check;
mod config;
mod error;
mod lane;
mod round;
mod row;
mod schema;
mod session;
mod statement;
mod store;
mod text;
mod value;

pub use config::{Config, Durability};
pub use schema::{Migrated, ensure_schema, migrate};
pub use store::PostgresStore;
