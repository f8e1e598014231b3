//! The future of a response. A run that has started is never cancelled with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use pin_project_lite::pin_project;

use crate::body::ResponseBody;

/// What a service of the layer answers.
pub(crate) type Answer<R, E> = Result<Response<ResponseBody<R>>, E>;
type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Panicked<R, E> = Box<dyn FnOnce() -> Answer<R, E> + Send>;

/// What was decided about a request.
#[expect(clippy::large_enum_variant, reason = "handed on once; a box would cost more than the move")]
pub(crate) enum Verdict<R, E> {
    /// This is the answer.
    Answer(Answer<R, E>),
    /// It runs.
    Run(Run<R, E>),
}

pin_project! {
    /// The future of a response.
    ///
    /// Servers drop it when their client hangs up. Before a run has started, that ends the matter; afterwards the run
    /// goes on in a task of its own, to its end, and its outcome is kept for the client's retry.
    pub struct ResponseFuture<F, R, E> {
        #[pin]
        state: State<F, R, E>,
    }
}

pin_project! {
    #[project = Projected]
    enum State<F, R, E> {
        Passing { #[pin] future: F },
        Deciding { future: Boxed<Verdict<R, E>> },
        Running { run: Run<R, E> },
    }
}

impl<F, R, E> ResponseFuture<F, R, E> {
    pub(crate) fn passing(future: F) -> Self {
        Self { state: State::Passing { future } }
    }

    pub(crate) fn deciding(future: Boxed<Verdict<R, E>>) -> Self {
        Self { state: State::Deciding { future } }
    }
}

impl<F, R, E> Future for ResponseFuture<F, R, E>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Answer<R, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let run = match state.as_mut().project() {
                Projected::Passing { future } => {
                    let answer = ready!(future.poll(context));
                    return Poll::Ready(answer.map(|response| response.map(ResponseBody::streaming)));
                }
                Projected::Running { run } => return run.poll(context),
                Projected::Deciding { future } => match ready!(future.as_mut().poll(context)) {
                    Verdict::Answer(answer) => return Poll::Ready(answer),
                    Verdict::Run(run) => run,
                },
            };
            state.set(State::Running { run });
        }
    }
}

/// A run. Polled by whoever waits for its answer; if they go, it goes on in a task of its own.
pub(crate) struct Run<R, E> {
    /// Gone once it has ended, or while it is polled, so that a run that panicked is not polled again.
    future: Option<Boxed<Answer<R, E>>>,
    /// What to answer if it panics.
    panicked: Option<Panicked<R, E>>,
    detach: fn(Boxed<Answer<R, E>>),
}

impl<R: Send + 'static, E: Send + 'static> Run<R, E> {
    pub(crate) fn new(
        future: Boxed<Answer<R, E>>,
        panicked: impl FnOnce() -> Answer<R, E> + Send + 'static,
    ) -> Self {
        Self { future: Some(future), panicked: Some(Box::new(panicked)), detach }
    }
}

impl<R, E> Run<R, E> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Answer<R, E>> {
        let Some(mut future) = self.future.take() else { return Poll::Pending };
        // Without this, a panic would take the whole connection along, and with HTTP/2 all its other requests.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Ready(answer)) => Poll::Ready(answer),
            Ok(Poll::Pending) => {
                self.future = Some(future);
                Poll::Pending
            }
            Err(_) => self.panicked.take().map_or(Poll::Pending, |panicked| Poll::Ready(panicked())),
        }
    }
}

impl<R, E> Drop for Run<R, E> {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            (self.detach)(future);
        }
    }
}

/// Drives a run to its end in a task of its own. Without a runtime, as while one shuts down, the lease decides.
fn detach<T: Send + 'static>(future: Boxed<T>) {
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move { drop(future.await) });
    }
}
