//! Charges and completes in one transaction, over and over, until it is killed: `transaction_victim URL [--apart]`.
//!
//! With `--apart` it completes beside the transaction instead, as a control: a kill between the two must show.

use std::error::Error;

use semel::{Claim, Decision, Key, Outcome, Semel};
use semel_postgres::{CompleteIn, PostgresStore};
use tokio_postgres::{Client, NoTls};

const CALLERS: u32 = 4;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("give the URL of a server")?;
    let is_apart = std::env::args().any(|arg| arg == "--apart");
    let semel = Semel::new(PostgresStore::connect(&url).await?);
    let run: u128 = rand::random();
    let mut callers = Vec::new();
    for caller in 0..CALLERS {
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
        tokio::spawn(connection);
        let (semel, name) = (semel.clone(), format!("{run:x}-{caller}"));
        callers.push(async move { charge_on(&semel, client, &name, is_apart).await });
    }
    // Its connections are made before it says so: a short life must not end in between.
    let first = Key::new("warm-up", &format!("{run:x}"))?;
    drop(tokio::try_join!(semel.claim(Claim::new(&first)), semel.claim(Claim::new(&first)))?);
    println!("ready");
    let mut callers = callers.into_iter();
    let (Some(a), Some(b), Some(c), Some(d)) =
        (callers.next(), callers.next(), callers.next(), callers.next())
    else {
        return Err("there are four callers".into());
    };
    tokio::try_join!(a, b, c, d)?;
    Ok(())
}

/// Charges under one key after the other.
async fn charge_on(
    semel: &Semel,
    mut client: Client,
    name: &str,
    is_apart: bool,
) -> Result<(), Box<dyn Error>> {
    for number in 0_u64.. {
        let key = Key::new("charge", &format!("{name}-{number}"))?;
        let Decision::Run(permit) = semel.claim(Claim::new(&key)).await? else {
            return Err("a new key must run".into());
        };
        let transaction = client.transaction().await?;
        transaction.execute("INSERT INTO charges VALUES ($1)", &[&key.name()]).await?;
        if is_apart {
            transaction.commit().await?;
            permit.complete(Outcome::success(*b"charged")).await?;
        } else {
            permit.complete_in(&transaction, Outcome::success(*b"charged")).await?;
            transaction.commit().await?;
        }
    }
    Ok(())
}
