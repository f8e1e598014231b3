//! PostgreSQL: one server, standbys of it, and a pooler before it.

mod pooler;
mod programs;
mod server;
mod settings;
mod standby;

pub use pooler::{PgBouncer, PoolMode};
pub use server::Postgres;
pub use standby::Standby;
