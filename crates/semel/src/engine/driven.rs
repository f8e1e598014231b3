//! What makes the engine safe to cancel: an ask that has started is driven to its end by whoever is there.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::oneshot;
use tracing::Instrument;

use crate::error::{Error, ErrorKind, Result};

/// Polls once and hands back what came of it, without waiting.
pub(super) async fn poll_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

/// What a future has to say at once. If that is nothing, it must be polled again by somebody who can be woken.
pub(super) fn poll_now<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Drives `future` to its end in a task of its own, even if the caller goes away: dropping what this returns never
/// cancels what is in flight to a store. An answer that nobody is left to hear goes to `unheard`.
pub(super) fn until_heard<T, F, U>(future: F, unheard: U) -> impl Future<Output = Result<T>> + Send
where
    T: Send + 'static,
    F: Future<Output = Result<T>> + Send + 'static,
    U: FnOnce(T) + Send + 'static,
{
    let (sender, receiver) = oneshot::channel();
    spawn_if_possible(async move {
        let answer = future.await.map(|answer| Unheard(Some((answer, unheard))));
        // If the receiver is gone, the answer comes back here and is dropped: unheard.
        drop(sender.send(answer));
    });
    async move {
        let heard = receiver.await.map_err(|_| {
            Error::new(ErrorKind::Unknown, "the runtime stopped before the store answered; ask again")
        })??;
        heard.take()
    }
}

/// An answer on its way to the caller. Dropped anywhere on it, also in a channel that nobody reads, it is known
/// to be unheard.
struct Unheard<T, U: FnOnce(T)>(Option<(T, U)>);

impl<T, U: FnOnce(T)> Unheard<T, U> {
    fn take(mut self) -> Result<T> {
        let lost = || Error::new(ErrorKind::Unknown, "the answer was taken twice; ask again");
        self.0.take().map(|(answer, _)| answer).ok_or_else(lost)
    }
}

impl<T, U: FnOnce(T)> Drop for Unheard<T, U> {
    fn drop(&mut self) {
        if let Some((answer, unheard)) = self.0.take() {
            unheard(answer);
        }
    }
}

/// Starts a task if there is a runtime to run it. While one shuts down there is none, and the lease decides.
pub(super) fn spawn_if_possible(task: impl Future<Output = ()> + Send + 'static) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(task.in_current_span());
    }
}
