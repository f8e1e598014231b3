//! The future of a response: a decision, then a run that is never cancelled with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use pin_project_lite::pin_project;
use tracing::Instrument as _;

use super::run::{RunContext, Started};
use crate::body::ResponseBody;

/// What a service of the layer answers.
pub(crate) type Answer<R, E> = Result<Response<ResponseBody<R>>, E>;

pin_project! {
    /// The future of a response.
    ///
    /// Servers drop it when their client hangs up. Before the run is granted, that ends the exchange; afterwards the run
    /// goes on in a task of its own, to its end, and its outcome is kept for the client's retry.
    pub struct ResponseFuture<F, R, E> {
        #[pin]
        kind: Kind<F, R, E>,
    }
}

pin_project! {
    #[project = KindProjected]
    enum Kind<F, R, E> {
        Passing { #[pin] response: F },
        Exchanging { exchange: Detaching<R, E> },
    }
}

impl<F, R, E> ResponseFuture<F, R, E> {
    /// A request that is not covered.
    pub(crate) fn passing(response: F) -> Self {
        Self { kind: Kind::Passing { response } }
    }

    /// A covered request: `decision` says whether it runs, and `start` makes the run of what was granted.
    pub(crate) fn exchange<D, G, S, W>(decision: D, start: S) -> Self
    where
        D: Future<Output = Result<G, Response<ResponseBody<R>>>> + Send + 'static,
        S: Fn(G) -> Started<W, R> + Send + 'static,
        W: Future<Output = Answer<R, E>> + Send + 'static,
    {
        let stage = Stage::Deciding { decision };
        Self { kind: Kind::Exchanging { exchange: Detaching(Some(Box::pin(Exchange { stage, start }))) } }
    }
}

impl<F, R, E> Future for ResponseFuture<F, R, E>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Answer<R, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindProjected::Passing { response } => {
                let answer = ready!(response.poll(context));
                Poll::Ready(answer.map(|response| response.map(ResponseBody::streaming)))
            }
            KindProjected::Exchanging { exchange } => exchange.poll(context),
        }
    }
}

/// An exchange, polled by the server that waits for its answer. If it is dropped while it runs, it goes on in a task.
struct Detaching<R, E>(Option<Pin<Box<dyn Detach<R, E>>>>);

impl<R, E> Detaching<R, E> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Answer<R, E>> {
        let Some(exchange) = &mut self.0 else { return Poll::Pending };
        let answer = ready!(exchange.as_mut().poll(context));
        self.0 = None;
        Poll::Ready(answer)
    }
}

impl<R, E> Drop for Detaching<R, E> {
    fn drop(&mut self) {
        if let Some(exchange) = self.0.take() {
            exchange.detach();
        }
    }
}

/// A future that goes on by itself if it must not be cancelled.
trait Detach<R, E>: Future<Output = Answer<R, E>> + Send {
    /// Takes the place of being dropped.
    fn detach(self: Pin<Box<Self>>);
}

pin_project! {
    /// An exchange: one allocation for its decision and its run.
    struct Exchange<D, S, W> {
        #[pin]
        stage: Stage<D, W>,
        start: S,
    }
}

pin_project! {
    #[project = StageProjected]
    enum Stage<D, W> {
        Deciding { #[pin] decision: D },
        Running { #[pin] run: W, run_context: RunContext },
        Ended,
    }
}

impl<D, G, S, W, R, E> Future for Exchange<D, S, W>
where
    D: Future<Output = Result<G, Response<ResponseBody<R>>>>,
    S: Fn(G) -> Started<W, R>,
    W: Future<Output = Answer<R, E>>,
{
    type Output = Answer<R, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Answer<R, E>> {
        let mut this = self.project();
        loop {
            let answer = match this.stage.as_mut().project() {
                StageProjected::Deciding { decision } => match ready!(decision.poll(context)) {
                    Ok(grant) => match (this.start)(grant) {
                        Ok((run, run_context)) => {
                            this.stage.set(Stage::Running { run, run_context });
                            continue;
                        }
                        Err(response) => Ok(*response),
                    },
                    Err(response) => Ok(response),
                },
                // Without this, a panic would take the whole connection along, and with HTTP/2 all its other requests.
                StageProjected::Running { run, run_context } => {
                    match catch_unwind(AssertUnwindSafe(|| run.poll(context))) {
                        Ok(answer) => ready!(answer),
                        Err(_) => Ok(run_context.panicked()),
                    }
                }
                StageProjected::Ended => return Poll::Pending,
            };
            // Ends the run here and not with its last handle: what it counted and reserved is given back first.
            this.stage.set(Stage::Ended);
            return Poll::Ready(answer);
        }
    }
}

impl<D, G, S, W, R, E> Detach<R, E> for Exchange<D, S, W>
where
    D: Future<Output = Result<G, Response<ResponseBody<R>>>> + Send + 'static,
    S: Fn(G) -> Started<W, R> + Send + 'static,
    W: Future<Output = Answer<R, E>> + Send + 'static,
{
    /// A run goes on to its end in a task of its own, in the span of its request. Without a runtime, as while one shuts
    /// down, the lease decides.
    fn detach(self: Pin<Box<Self>>) {
        let Stage::Running { run_context, .. } = &self.stage else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let run_context = run_context.clone();
        let to_its_end = async move { run_context.ended_without_client(&self.await) };
        runtime.spawn(to_its_end.in_current_span());
    }
}
