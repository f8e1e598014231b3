//! Both runs, and what came of them.

use std::net::SocketAddr;
use std::num::NonZeroUsize;

use anyhow::{Result, bail};
use tokio::task::JoinSet;

use super::account::{Run, remark, table, verdict};
use super::bank::Bank;
use super::customer::{Tally, pay};
use super::dice::Dice;
use super::front::{CONFIG, Front};
use crate::terminal::bar::Bar;
use crate::terminal::{out, style};

/// How many clients pay at the same time.
const CLIENTS: usize = 16;

/// What is to be shown.
#[derive(Debug)]
pub(crate) struct Demo {
    pub(crate) payments: NonZeroUsize,
    pub(crate) seed: u64,
    /// Whether everything stays up afterwards, to be tried by hand.
    pub(crate) keep: bool,
}

pub(crate) async fn run(plan: &Demo) -> Result<()> {
    let dice = Dice::new(plan.seed);
    let payments = plan.payments.get() as u64;
    out::line(&format!(
        "{payments} payments by clients that hang up, lose answers and ask again, to an API that fails at times (seed {}).",
        plan.seed
    ))?;
    let without = bare(payments, dice).await?;
    let bank = Bank::open(dice).await?;
    let front = Front::open(bank.address()).await?;
    let clients = pay_all("with semel", front.address(), payments, dice).await;
    let with = Run { clients, api: bank.books() };
    told(&without, &with)?;
    if plan.keep {
        by_hand(front.address(), bank.address())?;
        tokio::signal::ctrl_c().await?;
    }
    front.close().await?;
    if !with.is_exact() {
        bail!(
            "with semel, charges and payments differ: that must not be; say so, with --seed {} and --requests {payments}",
            plan.seed
        );
    }
    Ok(())
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
        tally.add(&paid.unwrap_or_else(|_| Tally { wanted: 1, unanswered: 1, ..Tally::default() }));
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
