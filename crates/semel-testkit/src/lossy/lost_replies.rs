//! Every command with its answer lost, and many callers with some answers lost.

use std::sync::Arc;
use std::time::Duration;

use semel::Result;
use semel::store::Store;

use super::command::Command;
use super::observed::Observed;
use super::proxy::LossyProxy;
use super::report::{LostReplies, Tried};
use super::trial::{Loss, Tested, Trial, engine};
use crate::endurance::{Endurance, Losses};

/// How often a command is tried with each loss.
const ROUNDS: u64 = 6;
/// How many tries that may take: a client also sends what no command asked for.
const TRIES_MAX: u64 = 40;
/// How long the load may take for its answers before it is taken for stuck.
const PATIENCE: Duration = Duration::from_mins(2);
const CALLERS: usize = 8;

/// Loses the answer of every command after the server has given it, and drops its request before, and looks whether callers
/// that ask again get what they should: one run, one outcome, no key that is stuck.
///
/// `through` leads to the server by way of the proxy, `direct` past it.
pub async fn lost_replies(
    through: &Arc<dyn Store>,
    direct: &Arc<dyn Store>,
    proxy: &LossyProxy,
) -> Result<LostReplies> {
    let mut report = LostReplies::default();
    let observed = Arc::new(Observed::new(Arc::clone(through), Arc::clone(direct)));
    let through: Arc<dyn Store> = Arc::clone(&observed) as _;
    for command in Command::ALL {
        let mut tried = Tried { command: command.name(), lost: 0, dropped: 0, landed: 0 };
        for loss in [Loss::Answer, Loss::Request] {
            let mut trial = Trial {
                through: engine(&through)?,
                direct: engine(direct)?,
                store: &through,
                store_direct: direct,
                proxy,
                loss,
                after: 0,
            };
            let fault = rounds(command, &mut trial, &mut tried, &observed).await.err();
            report.faults.extend(fault.map(|fault| format!("{} ({loss:?} lost): {fault}", command.name())));
        }
        report.tried.push(tried);
    }
    Ok(report)
}

async fn rounds(command: Command, trial: &mut Trial<'_>, tried: &mut Tried, observed: &Observed) -> Tested {
    let before = (trial.proxy.lost(), trial.proxy.dropped(), observed.landed());
    let mut tested = Ok(());
    for number in 0..TRIES_MAX {
        trial.after = number % command.requests();
        tested = command.test(trial).await;
        trial.proxy.lose_nothing();
        let hits = trial.proxy.lost() - before.0 + trial.proxy.dropped() - before.1;
        // What was lost may also have been the answer to a client that only said hello.
        let seen =
            trial.loss == Loss::Request || !command.swaps() || observed.landed() - before.2 >= ROUNDS / 2;
        if tested.is_err() || (hits >= ROUNDS && seen) {
            break;
        }
    }
    tried.lost += trial.proxy.lost() - before.0;
    tried.dropped += trial.proxy.dropped() - before.1;
    tried.landed += observed.landed() - before.2;
    tested?;
    if trial.loss == Loss::Answer && command.swaps() && tried.landed == 0 {
        return Err("was never seen to have taken, so nothing is proved".to_owned());
    }
    Ok(())
}

/// Has callers claim and complete until so many answers are acknowledged, with answers lost at this probability, and holds what
/// they were told against the store. Nothing may be lost, doubled or stuck.
pub async fn lost_at_random(
    through: &Arc<dyn Store>,
    direct: &Arc<dyn Store>,
    proxy: &LossyProxy,
    seed: u64,
    (answers, probability): (u64, f64),
) -> Result<Losses> {
    proxy.lose_answers(probability, seed);
    let load = Endurance::start(through, seed, CALLERS)?;
    load.until_acknowledged(answers, PATIENCE).await;
    proxy.lose_nothing();
    load.stop().await.verify(direct).await
}
