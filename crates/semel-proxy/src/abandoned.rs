//! Exchanges whose client left before the answer came. With HTTP/2 a client leaves by a reset, which costs it nothing: if the
//! connection to the upstream were closed with it, each reset would cost the upstream a new one. So the exchange goes on for a
//! moment without its client, and its connection is used again.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Response, Version};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::upstream::UpstreamBody;

/// How long an exchange may go on without its client.
const GOES_ON_FOR: Duration = Duration::from_secs(1);
/// How much of an abandoned answer is read. What is longer is cut off with its connection.
const BYTES_MAX: usize = 64 << 10;
/// How many exchanges may go on so at once. More are cut off at once, with their connections.
const AT_ONCE_MAX: usize = 256;

tokio::task_local! {
    /// There in the task of an exchange that goes on without its client.
    static WITHOUT_CLIENT: ();
}

/// Whether the exchange that is polled now has lost its client.
pub(super) fn is_without_client() -> bool {
    WITHOUT_CLIENT.try_with(|()| ()).is_ok()
}

/// How many exchanges may go on without their clients.
#[derive(Clone)]
pub(super) struct Abandoned(Arc<Semaphore>);

/// The place of one of them.
pub(super) struct Place {
    runtime: Handle,
    permit: OwnedSemaphorePermit,
}

/// An exchange with the upstream; dropped before its end, it goes on for a moment.
pub(super) struct Exchange {
    /// Gone once it has ended.
    future: Option<Pin<Box<dyn Future<Output = Response<UpstreamBody>> + Send>>>,
    /// What its client speaks. One of HTTP/1.1 leaves with its connection, and the upstream is to notice that at once.
    client: Version,
    /// Whether anything was done for it.
    has_begun: bool,
    abandoned: Abandoned,
}

impl Abandoned {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE_MAX)))
    }

    pub(super) fn exchange(
        &self,
        client: Version,
        future: impl Future<Output = Response<UpstreamBody>> + Send + 'static,
    ) -> Exchange {
        Exchange { future: Some(Box::pin(future)), client, has_begun: false, abandoned: self.clone() }
    }

    /// A place for one more exchange that goes on without its client, if there is one.
    pub(super) fn place(&self) -> Option<Place> {
        let runtime = Handle::try_current().ok()?;
        Arc::clone(&self.0).try_acquire_owned().ok().map(|permit| Place { runtime, permit })
    }
}

impl Place {
    /// Goes on with what a client left.
    pub(super) fn go_on(self, rest: impl Future<Output = UpstreamBody> + Send + 'static) {
        metrics::counter!(semel::metrics::UPSTREAM_ABANDONED.name).increment(1);
        self.runtime.spawn(WITHOUT_CLIENT.scope((), async move {
            // An error means that it took too long: its connection is closed.
            let _ = timeout(GOES_ON_FOR, async { discard(rest.await).await }).await;
            drop(self.permit);
        }));
    }
}

impl Future for Exchange {
    type Output = Result<Response<UpstreamBody>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.has_begun = true;
        let Some(future) = &mut self.future else { return Poll::Pending };
        let response = ready!(future.as_mut().poll(cx));
        self.future = None;
        Poll::Ready(Ok(response))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if let Some(future) = self.future.take().filter(|_| self.has_begun && self.client == Version::HTTP_2)
            && let Some(place) = self.abandoned.place()
        {
            place.go_on(async { future.await.into_body() });
        }
    }
}

/// Reads a body to its end, which gives its connection back, or up to a bound.
async fn discard(body: UpstreamBody) {
    let mut body = pin!(body);
    if body.size_hint().lower() > BYTES_MAX as u64 {
        return;
    }
    let mut read = 0_usize;
    while let Some(Ok(frame)) = body.frame().await {
        read = read.saturating_add(frame.data_ref().map_or(0, bytes::Bytes::len));
        if read > BYTES_MAX {
            return;
        }
    }
}
