//! A request goes out once, and what is known of it afterwards.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::header::{HeaderValue, TRANSFER_ENCODING};
use http::uri::Scheme;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use semel::Error;

use super::Sent;
use super::body::UpstreamBody;
use super::dial::Dial;
use super::link::{Exchanged, Link};
use super::multiplexed::{self, Multiplexed};
use super::patience::Patience;
use super::pool::Pool;
use crate::settings::{ProxySettings, Timeouts, UpstreamVersion};
use crate::tls;

/// How many idle connections may turn out to be closed before a new one is made.
const IDLE_TRIES_MAX: u32 = 3;

/// The service behind the proxy.
pub(crate) struct Upstream {
    dial: Dial,
    lines: Lines,
    response_timeout: Duration,
    body_idle: Duration,
}

enum Lines {
    Http1(Arc<Pool>),
    Http2(Multiplexed),
}

/// Why there is no answer.
pub(crate) enum Failure {
    /// The request never left.
    Unreachable(io::Error),
    /// The request left, and nobody knows what came of it.
    Lost(hyper::Error),
    /// The request left, and its answer did not come in time.
    TooSlow(Duration),
    /// The client did not send all of it.
    Incomplete,
    /// The upstream speaks something else now, which nobody asked for.
    Switched,
}

impl Failure {
    /// One word, for those who count.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Lost(_) => "lost",
            Self::TooSlow(_) => "too_slow",
            Self::Incomplete => "incomplete",
            Self::Switched => "switched",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => {
                write!(f, "There is no connection to the upstream ({error}). Nothing was sent; try again.")
            }
            Self::Lost(error) => {
                write!(f, "The request was sent, and the connection ended before its answer came ({error}).")
            }
            Self::TooSlow(span) => write!(f, "The request was sent, and no answer came within {span:?}."),
            Self::Incomplete => {
                f.write_str("The request's body ended early, or did not come in time. Send it again.")
            }
            Self::Switched => f.write_str("The upstream changed the protocol without being asked."),
        }
    }
}

impl Upstream {
    pub(crate) fn new(settings: &ProxySettings) -> Result<Self, Error> {
        let tls = (settings.upstream.scheme() == Some(&Scheme::HTTPS)).then(|| tls::to_upstream(settings));
        let Timeouts { connect, response, body_idle, upstream_idle, .. } = settings.timeouts;
        let lines = match settings.upstream_version {
            UpstreamVersion::Http1 => {
                Lines::Http1(Arc::new(Pool::new(settings.bounds.upstream_idle_max, upstream_idle)))
            }
            UpstreamVersion::Http2 => Lines::Http2(Multiplexed::default()),
        };
        let dial = Dial::new(&settings.upstream, tls.transpose()?, connect)?;
        Ok(Self { dial, lines, response_timeout: response, body_idle })
    }

    /// Closes idle connections that are past their time.
    pub(crate) fn tidy(&self) {
        match &self.lines {
            Lines::Http1(pool) => pool.tidy(),
            Lines::Http2(_) => {}
        }
    }

    /// Sends a request once. It may try several connections, for as long as not one byte of it was written.
    pub(crate) async fn send(&self, request: Request<Sent>) -> Result<Response<UpstreamBody>, Failure> {
        match &self.lines {
            Lines::Http1(pool) => self.send_http1(pool, request).await,
            Lines::Http2(shared) => self.send_http2(shared, request).await,
        }
    }

    async fn send_http1(
        &self,
        pool: &Arc<Pool>,
        mut request: Request<Sent>,
    ) -> Result<Response<UpstreamBody>, Failure> {
        announce_length(&mut request);
        let progress = request.body().progress();
        for tries in 0_u32.. {
            let idle = if tries < IDLE_TRIES_MAX { pool.take() } else { None };
            let is_fresh = idle.is_none();
            let mut link = match idle {
                Some(link) => link,
                None => self.connect().await.map_err(Failure::Unreachable)?,
            };
            let patience = Patience::new(self.response_timeout, progress.clone());
            match link.exchange(request, patience).await {
                Exchanged::Answered(response) => return Ok(self.answered(response, link, pool).await),
                Exchanged::NeverLeft(_) if is_fresh => return Err(Failure::Unreachable(closed_at_once())),
                Exchanged::NeverLeft(back) => request = *back,
                Exchanged::Lost(_) if progress.as_ref().is_some_and(|progress| progress.failed()) => {
                    return Err(Failure::Incomplete);
                }
                Exchanged::Lost(error) => return Err(Failure::Lost(error)),
                Exchanged::TooSlow => return Err(Failure::TooSlow(self.response_timeout)),
            }
        }
        Err(Failure::Unreachable(closed_at_once()))
    }

    async fn connect(&self) -> io::Result<Link> {
        let dialled = self.dial.dial().await?;
        metrics::counter!("semel_http_upstream_connects_total").increment(1);
        Link::new(dialled).await.map_err(io::Error::other)
    }

    async fn answered(
        &self,
        response: Response<Incoming>,
        mut link: Link,
        pool: &Arc<Pool>,
    ) -> Response<UpstreamBody> {
        let (parts, incoming) = response.into_parts();
        if !incoming.is_end_stream() {
            let body = UpstreamBody::http1(incoming, link, Arc::clone(pool), self.body_idle);
            return Response::from_parts(parts, body);
        }
        // Nobody would poll a body that has ended, so its connection is given back here.
        if poll_fn(|cx| Poll::Ready(link.is_reusable(cx))).await {
            pool.put(link);
        }
        Response::from_parts(parts, UpstreamBody::empty())
    }

    async fn send_http2(
        &self,
        shared: &Multiplexed,
        mut request: Request<Sent>,
    ) -> Result<Response<UpstreamBody>, Failure> {
        let progress = request.body().progress();
        // The second connection is for a request that never left on the first.
        for _ in 0..2 {
            let mut sender = shared.connected(&self.dial).await.map_err(Failure::Unreachable)?;
            let patience = Patience::new(self.response_timeout, progress.clone());
            match multiplexed::exchange(&mut sender, request, patience).await {
                Exchanged::Answered(response) => {
                    return Ok(response.map(|incoming| UpstreamBody::http2(incoming, self.body_idle)));
                }
                Exchanged::NeverLeft(back) => request = *back,
                Exchanged::Lost(_) if progress.as_ref().is_some_and(|progress| progress.failed()) => {
                    return Err(Failure::Incomplete);
                }
                Exchanged::Lost(error) => return Err(Failure::Lost(error)),
                Exchanged::TooSlow => return Err(Failure::TooSlow(self.response_timeout)),
            }
        }
        Err(Failure::Unreachable(closed_at_once()))
    }
}

/// Says how a body of unknown length is sent. Left to itself, the client drops such a body from a method that seldom
/// has one, and the upstream would see another request than ours.
fn announce_length(request: &mut Request<Sent>) {
    let body = request.body();
    if !body.is_end_stream() && body.size_hint().exact().is_none() {
        request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

fn closed_at_once() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the connection was closed before anything was sent")
}
