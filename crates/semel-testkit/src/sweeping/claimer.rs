//! Who claims meanwhile, and for how long.

use std::sync::Arc;
use std::time::Duration;

use semel::store::Store;
use semel::{Claim, Decision, Outcome, RecordId, Result, Semel};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::sample;

/// What claimers saw.
#[derive(Default)]
pub(super) struct Claims {
    pub(super) took: Vec<Duration>,
    /// The keys that were claimed and completed.
    pub(super) done: Vec<RecordId>,
    pub(super) errors: Vec<String>,
}

/// Claimers at work.
pub(super) struct Claimers {
    at_work: JoinSet<Claims>,
    stop: watch::Sender<bool>,
}

impl Claimers {
    /// Sets one claimer to work on each store, with an engine of its own, as if they were processes.
    pub(super) fn start(stores: &[Arc<dyn Store>]) -> Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let mut at_work = JoinSet::new();
        for store in stores {
            let builder = Semel::builder_shared(Arc::clone(store));
            let semel = builder.lease(sample::LONG).retention(sample::LONG).replays_kept(0, 0).build()?;
            at_work.spawn(live(semel, stopped.clone()));
        }
        Ok(Self { at_work, stop })
    }

    pub(super) async fn stop(mut self) -> Claims {
        self.stop.send_replace(true);
        let mut all = Claims::default();
        while let Some(claims) = self.at_work.join_next().await {
            match claims {
                Ok(claims) => {
                    all.took.extend(claims.took);
                    all.done.extend(claims.done);
                    all.errors.extend(claims.errors);
                }
                Err(error) => all.errors.push(format!("a claimer broke off: {error}")),
            }
        }
        all
    }
}

async fn live(semel: Semel, stopped: watch::Receiver<bool>) -> Claims {
    let mut claims = Claims::default();
    while !*stopped.borrow() {
        if let Err(error) = turn(&semel, &mut claims).await {
            claims.errors.push(format!("a claimer was told {error:?}"));
        }
        // A store in this process answers at once; the others must get a turn all the same.
        tokio::task::yield_now().await;
    }
    claims
}

async fn turn(semel: &Semel, claims: &mut Claims) -> Result<()> {
    let key = sample::key("claimed")?;
    let asked_at = Instant::now();
    let decision = semel.claim(Claim::new(&key)).await?;
    claims.took.push(asked_at.elapsed());
    let Decision::Run(permit) = decision else {
        claims.errors.push(format!("the first claim of a key was told {decision:?}"));
        return Ok(());
    };
    permit.complete(Outcome::success(*b"done")).await?;
    claims.done.push(key.id());
    Ok(())
}
