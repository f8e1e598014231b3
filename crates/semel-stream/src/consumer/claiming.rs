//! Processing by claim, handler and receipt.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use semel::{Decision, Error, ErrorKind, Outcome, Permit, Result};

use super::tools::is_outage;
use super::work::{Task, Work, Worked};
use crate::event::Event;
use crate::failure::{Failure, Handled};
use crate::process::ended;
use crate::receipt::dead_letter;

/// Claims an event, runs the handler under the permit, and completes it.
pub(super) struct Claiming<F> {
    handler: F,
}

impl<F> Claiming<F> {
    pub(super) fn new(handler: F) -> Self {
        Self { handler }
    }
}

impl<F, Fut> Work for Claiming<F>
where
    F: Fn(Arc<Event>, Permit) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Handled> + Send + 'static,
{
    fn work<'a>(&'a self, task: Task<'a>) -> Pin<Box<dyn Future<Output = Result<Worked>> + Send + 'a>> {
        Box::pin(async move {
            let permit = match granted(&task).await? {
                Granted::Permit(permit) => permit,
                Granted::Not(worked) => return Ok(worked),
            };
            let attempt =
                if permit.is_unprotected() { task.failures.saturating_add(1) } else { permit.attempt() };
            if attempt > task.attempts_max {
                let error = format!("it was not tried again: {} attempts did not end", task.attempts_max);
                return put_aside(&task, &permit, attempt.saturating_sub(1), error).await;
            }
            match ended(&permit, (self.handler)(Arc::clone(task.event), permit.clone())).await {
                Ok(outcome) => {
                    task.saw_effect();
                    insist(&task, &permit, || permit.complete(outcome.clone())).await?;
                    Ok(Worked::Ran { attempt })
                }
                Err(failure) if task.is_last(attempt, &failure) => {
                    put_aside(&task, &permit, attempt, failure.reason().to_owned()).await
                }
                Err(failure) => {
                    insist(&task, &permit, || permit.release(failure.reason())).await?;
                    Ok(Worked::Failed { attempt, failure })
                }
            }
        })
    }
}

enum Granted {
    Permit(Permit),
    Not(Worked),
}

async fn granted(task: &Task<'_>) -> Result<Granted> {
    let claim = task.claim()?;
    let semel = task.pipeline.semel();
    if task.is_unprotected {
        let why =
            Error::new(ErrorKind::Invalid, "the event has no key; it is processed as often as it comes");
        return Ok(Granted::Permit(semel.unprotected(&claim, &why)));
    }
    Ok(match semel.claim(claim).await? {
        Decision::Run(permit) | Decision::Unprotected(permit) => Granted::Permit(permit),
        Decision::Replay(_) => Granted::Not(Worked::Duplicate),
        Decision::Busy(busy) => Granted::Not(Worked::Busy(busy.retry_after())),
        Decision::Held(held) => Granted::Not(Worked::Held(held.reason().to_owned())),
        Decision::Mismatch(_) => Granted::Not(Worked::Mismatch),
    })
}

/// Hands the event to the dead letters, and then writes its receipt.
async fn put_aside(task: &Task<'_>, permit: &Permit, attempts: u32, error: String) -> Result<Worked> {
    let heartbeat = permit.heartbeat();
    if let Err(unreached) = task.put_aside(attempts, &error).await {
        // Released, so that the next attempt need not wait for the lease.
        insist(task, permit, || permit.release("the place for dead letters does not answer")).await?;
        return Err(unreached);
    }
    let letter: Outcome = dead_letter(attempts, &error);
    insist(task, permit, || permit.complete(letter.clone())).await?;
    drop(heartbeat);
    Ok(Worked::PutAside { attempts, error })
}

/// Settles under the same permit until the store has answered: what ran once is not to be run again because of an outage
/// in between. A consumer that is stopping insists no longer than the lease is good.
async fn insist<T, Fut>(task: &Task<'_>, permit: &Permit, settle: impl Fn() -> Fut) -> Result<T>
where
    Fut: Future<Output = Result<T>>,
{
    let tools = task.tools;
    let mut heartbeat = None;
    let mut tries = 0_u32;
    loop {
        let error = match settle().await {
            Err(error) if is_outage(&error) => error,
            settled => return settled,
        };
        if tools.control.is_stopping() && permit.is_lost() {
            return Err(error);
        }
        tools.waits_for("the store", &error);
        heartbeat.get_or_insert_with(|| permit.heartbeat());
        tries = tries.saturating_add(1);
        tools.control.pause(tools.backoff.after(tries)).await;
    }
}

/// What a handler that panicked is said to have failed with: nobody knows its effect.
pub(super) fn panicked() -> Failure {
    Failure::Retry("the handler panicked; its effect is unknown, and the lease decides".into())
}
