//! The server that all tests share, and a schema of its own for the ones that need it empty.

use semel_postgres::{PostgresStore, migrate};

/// The URL of the server that all tests share.
pub(crate) fn url() -> String {
    semel_servers::postgres_url().unwrap().to_string()
}

/// A store that others may use at the same time.
pub(crate) async fn open() -> PostgresStore {
    let url = url();
    migrate(&url).await.unwrap();
    PostgresStore::connect(&url).await.unwrap()
}
