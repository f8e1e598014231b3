//! What the handlers do: a line in a file, or a row in PostgreSQL.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use semel::{Error, ErrorKind, Outcome, Permit};
use semel_postgres::{Connecting, InTransaction};
use semel_stream::{Event, Handled, Work};
use tokio_postgres::{Client, NoTls};

use crate::Fallible;
use crate::choice::Life;
use crate::steps::{Point, Steps};

/// How long a handler takes before its effect, so that several are at it at once.
const WORK: Duration = Duration::from_millis(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
const INSERT: &str = "INSERT INTO effects VALUES ($1, $2, $3)";

/// A file with a line for each effect.
pub(crate) struct Effects(Mutex<File>);

impl Effects {
    pub(crate) fn open(path: &Path) -> Fallible<Self> {
        Ok(Self(Mutex::new(OpenOptions::new().create(true).append(true).open(path)?)))
    }

    /// One more effect: there, whatever happens next.
    pub(crate) fn append(&self, key: &str, attempt: u32) -> std::io::Result<()> {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(format!("{key} {attempt}\n").as_bytes())?;
        file.sync_data()
    }
}

/// An effect that nothing ties to its receipt.
pub(crate) async fn plain(
    effects: Arc<Effects>,
    steps: Arc<Steps>,
    event: Arc<Event>,
    permit: Permit,
) -> Handled {
    steps.at(Point::Claimed);
    tokio::time::sleep(WORK).await;
    effects.append(&number(&event), permit.attempt())?;
    Ok(Outcome::success("done"))
}

/// An effect in the transaction of its receipt.
pub(crate) fn in_transaction(life: &Life, steps: Arc<Steps>) -> impl Work + use<> {
    let pipeline: Arc<str> = life.pipeline.as_str().into();
    InTransaction::new(connecting(&life.store), move |event, permit, transaction| {
        let (pipeline, steps) = (Arc::clone(&pipeline), Arc::clone(&steps));
        Box::pin(async move {
            steps.at(Point::Claimed);
            tokio::time::sleep(WORK).await;
            let attempt = i64::from(permit.attempt());
            transaction.execute(INSERT, &[&&*pipeline, &number(event), &attempt]).await?;
            Ok(Outcome::success("done"))
        })
    })
}

/// Control: an effect beside the transaction.
pub(crate) fn apart(life: &Life, steps: Arc<Steps>) -> impl Work + use<> {
    let pipeline: Arc<str> = life.pipeline.as_str().into();
    let url: Arc<str> = life.store.as_str().into();
    InTransaction::new(connecting(&life.store), move |event, permit, _| {
        let (pipeline, url, steps) = (Arc::clone(&pipeline), Arc::clone(&url), Arc::clone(&steps));
        Box::pin(async move {
            steps.at(Point::Claimed);
            let client = connected(&url).await?;
            client.execute(INSERT, &[&&*pipeline, &number(event), &i64::from(permit.attempt())]).await?;
            Ok(Outcome::success("done"))
        })
    })
}

/// Which event it is.
pub(crate) fn number(event: &Event) -> String {
    let number = |payload: &serde_json::Value| payload.get("id").map(ToString::to_string);
    serde_json::from_slice(&event.payload).ok().as_ref().and_then(number).unwrap_or_default()
}

fn connecting(url: &str) -> impl Fn() -> Connecting + Send + Sync + 'static + use<> {
    let url = url.to_owned();
    move || {
        let url = url.clone();
        Box::pin(async move {
            connected(&url).await.map_err(|error| Error::new(ErrorKind::Unavailable, error.to_string()))
        })
    }
}

pub(crate) async fn connected(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Makes the tables.
pub(crate) async fn prepare(url: &str) -> Fallible<()> {
    semel_postgres::migrate(url).await?;
    let table = "CREATE TABLE effects (pipeline text NOT NULL, event text NOT NULL, attempt bigint NOT NULL)";
    Ok(connected(url).await?.batch_execute(table).await?)
}

/// What a dead process left to the server is over once its sessions are.
pub(crate) async fn until_alone(url: &str) -> Fallible<()> {
    let client = connected(url).await?;
    // The server's own processes have no user.
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename = current_user";
    while client.query_one(sessions, &[]).await?.try_get::<_, i64>(0)? > 1 {
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Ok(())
}

/// The effects in the database, each with its attempt.
pub(crate) async fn rows(life: &Life) -> Fallible<Vec<(String, i64)>> {
    let client = connected(&life.store).await?;
    let rows =
        client.query("SELECT event, attempt FROM effects WHERE pipeline = $1", &[&life.pipeline]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}
