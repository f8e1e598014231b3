//! Processing by claim, handler and receipt.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use semel::{Decision, Error, ErrorKind, OnOutage, Permit, Result};

use super::tools::is_outage;
use super::work::{Task, Work, Worked};
use crate::event::Event;
use crate::event_id::EventId;
use crate::failure::{Failure, Handled};
use crate::process::with_heartbeat;

/// A handler of any type, so that what surrounds it is compiled once.
type Handler = dyn Fn(Arc<Event>, Permit) -> Pin<Box<dyn Future<Output = Handled> + Send>> + Send + Sync;

/// Claims an event, runs the handler under the permit, and completes it.
pub(super) struct Claiming {
    handler: Box<Handler>,
}

impl Claiming {
    pub(super) fn new<F, Fut>(handler: F) -> Self
    where
        F: Fn(Arc<Event>, Permit) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Handled> + Send + 'static,
    {
        Self { handler: Box::new(move |event, permit| Box::pin(handler(event, permit))) }
    }
}

impl Work for Claiming {
    fn work<'a>(&'a self, task: Task<'a>) -> Pin<Box<dyn Future<Output = Result<Worked>> + Send + 'a>> {
        Box::pin(claimed(task, async move |task, permit, attempt| {
            match with_heartbeat(permit, (self.handler)(Arc::clone(task.event), permit.clone())).await {
                Ok(outcome) => {
                    task.saw_effect();
                    settle(task, permit, || permit.complete(outcome.clone())).await?;
                    Ok(Ok(Worked::Ran { attempt }))
                }
                Err(failure) => Ok(Err(failure)),
            }
        }))
    }
}

/// Claims an event, has it run under the permit, and sees to what failed.
pub(super) async fn claimed<F>(task: Task<'_>, run: F) -> Result<Worked>
where
    F: AsyncFnOnce(&Task<'_>, &Permit, u32) -> Result<std::result::Result<Worked, Failure>>,
{
    let permit = match granted(&task).await? {
        Granted::Permit(permit) => permit,
        Granted::Not(worked) => return Ok(worked),
    };
    let attempt = if permit.is_unprotected() { task.failures.saturating_add(1) } else { permit.attempt() };
    if attempt > task.attempts_max {
        let error = format!("it was not tried again: {} attempts did not end", task.attempts_max);
        return put_aside(&task, &permit, attempt.saturating_sub(1), error).await;
    }
    match run(&task, &permit, attempt).await? {
        Ok(worked) => Ok(worked),
        Err(failure) if task.is_last(attempt, &failure) => {
            put_aside(&task, &permit, attempt, failure.reason().to_owned()).await
        }
        Err(failure) => {
            settle(&task, &permit, || permit.release(failure.reason())).await?;
            Ok(Worked::Failed { attempt, failure })
        }
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

/// Hands the event to the dead letters, and then writes its receipt. Insists under the same permit: whoever ran once and
/// said that it is of no use must not run again because the place for dead letters is away.
async fn put_aside(task: &Task<'_>, permit: &Permit, attempts: u32, error: String) -> Result<Worked> {
    let heartbeat = permit.heartbeat();
    let give_up = || task.tools.control.is_stopping();
    let put = || task.put_aside(attempts, &error);
    if let Err(unreached) = insist(task, permit, "the place for dead letters", put, give_up).await {
        // Released, so that whoever is next need not wait for the lease.
        settle(task, permit, || permit.release("the place for dead letters does not answer")).await?;
        return Err(unreached);
    }
    let letter = task.dead_letter(attempts, &error);
    if permit.is_unprotected() {
        // Its run has no record, and a dead letter is always found again: by its place.
        let place = EventId::Keyless(task.key.into());
        let claim = task.pipeline.claim_of_run(&place, 0)?.on_outage(OnOutage::Closed);
        let record = || task.pipeline.semel().record_once(claim.clone(), letter.clone());
        settle(task, permit, record).await.map(drop)?;
    } else {
        settle(task, permit, || permit.complete(letter.clone())).await?;
    }
    drop(heartbeat);
    Ok(Worked::PutAside { attempts, error })
}

/// Settles under the same permit until the store has answered: what ran once is not to be run again because of an outage
/// in between. A consumer that is stopping insists no longer than the lease is good.
async fn settle<T, Fut>(task: &Task<'_>, permit: &Permit, settle: impl Fn() -> Fut) -> Result<T>
where
    Fut: Future<Output = Result<T>>,
{
    insist(task, permit, "the store", settle, || task.tools.control.is_stopping() && permit.is_lost()).await
}

/// Asks again and again under the permit until there is an answer, or it is time to give up.
async fn insist<T, Fut>(
    task: &Task<'_>,
    permit: &Permit,
    what: &'static str,
    ask: impl Fn() -> Fut,
    give_up: impl Fn() -> bool,
) -> Result<T>
where
    Fut: Future<Output = Result<T>>,
{
    let tools = task.tools;
    let mut heartbeat = None;
    let mut tries = 0_u32;
    loop {
        let error = match ask().await {
            Err(error) if is_outage(&error) => error,
            answer => return answer,
        };
        if give_up() {
            return Err(error);
        }
        tools.waits_for(what, &error);
        heartbeat.get_or_insert_with(|| permit.heartbeat());
        tries = tries.saturating_add(1);
        tools.control.pause(tools.backoff.after(tries)).await;
    }
}

/// What a handler that panicked is said to have failed with: nobody knows its effect.
pub(super) fn panicked() -> Failure {
    Failure::Retry("the handler panicked; its effect is unknown, and the lease decides".into())
}
