//! A charge and its outcome in one transaction of sqlx 0.9: both commit, or neither does.
//!
//! ```text
//! DATABASE_URL=postgres://postgres@127.0.0.1/postgres \
//!     cargo run -p semel-examples --features sqlx-0_9 --bin charge_sqlx_0_9
//! charged order-1042: ch_1
//! charged before: ch_1                                  the retry; and so does every later start of the program
//! ```
//!
//! Behind a pooler in transaction mode, add `statement-cache-capacity=0` to the URL of the pool: nothing is prepared then, by
//! the application or by semel. The store's own URL is another matter: see docs/stores.md.

use anyhow::{Context, Result, bail};
use semel::{Claim, Decision, Key, Outcome, Semel};
use semel_postgres::{CompleteIn, PostgresStore};
use sqlx::{PgPool, Row};

const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS example_charges (id BIGSERIAL PRIMARY KEY, cents BIGINT NOT NULL)";

/// The id of the order's charge: of a new one, or of the one that was made before.
async fn charge(semel: &Semel, pool: &PgPool, order: &str, cents: i64) -> Result<String> {
    let key = Key::new("charge", order)?;
    let permit = match semel.claim(Claim::new(&key)).await? {
        Decision::Run(permit) => permit,
        Decision::Replay(replay) => {
            let id = String::from_utf8_lossy(replay.outcome().bytes());
            return Ok(format!("charged before: {id}"));
        }
        other
        @ (Decision::Busy(_) | Decision::Mismatch(_) | Decision::Held(_) | Decision::Unprotected(_)) => {
            bail!("{order} cannot be charged now: {}; try again later", other.as_str())
        }
    };
    let mut transaction = pool.begin().await?;
    let insert = sqlx::query("INSERT INTO example_charges (cents) VALUES ($1) RETURNING id").bind(cents);
    let row = insert.fetch_one(&mut *transaction).await?;
    let id = format!("ch_{}", row.get::<i64, _>(0));
    // The last statement before the commit. If another run took over meanwhile, this fails, and nothing can commit.
    permit.complete_in(&mut transaction, Outcome::success(id.clone().into_bytes())).await?;
    transaction.commit().await?;
    Ok(format!("charged {order}: {id}"))
}

/// An engine and a pool on one database, with the tables that both need.
async fn open(url: &str) -> Result<(Semel, PgPool)> {
    let cannot = "cannot use the database of DATABASE_URL; is it up, and may the user make tables?";
    semel_postgres::migrate(url).await.context(cannot)?;
    let semel = Semel::new(PostgresStore::connect(url).await.context(cannot)?);
    let pool = PgPool::connect(url).await.context(cannot)?;
    sqlx::query(TABLE).execute(&pool).await.context(cannot)?;
    Ok((semel, pool))
}

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("DATABASE_URL")
        .context("set DATABASE_URL to a PostgreSQL, such as postgres://postgres@127.0.0.1/postgres")?;
    let (semel, pool) = open(&url).await?;
    for _ in 0..2 {
        println!("{}", charge(&semel, &pool, "order-1042", 4_200).await?);
    }
    semel.close().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_retry_finds_the_charge_that_was_committed_with_its_outcome() {
        let server = tokio::task::spawn_blocking(test_services::postgres_url)
            .await
            .expect("ends")
            .expect("PostgreSQL starts");
        let schema = format!("example_{:016x}", rand::random::<u64>());
        let admin = PgPool::connect(&server).await.expect("is up");
        let create = sqlx::AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
        sqlx::query(create).execute(&admin).await.expect("is made");
        let url = format!("{}?options=-csearch_path%3D{schema}", &*server);
        for expected in ["charged order-7: ch_1", "charged before: ch_1"] {
            let (semel, pool) = open(&url).await.expect("opens");
            assert_eq!(charge(&semel, &pool, "order-7", 4_200).await.expect("is charged"), expected);
            let count = sqlx::query("SELECT count(*) FROM example_charges").fetch_one(&pool).await;
            assert_eq!(count.expect("is counted").get::<i64, _>(0), 1);
        }
    }
}
