//! Both runs, and what came of them; with the proxy before the API, on an embedded store in a folder that is gone afterwards.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use semel_ops::store_setting::StoreOverrides;
use semel_ops::store_url::Address;
use semel_proxy::config::{Admin, Config, Overrides};
use semel_proxy::{AccessLog, Proxy, ProxySettings};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::account::{Run, remark, table, verdict};
use super::bank::Bank;
use super::client::{Seen, Tally, pay};
use super::dice::Dice;
use crate::args::at_most;
use crate::terminal::{Bar, out, style};

/// How many clients pay at the same time.
const CLIENTS: usize = 16;
/// What the proxy is told. A lease that is over soon, so that nobody waits long for what only a person can decide.
const CONFIG: &str = "[rules]\nlease = \"1s\"\nlapse = \"hold\"\n";
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
            "{payments} payments by clients that hang up, lose answers and ask again, to an API that fails at times (seed {}).",
            self.seed
        ))?;
        let without = bare(payments, dice).await?;
        let bank = Bank::open(dice).await?;
        let folder = tempfile::tempdir().context("cannot make a folder for the store; is the disk full?")?;
        let proxy = Proxy::start(settings(bank.address(), &folder)?).await?;
        let clients = pay_all("with semel", proxy.listening(), payments, dice).await;
        let with = Run { clients, api: bank.books() };
        told(&without, &with)?;
        if self.keep {
            by_hand(proxy.listening(), bank.address())?;
            tokio::signal::ctrl_c().await?;
        }
        proxy.drain().await;
        folder.close().context("cannot remove the folder of the store")?;
        if !with.is_exact() {
            bail!(
                "with semel, charges and payments differ: that must not be; say so, with --seed {} and --requests {payments}",
                self.seed
            );
        }
        Ok(())
    }
}

/// The same clients and the same API, with nothing between them.
async fn bare(payments: u64, dice: Dice) -> Result<Run> {
    let bank = Bank::open(dice).await?;
    let clients = pay_all("without semel", bank.address(), payments, dice).await;
    Ok(Run { clients, api: bank.books() })
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

fn told(without: &Run, with: &Run) -> Result<()> {
    out::line(&format!("\n{}\n", table(without, with)))?;
    out::line(&verdict("without semel", without))?;
    out::line(&verdict("with semel", with))?;
    if let Some(remark) = remark(with) {
        out::line(&format!("\n{}", style::quiet().apply_to(remark)))?;
    }
    Ok(())
}

fn by_hand(proxy: SocketAddr, api: SocketAddr) -> Result<()> {
    let curl = |to: SocketAddr, cents: u32| {
        format!(
            "  curl -i http://{to}/payments -H 'Idempotency-Key: mine' -d '{{\"payment\":\"mine\",\"cents\":{cents}}}'"
        )
    };
    let again = curl(proxy, 4_200);
    let other = curl(proxy, 1);
    let bare = curl(api, 4_200);
    out::line(&format!(
        "\nAll of it is still up. Pay; pay again, which replays; pay another amount with the same key, which is refused:\n\n\
         {again}\n{again}\n{other}\n\n\
         Past the proxy, every request charges:\n\n{bare}\n\n\
         How often was charged by now?\n\n  curl http://{api}/\n\n\
         The proxy was told:\n\n{}\n\
         Ctrl-C ends it.",
        CONFIG.lines().flat_map(|line| ["  ", line, "\n"]).collect::<String>()
    ))
}

/// What the proxy before the API is told.
fn settings(upstream: SocketAddr, folder: &TempDir) -> Result<ProxySettings> {
    let overrides = Overrides {
        upstream: Some(Overrides::upstream(&format!("http://{upstream}")).map_err(anyhow::Error::msg)?),
        listen: Some(([127, 0, 0, 1], 0).into()),
        store: StoreOverrides { store: Some(Address::File(folder.path().join("store"))), variable: None },
        admin: Some(Admin::Off),
        access_log: Some(AccessLog::Off),
        ..Overrides::default()
    };
    Ok(Config::parse(CONFIG, "the demo").map(|config| config.with_overrides(overrides))?.settings()?)
}
