//! Both runs, and what they came to; with the proxy before the API, on an embedded store in a folder that is gone afterwards.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::account::{Run, remark, table, verdict};
use super::bank::{Bank, Kills};
use super::client::{Seen, Tally, pay};
use super::dice::{Dice, proxy_dies_during};
use super::proxy_process::ProxyProcess;
use crate::args::at_most;
use crate::service::StopSignals;
use crate::terminal::{Bar, out, style};

/// How many clients pay at the same time.
const CLIENTS: usize = 16;
/// More would take longer than anybody looks.
const REQUESTS_MAX: usize = 100_000;

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// How many payments
    #[arg(long, value_name = "N", default_value_t = 100)]
    requests: usize,
    /// Which story: the same number has the same mishaps
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Leave everything up, with the lines to try by hand, until Ctrl-C
    #[arg(long)]
    keep: bool,
}

impl DemoArgs {
    pub(crate) async fn run(self) -> Result<()> {
        let payments = at_most("--requests", self.requests, REQUESTS_MAX)?.get() as u64;
        let dice = Dice::new(self.seed);
        out::line(&format!(
            "{payments} payments by clients that hang up, lose answers and try again, to an API that fails at times, through a\n\
             proxy that is killed (seed {}).",
            self.seed
        ))?;
        let without = bare(payments, dice).await?;
        let (kills, mut kill) = Kills::during(proxy_dies_during(payments));
        let bank = Bank::open(dice, Some(kills)).await?;
        // Before the folder is made, so that no signal leaves it behind.
        let mut stop = StopSignals::new().context("signals cannot be listened for")?;
        let folder = tempfile::tempdir().context("cannot make a folder for the store; is the disk full?")?;
        let mut proxy = ProxyProcess::start(bank.address(), folder.path()).await?;
        let to = proxy.listening;
        let paid = tokio::select! {
            clients = pay_all("with semel", to, payments, dice) => Some(clients),
            failed = proxy.die_and_return(&mut kill) => { failed?; None }
            _ = stop.next() => None,
        };
        let Some(clients) = paid else {
            return ended(proxy, folder).await;
        };
        let with = Run { clients, api: bank.books(), kills: proxy.kills };
        report(&without, &with)?;
        if self.keep {
            by_hand(&proxy, bank.address())?;
            stop.next().await;
        }
        ended(proxy, folder).await?;
        if !with.is_exact() {
            bail!(
                "with semel, charges and payments differ: that must not be; report it, with --seed {} and --requests {payments}",
                self.seed
            );
        }
        Ok(())
    }
}

/// Ends the proxy, and leaves nothing behind.
async fn ended(proxy: ProxyProcess, folder: TempDir) -> Result<()> {
    proxy.end().await?;
    folder.close().context("cannot remove the folder of the store")
}

/// The same clients and the same API, with nothing between them.
async fn bare(payments: u64, dice: Dice) -> Result<Run> {
    let bank = Bank::open(dice, None).await?;
    let clients = pay_all("without semel", bank.address(), payments, dice).await;
    Ok(Run { clients, api: bank.books(), kills: 0 })
}

async fn pay_all(what: &'static str, to: SocketAddr, payments: u64, dice: Dice) -> Tally {
    let bar = Bar::of_payments(what, payments);
    let (mut tally, mut paying, mut done) = (Tally::default(), JoinSet::new(), 0_u64);
    let mut waiting = 1..=payments;
    loop {
        while paying.len() < CLIENTS
            && let Some(payment) = waiting.next()
        {
            paying.spawn(pay(to, payment, dice));
        }
        let Some(paid) = paying.join_next().await else { break };
        // A client that fell over is one that was never answered.
        tally.add(&paid.unwrap_or_else(|_| Tally([(Seen::Wanted, 1)].into())));
        done = done.saturating_add(1);
        bar.reached(done, done);
    }
    tally
}

fn report(without: &Run, with: &Run) -> Result<()> {
    out::line(&format!("\n{}\n", table(without, with)))?;
    out::line(&verdict("without semel", without))?;
    out::line(&verdict("with semel", with))?;
    if let Some(remark) = remark(with) {
        out::line(&format!("\n{}", style::quiet().apply_to(remark)))?;
    }
    Ok(())
}

fn by_hand(proxy: &ProxyProcess, api: SocketAddr) -> Result<()> {
    let curl = |to: SocketAddr, cents: u32| {
        format!(
            "  curl -i http://{to}/payments -H 'Idempotency-Key: mine' -d '{{\"payment\":\"mine\",\"cents\":{cents}}}'"
        )
    };
    let again = curl(proxy.listening, 4_200);
    let other = curl(proxy.listening, 1);
    let bare = curl(api, 4_200);
    let configuration = proxy.configuration()?;
    out::line(&format!(
        "\nEverything is still up.\n\n\
         Dashboard: http://{}/\n\
         Store:     {}\n\n\
         Pay; pay again, which replays; pay another amount with the same key, which is refused:\n\n\
         {again}\n{again}\n{other}\n\n\
         Past the proxy, every request charges:\n\n{bare}\n\n\
         Count the charges so far:\n\n  curl http://{api}/\n\n\
         The configuration of the proxy:\n\n{}\n\
         Ctrl-C ends it and removes the store.",
        proxy.admin,
        proxy.store.display(),
        indented(&configuration)
    ))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
}
