//! What a command is tried with: a key like no other, a way that fails, and one that does not.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use semel::record::{PermitId, Record, State};
use semel::store::Store;
use semel::{Claim, Decision, ErrorKind, Key, Outcome, Permit, Result, Semel};
use tokio::time::Instant;

use super::proxy::LossyProxy;
use crate::sample;

/// How long a caller asks again before its key is taken for stuck. A client may wait a moment before it connects anew.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(5);

/// What a trial has come to; the error says what went wrong.
pub(super) type Tested<T = ()> = std::result::Result<T, String>;

/// What goes wrong with the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    Answer,
    Request,
}

/// One trial of one command.
pub(super) struct Trial<'a> {
    pub(super) through: Semel,
    pub(super) direct: Semel,
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) store_direct: &'a Arc<dyn Store>,
    pub(super) proxy: &'a LossyProxy,
    pub(super) loss: Loss,
    /// How many requests of the command go well before that.
    pub(super) after: u64,
}

/// An engine that remembers nothing by itself: every replay asks the store.
pub(super) fn engine(store: &Arc<dyn Store>) -> Result<Semel> {
    let builder = Semel::builder_shared(Arc::clone(store)).lease(sample::LONG).retention(sample::LONG);
    builder.replays_kept(0, 0).build()
}

impl Trial<'_> {
    /// Has the next request go wrong, or one soon after it.
    pub(super) fn arm(&self) {
        match self.loss {
            Loss::Answer => self.proxy.lose_answer_after(self.after),
            Loss::Request => self.proxy.drop_request_after(self.after),
        }
    }

    /// Asks with the answer lost, and again as a caller should: what may have happened is asked for as it was, and what
    /// the store says did not happen must not have happened.
    pub(super) async fn ask<T, F>(&self, key: &Key, mut ask: impl FnMut() -> F) -> Tested<T>
    where
        F: Future<Output = Result<T>>,
    {
        let before = self.record(key).await?;
        self.arm();
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                self.is_unchanged(key, before.as_ref()).await?;
            }
            Err(error) if error.kind() == ErrorKind::Unknown => {}
            Err(error) => return Err(format!("was told {error:?}")),
        }
        patiently(ask).await
    }

    /// Whoever is told that nothing happened may rely on it.
    async fn is_unchanged(&self, key: &Key, before: Option<&Record>) -> Tested {
        let after = self.record(key).await?;
        if before.map(|record| record.version) == after.as_ref().map(|record| record.version) {
            return Ok(());
        }
        Err(format!("was told that nothing happened, and it did: {after:?}"))
    }

    /// The record as it is on the server.
    pub(super) async fn record(&self, key: &Key) -> Tested<Option<Record>> {
        let found = self.store_direct.load(vec![key.id()]).await.map_err(|error| format!("{error:?}"))?;
        Ok(found.value.into_iter().next().flatten())
    }

    /// A permit that was granted while nothing went wrong; the connection is warm after that.
    pub(super) async fn granted(&self, key: &Key) -> Tested<Permit> {
        let permit_id = sample::permit_id();
        run(patiently(|| self.through.claim(Claim::new(key).permit_id(permit_id))).await)
    }

    /// The key runs under this permit, as its first attempt, and is nobody else's.
    pub(super) async fn runs_once(&self, key: &Key, permit_id: PermitId) -> Tested {
        let found = self.record(key).await?.ok_or("a run was granted and there is no record")?;
        let mine = matches!(&found.state, State::Running(running) if running.permit_id == permit_id);
        if !mine || found.attempt != 1 {
            return Err(format!("a run was granted and the record is {found:?}"));
        }
        match self.direct.claim(Claim::new(key)).await {
            Ok(Decision::Busy(_)) => Ok(()),
            other => Err(format!("a second caller was told {other:?} while the first ran")),
        }
    }

    /// Ends the run without any fault and has it replayed: the key is not stuck.
    pub(super) async fn ends_well(&self, permit: &Permit) -> Tested {
        let outcome = Outcome::success(*b"in the end");
        patiently(|| permit.complete(outcome.clone())).await?;
        self.replays(permit.key(), &outcome).await
    }

    /// Everybody is told this outcome.
    pub(super) async fn replays(&self, key: &Key, outcome: &Outcome) -> Tested {
        match self.direct.claim(Claim::new(key)).await {
            Ok(Decision::Replay(replay)) if replay.outcome() == outcome => Ok(()),
            other => Err(format!("the outcome is not replayed: {other:?}")),
        }
    }

    /// The key can be claimed by anybody, as this attempt.
    pub(super) async fn is_free(&self, key: &Key, attempt: u32) -> Tested {
        let permit = run(self.direct.claim(Claim::new(key)).await.map_err(|error| format!("{error:?}")))?;
        if permit.attempt() != attempt {
            return Err(format!("attempt {} came next, not {attempt}", permit.attempt()));
        }
        permit.complete(Outcome::success([])).await.map_err(|error| format!("could not complete: {error:?}"))
    }
}

/// Asks as it is asked, again and again, until there is an answer.
pub(super) async fn patiently<T, F>(mut ask: impl FnMut() -> F) -> Tested<T>
where
    F: Future<Output = Result<T>>,
{
    let until = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) if ![ErrorKind::Unknown, ErrorKind::Unavailable].contains(&error.kind()) => {
                return Err(format!("was told {error:?}"));
            }
            Err(error) if Instant::now() > until => return Err(format!("never got an answer: {error:?}")),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// The permit, if there is one.
pub(super) fn run(decision: Tested<Decision>) -> Tested<Permit> {
    let decision = decision?;
    let Decision::Run(permit) = decision else {
        return Err(format!("was told {decision:?} instead of to run"));
    };
    Ok(permit)
}

/// A new key, in words that a trial can pass on.
pub(super) fn key(operation: &str) -> Tested<Key> {
    sample::key(operation).map_err(|error| error.to_string())
}
