//! Every command with its answer lost, and many callers with some answers lost.

use std::sync::Arc;
use std::time::Duration;

use semel::Result;
use semel::store::Store;

use super::command::Command;
use super::proxy::LossyProxy;
use super::report::{LostReplies, Tried};
use super::trial::{Loss, Trial, engine};
use crate::endurance::{Endurance, Losses};

/// How often a command is tried with each loss.
const ROUNDS: u64 = 5;
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
    through: Arc<dyn Store>,
    direct: Arc<dyn Store>,
    proxy: &LossyProxy,
) -> Result<LostReplies> {
    let mut report = LostReplies::default();
    for command in Command::ALL {
        let mut tried = Tried { command: command.name(), lost: 0, dropped: 0, landed: 0 };
        for loss in [Loss::Answer, Loss::Request] {
            let trial = Trial {
                through: engine(&through)?,
                direct: engine(&direct)?,
                store: &through,
                store_direct: &direct,
                proxy,
                loss,
            };
            rounds(command, &trial, &mut tried, &mut report.faults).await;
        }
        report.tried.push(tried);
    }
    Ok(report)
}

async fn rounds(command: Command, trial: &Trial<'_>, tried: &mut Tried, faults: &mut Vec<String>) {
    let (lost, dropped) = (trial.proxy.lost(), trial.proxy.dropped());
    let hits = || (trial.proxy.lost() - lost, trial.proxy.dropped() - dropped);
    for _ in 0..TRIES_MAX {
        let before = hits();
        let tested = command.test(trial).await;
        trial.proxy.lose_nothing();
        match tested {
            Ok(landed) => {
                tried.landed += u64::from(landed && trial.loss == Loss::Answer && hits().0 > before.0)
            }
            Err(fault) => {
                faults.push(format!("{} ({:?} lost): {fault}", command.name(), trial.loss));
                break;
            }
        }
        if hits().0 + hits().1 >= ROUNDS {
            break;
        }
    }
    tried.lost += hits().0;
    tried.dropped += hits().1;
}

/// Has callers claim and complete until so many answers are acknowledged, with answers lost at this probability, and holds what
/// they were told against the store. Nothing may be lost, doubled or stuck.
pub async fn lost_at_random(
    through: Arc<dyn Store>,
    direct: Arc<dyn Store>,
    proxy: &LossyProxy,
    seed: u64,
    (answers, probability): (u64, f64),
) -> Result<Losses> {
    proxy.lose_answers(probability, seed);
    let load = Endurance::start(through, seed, CALLERS)?;
    load.until_acknowledged(answers, PATIENCE).await;
    proxy.lose_nothing();
    load.stop().await.verify(&direct).await
}
