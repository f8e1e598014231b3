//! A charge that commits together with its answer: one PostgreSQL transaction writes the row and completes the record.
//!
//! Either both are there or neither is, whatever dies when: exactly once, not "at least" or "at most". If the process dies before
//! the commit, nothing was charged and a retry runs; if it dies after it, a retry gets the stored answer.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@127.0.0.1/postgres cargo run -p semel-examples --bin axum_charge
//! curl -i http://127.0.0.1:4000/charges -H 'Authorization: Bearer me' -H 'Idempotency-Key: order-1042' \
//!      -H 'Content-Type: application/json' -d '{"cents": 4200}'                 201, a row
//! (the same again)                                                              201, the same answer, no other row
//! (the same with -d '{"cents": 1}')                                             422: the key is used
//! curl http://127.0.0.1:4000/charges                                            how many rows there are
//! ```

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::extract::{Json, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Router};
use semel::Semel;
use semel_http::{Granted, IdempotencyLayer, KeyPresence, Principal, Profile, Reply, Settings, Settle};
use semel_postgres::{CompleteIn, PostgresStore};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls};

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS example_charges (id BIGSERIAL PRIMARY KEY, cents BIGINT NOT NULL)";

#[derive(Deserialize)]
struct Asked {
    cents: i64,
}

#[derive(Serialize)]
struct Charged {
    id: i64,
    cents: i64,
}

/// One connection for the application's own work; a real service has a pool of them.
type Database = Arc<Mutex<Client>>;

/// What went wrong, and what the layer is to make of it.
struct Failure {
    message: String,
    settle: Settle,
}

impl Failure {
    /// Nothing was committed: a retry may run.
    fn before_commit(error: impl std::fmt::Display) -> Self {
        Self { message: error.to_string(), settle: Settle::Release }
    }

    /// The commit was sent, and its answer is lost. The database knows; this process does not. If it committed, the record is
    /// done, and a retry finds it; if not, the lease lapses, and a retry runs.
    fn of_commit(error: impl std::fmt::Display) -> Self {
        Self { message: error.to_string(), settle: Settle::Unknown }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        eprintln!("a charge failed: {}", self.message);
        let told = "the charge failed; send it again with the same key\n";
        (StatusCode::SERVICE_UNAVAILABLE, Extension(self.settle), told).into_response()
    }
}

async fn charge(
    State(database): State<Database>,
    Granted(permit): Granted,
    Json(asked): Json<Asked>,
) -> Result<Reply, Failure> {
    let mut client = database.lock().await;
    let transaction = client.transaction().await.map_err(Failure::before_commit)?;
    let row = transaction
        .query_one("INSERT INTO example_charges (cents) VALUES ($1) RETURNING id", &[&asked.cents])
        .await
        .map_err(Failure::before_commit)?;
    let charged = Charged { id: row.get(0), cents: asked.cents };
    let reply = Reply::json(StatusCode::CREATED, &charged)
        .and_then(|reply| reply.header("location", &format!("/charges/{}", charged.id)))
        .map_err(Failure::before_commit)?;
    // The last statement before the commit. If somebody else took over meanwhile, this fails, and nothing can commit.
    permit.complete_in(&transaction, reply.outcome()).await.map_err(Failure::before_commit)?;
    transaction.commit().await.map_err(Failure::of_commit)?;
    Ok(reply)
}

async fn count(State(database): State<Database>) -> Result<String, Failure> {
    let row = database.lock().await.query_one("SELECT count(*) FROM example_charges", &[]).await;
    row.map(|row| format!("{} charges\n", row.get::<_, i64>(0))).map_err(Failure::before_commit)
}

/// The service on a database, which gets what it needs if it has it not.
async fn app(url: &str) -> Result<Router> {
    let cannot = "cannot use the database of DATABASE_URL; is it up, and may the user make tables?";
    semel_postgres::migrate(url).await.context(cannot)?;
    let semel = Semel::new(PostgresStore::connect(url).await.context(cannot)?);
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.context(cannot)?;
    tokio::spawn(connection);
    client.batch_execute(TABLE).await.context(cannot)?;

    let mut profile = Profile::ietf();
    profile.rules.key = KeyPresence::Required;
    let settings = Settings { profile, ..Settings::default() };
    let principal = Principal::header("authorization");
    let layer = IdempotencyLayer::with_settings(semel, principal, settings)?;
    Ok(Router::new()
        .route("/charges", post(charge).get(count))
        .layer(layer)
        .with_state(Arc::new(Mutex::new(client))))
}

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("DATABASE_URL")
        .context("set DATABASE_URL to a PostgreSQL, such as postgres://postgres@127.0.0.1/postgres")?;
    let app = app(&url).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:4000").await?;
    println!("listening on {}; the lines to try are at the top of this file", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    /// A schema of its own in a PostgreSQL that the tests share.
    async fn database() -> (String, test_services::Lent) {
        let server = tokio::task::spawn_blocking(test_services::postgres_url)
            .await
            .expect("ends")
            .expect("PostgreSQL starts");
        let schema = format!("example_{:016x}", rand::random::<u64>());
        let (client, connection) = tokio_postgres::connect(&server, NoTls).await.expect("is up");
        tokio::spawn(connection);
        client.batch_execute(&format!("CREATE SCHEMA {schema}")).await.expect("is made");
        (format!("{}?options=-csearch_path%3D{schema}", &*server), server)
    }

    async fn sent(
        app: &Router,
        request: axum::http::request::Builder,
        body: &'static str,
    ) -> (StatusCode, String) {
        let request = request.header("authorization", "Bearer me").header("content-type", "application/json");
        let request = request.body(Body::from(body)).expect("is a request");
        let response = app.clone().oneshot(request).await.expect("is answered");
        let status = response.status();
        let body = to_bytes(response.into_body(), 4_096).await.expect("is read");
        (status, String::from_utf8(body.to_vec()).expect("is text"))
    }

    fn paying(key: &str) -> axum::http::request::Builder {
        Request::post("/charges").header("idempotency-key", key)
    }

    #[tokio::test]
    async fn a_retry_gets_the_answer_that_was_committed_with_the_row() {
        let (url, _server) = database().await;
        let service = app(&url).await.expect("starts");
        let first = sent(&service, paying("a"), r#"{"cents":4200}"#).await;
        assert_eq!(first, (StatusCode::CREATED, r#"{"id":1,"cents":4200}"#.to_owned()));
        assert_eq!(sent(&service, paying("a"), r#"{"cents":4200}"#).await, first);
        // As if the process had died and come back: only the database remembers.
        let restarted = app(&url).await.expect("starts");
        assert_eq!(sent(&restarted, paying("a"), r#"{"cents":4200}"#).await, first);
        assert_eq!(sent(&restarted, paying("a"), r#"{"cents":1}"#).await.0, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(sent(&restarted, Request::get("/charges"), "").await.1, "1 charges\n");
        assert_eq!(sent(&restarted, paying("b"), r#"{"cents":4200}"#).await.0, StatusCode::CREATED);
        assert_eq!(sent(&restarted, Request::get("/charges"), "").await.1, "2 charges\n");
    }

    #[tokio::test]
    async fn a_charge_that_fails_leaves_no_row_and_a_retry_runs() {
        let (url, _server) = database().await;
        let service = app(&url).await.expect("starts");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.expect("is up");
        tokio::spawn(connection);
        client
            .batch_execute("ALTER TABLE example_charges ADD CONSTRAINT few CHECK (cents < 100)")
            .await
            .expect("is added");
        assert_eq!(sent(&service, paying("a"), r#"{"cents":4200}"#).await.0, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(sent(&service, Request::get("/charges"), "").await.1, "0 charges\n");
        client.batch_execute("ALTER TABLE example_charges DROP CONSTRAINT few").await.expect("is dropped");
        assert_eq!(sent(&service, paying("a"), r#"{"cents":4200}"#).await.0, StatusCode::CREATED);
        assert_eq!(sent(&service, Request::get("/charges"), "").await.1, "1 charges\n");
    }
}
