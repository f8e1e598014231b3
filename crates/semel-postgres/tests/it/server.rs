//! The server that all tests share, and a schema of its own for whoever needs an empty one.

use std::sync::atomic::{AtomicU32, Ordering};

use semel::{Claim, Decision, Key, Permit, Semel};
use semel_postgres::{PostgresStore, migrate};
use tokio_postgres::{Client, NoTls};

/// The URL of the server that all tests share.
pub(crate) fn url() -> String {
    test_services::postgres_url().unwrap().to_string()
}

/// A store that others may use at the same time.
pub(crate) async fn open() -> PostgresStore {
    let url = url();
    migrate(&url).await.unwrap();
    PostgresStore::connect(&url).await.unwrap()
}

/// The URL of a schema that no other test knows. Nothing is in it yet.
pub(crate) async fn empty_schema() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("apart_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    client(&url()).await.batch_execute(&format!("CREATE SCHEMA {name}")).await.unwrap();
    format!("{}?options=-c%20search_path%3D{name}", url())
}

/// A store in a schema of its own, and its URL.
pub(crate) async fn alone() -> (PostgresStore, String) {
    let url = empty_schema().await;
    migrate(&url).await.unwrap();
    (PostgresStore::connect(&url).await.unwrap(), url)
}

/// The URL of a database that no other test knows. Nothing is in it yet.
pub(crate) async fn empty_database() -> String {
    let name = format!("semel_{:016x}", rand::random::<u64>());
    client(&url()).await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    format!("{}/{name}", url().rsplit_once('/').unwrap().0)
}

/// The URL of a database as 0.1 left it: schema 1 with eleven records.
pub(crate) async fn database_of_0_1() -> String {
    let url = empty_database().await;
    client(&url).await.batch_execute(include_str!("../fixtures/data-0.1.sql")).await.unwrap();
    url
}

/// The application's own connection.
pub(crate) async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A key like no other.
pub(crate) fn key(operation: &str) -> Key {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    Key::scoped(["acme", "eu"], operation, &name).unwrap()
}

/// The permit of a claim that must run.
pub(crate) async fn granted(semel: &Semel, claim: Claim) -> Permit {
    match semel.claim(claim).await.unwrap() {
        Decision::Run(permit) => permit,
        other => panic!("it must run: {other:?}"),
    }
}
