//! Proofs on a running store: histories of many clients, and sweeping while others claim.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use semel::store::Store;
use semel_ops::store_url::Address;
use semel_testkit::history::concurrent_history;
use semel_testkit::sweeping::sweep_while_claiming;

/// How many clients a history has, each with connections of its own.
const CLIENTS: usize = 16;
const OPERATIONS: usize = 1_000;
const SWEEPERS: usize = 2;
const CLAIMERS: usize = 8;
/// How long the claimers are alone first, to know what sweeping costs them.
const QUIET: Duration = Duration::from_secs(10);

async fn clients(store: &str, count: usize) -> Result<Vec<Arc<dyn Store>>> {
    let address: Address = store.parse()?;
    address.migrate().await?;
    let mut clients = Vec::new();
    for _ in 0..count {
        clients.push(address.open().await?.store());
    }
    Ok(clients)
}

/// Many clients at the same time, and every answer must fit one order of events.
pub(crate) async fn histories(store: &str, count: u64) -> Result<()> {
    let clients = clients(store, CLIENTS).await?;
    let (mut answered, mut overlapping) = (0, 0);
    for seed in 1..=count {
        let report = concurrent_history(&clients, seed, OPERATIONS).await;
        if !report.is_linearizable() {
            bail!("{report}");
        }
        answered += report.answered;
        overlapping += report.overlapping;
    }
    println!(
        "{count} histories of {OPERATIONS} operations by {CLIENTS} clients: {answered} answers, {overlapping} of them \
         while another was awaited for the same key: all linearizable"
    );
    Ok(())
}

/// Two sweepers and eight claimers over records that are past their retention.
pub(crate) async fn sweeping(store: &str, records: usize) -> Result<()> {
    let clients = clients(store, SWEEPERS + CLAIMERS).await?;
    let (sweepers, claimers) = clients.split_at(SWEEPERS);
    let report = sweep_while_claiming(sweepers, claimers, records, QUIET).await?;
    println!("{report}");
    ensure!(report.is_clean(), "something went wrong while sweeping");
    Ok(())
}
