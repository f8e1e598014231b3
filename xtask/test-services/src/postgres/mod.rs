//! PostgreSQL: one server, and standbys of it.

mod programs;
mod server;
mod settings;
mod standby;

pub use server::Postgres;
pub use standby::Standby;
