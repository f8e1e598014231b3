//! The whole cycle around a function: claim, run with a heartbeat, complete; or replay.

use std::fmt::{self, Display};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::claim::{Busy, Decision, Held, Mismatch, Replay};
use super::permit::Permit;
use crate::error::{Error, ErrorKind};
use crate::outcome::{Outcome, OutcomeKind};
use crate::policy::OnFailure;

/// What [`once`](super::Semel::once) returned.
#[derive(Debug)]
#[must_use = "only some of these carry the value"]
pub enum Once<T> {
    /// The work ran, now, and this is its value.
    Ran(T),
    /// The work ran before, and this is the value it had then.
    Replayed(T),
    /// Another caller runs.
    Busy(Busy),
    /// Another request was made under this key.
    Mismatch(Mismatch),
    /// No caller may run until a person or a probe decides.
    Held(Held),
    /// The store does not answer, and the work ran without protection, as the policy says.
    Unprotected(T),
}

impl<T> Once<T> {
    /// The value, whether it is new or replayed; `None` if there is none to be had now.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Ran(value) | Self::Replayed(value) | Self::Unprotected(value) => Some(value),
            Self::Busy(_) | Self::Mismatch(_) | Self::Held(_) => None,
        }
    }
}

/// Why there is no value.
#[derive(Debug)]
pub enum OnceError<E> {
    /// The work failed, now. The key is released, or the failure stored, as the policy says.
    Work(E),
    /// The work failed before, and the failure was stored: its text.
    WorkBefore(Box<str>),
    /// The engine could not do its part; its kind says what may be done now. `Lost` or `Unknown` here mean that the
    /// work ran: do not report success.
    Engine(Error),
}

impl<E> From<Error> for OnceError<E> {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl<E: Display> Display for OnceError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work(error) => write!(f, "the work failed: {error}"),
            Self::WorkBefore(text) => write!(f, "the work failed before: {text}"),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl<E: Display + fmt::Debug> std::error::Error for OnceError<E> {}

/// What a decision means to a caller that brings its work along.
pub(super) async fn run_decided<T, E, F, Fut>(
    decision: Decision,
    work: F,
    on_failure: OnFailure,
) -> Result<Once<T>, OnceError<E>>
where
    T: Serialize + DeserializeOwned,
    E: Display,
    F: FnOnce(Permit) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    match decision {
        Decision::Run(permit) => run(permit, work, on_failure).await.map(Once::Ran),
        Decision::Unprotected(permit) => run(permit, work, on_failure).await.map(Once::Unprotected),
        Decision::Replay(replay) => replayed(&replay).map(Once::Replayed),
        Decision::Busy(busy) => Ok(Once::Busy(busy)),
        Decision::Mismatch(mismatch) => Ok(Once::Mismatch(mismatch)),
        Decision::Held(held) => Ok(Once::Held(held)),
    }
}

/// Polls once and returns the result, without waiting.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

async fn run<T, E, F, Fut>(permit: Permit, work: F, on_failure: OnFailure) -> Result<T, OnceError<E>>
where
    T: Serialize,
    E: Display,
    F: FnOnce(Permit) -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    let mut work = pin!(work(permit.clone()));
    // Work that is done at once needs no heartbeat.
    let ended = match poll_once(work.as_mut()).await {
        Poll::Ready(ended) => ended,
        Poll::Pending => {
            let _heartbeat = permit.heartbeat();
            work.await
        }
    };
    match ended {
        Ok(value) => {
            permit.complete(Outcome::success(to_json(&value)?)).await?;
            Ok(value)
        }
        Err(error) => {
            fail(&permit, &error, on_failure).await;
            Err(OnceError::Work(error))
        }
    }
}

/// Releases or stores a failure. The caller gets its own error either way: if this part fails too, the lease decides.
async fn fail<E: Display>(permit: &Permit, failure: &E, on_failure: OnFailure) {
    let noted = match on_failure {
        OnFailure::Release => permit.release("the work failed").await.map(drop),
        OnFailure::Store => permit.complete(Outcome::failure(failure.to_string().into_bytes())).await,
    };
    if let Err(error) = noted {
        tracing::warn!(key = %permit.key().id().short(), %error, "semel: a failure was not noted");
    }
}

fn replayed<T: DeserializeOwned, E>(replay: &Replay) -> Result<T, OnceError<E>> {
    let outcome = replay.outcome();
    match outcome.kind() {
        OutcomeKind::Failure => {
            Err(OnceError::WorkBefore(String::from_utf8_lossy(outcome.bytes()).into_owned().into()))
        }
        OutcomeKind::Success | OutcomeKind::Other(_) => Ok(from_json(outcome.bytes())?),
    }
}

pub(super) fn to_json<T: Serialize>(value: &T) -> crate::error::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| {
        Error::invalid("the value cannot be written as JSON; return one that can, or use claim and complete")
            .caused_by(error)
    })
}

pub(super) fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> crate::error::Result<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = "the stored value is not of the type asked for; read it as what it was written as";
        Error::new(ErrorKind::Corrupt, message).caused_by(error)
    })
}
