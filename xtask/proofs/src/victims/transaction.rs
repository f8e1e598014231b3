//! Charges and completes in one transaction of PostgreSQL, over and over, until it is killed; as a control, it completes
//! beside the transaction: a kill between the two must show.

use anyhow::{Result, bail};
use semel::{Claim, Decision, Key, Outcome, Semel};
use semel_postgres::{CompleteIn, PostgresStore};
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

const CALLERS: u32 = 4;

/// Says `ready` once its connections are made: a short life must not end in between.
pub(super) async fn charge_until_killed(url: &str, is_apart: bool) -> Result<()> {
    let semel = Semel::new(PostgresStore::connect(url).await?);
    let run: u128 = rand::random();
    let mut clients = Vec::new();
    for _ in 0..CALLERS {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        clients.push(client);
    }
    let first = Key::new("warm-up", &format!("{run:x}"))?;
    drop(tokio::try_join!(semel.claim(Claim::new(&first)), semel.claim(Claim::new(&first)))?);
    println!("ready");
    let mut callers = JoinSet::new();
    for (caller, client) in clients.into_iter().enumerate() {
        let (semel, name) = (semel.clone(), format!("{run:x}-{caller}"));
        callers.spawn(async move { charge_on(&semel, client, &name, is_apart).await });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    Ok(())
}

/// Charges under one key after the other.
async fn charge_on(semel: &Semel, mut client: Client, name: &str, is_apart: bool) -> Result<()> {
    for number in 0_u64.. {
        let key = Key::new("charge", &format!("{name}-{number}"))?;
        let Decision::Run(permit) = semel.claim(Claim::new(&key)).await? else {
            bail!("a new key must run");
        };
        let transaction = client.transaction().await?;
        transaction.execute("INSERT INTO charges VALUES ($1)", &[&key.name()]).await?;
        if is_apart {
            transaction.commit().await?;
            permit.complete(Outcome::success("charged")).await?;
        } else {
            permit.complete_in(&transaction, Outcome::success("charged")).await?;
            transaction.commit().await?;
        }
    }
    Ok(())
}
