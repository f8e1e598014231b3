//! A request goes out once, and what is known of it afterwards.

use std::error::Error as _;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::header::{HeaderValue, TRANSFER_ENCODING};
use http::uri::Scheme;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use semel::Error;

use super::Sent;
use super::body::UpstreamBody;
use super::dial::{Dial, to_upstream};
use super::http1::{Link, Pool};
use super::http2::Multiplexed;
use super::outgoing::Patience;
use super::response_head::{Reuse, normalize};
use crate::abandoned::{Abandoned, is_without_client};
use crate::settings::{ProxySettings, UpstreamVersion};

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

/// What is known of a request once its exchange is over.
pub(super) enum Exchanged {
    /// The head of an answer came.
    Answered(Response<Incoming>),
    /// Not one byte was written: it may go out on another connection.
    NeverLeft(Box<Request<Sent>>),
    /// It was written, and the upstream says that it did nothing with it.
    Refused(hyper::Error),
    /// It was written, at least in part, and no answer came.
    Lost(hyper::Error),
    /// It was written, at least in part, and no answer came in time.
    TooSlow,
    /// It was written, at least in part, and its client left.
    Abandoned,
}

impl From<Result<Response<Incoming>, TrySendError<Request<Sent>>>> for Exchanged {
    fn from(answer: Result<Response<Incoming>, TrySendError<Request<Sent>>>) -> Self {
        match answer {
            Ok(response) => Self::Answered(response),
            Err(mut error) => match error.take_message() {
                Some(request) => Self::NeverLeft(Box::new(request)),
                None if never_processed(error.error()) => Self::Refused(error.into_error()),
                None => Self::Lost(error.into_error()),
            },
        }
    }
}

/// Whether the upstream itself says that nothing ran (RFC 9113, 8.7): it refused the stream, or went away with a last stream
/// before it. h2 ends other streams of a connection that went away with an error of their own.
fn never_processed(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| {
        let is_refused = cause.is_reset() && cause.reason() == Some(h2::Reason::REFUSED_STREAM);
        cause.is_remote() && (is_refused || cause.is_go_away())
    })
}

/// Why there is no answer.
pub(crate) enum Failure {
    /// The request never left.
    Unreachable(io::Error),
    /// The request left, and the upstream says that it did nothing with it.
    Refused(hyper::Error),
    /// The request left, and nobody knows what came of it.
    Lost(hyper::Error),
    /// The request left, and its answer did not come in time.
    TooSlow(Duration),
    /// The client did not send all of it.
    Incomplete,
    /// The client left; the answer is not awaited.
    Abandoned,
    /// The upstream speaks something else now, which nobody asked for.
    Switched,
    /// An answer came that can be read in two ways, or in none: what is wrong with it.
    Malformed(&'static str),
}

impl Failure {
    /// One word, for those who count.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Refused(_) => "refused",
            Self::Lost(_) => "lost",
            Self::TooSlow(_) => "too_slow",
            Self::Incomplete => "incomplete",
            Self::Abandoned => "abandoned",
            Self::Switched => "switched",
            Self::Malformed(_) => "malformed",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => {
                write!(f, "There is no connection to the upstream ({error}). Nothing was sent; try again.")
            }
            Self::Refused(error) => {
                write!(f, "The upstream refused the request and did nothing with it ({error}). Try again.")
            }
            Self::Lost(error) => {
                write!(f, "The request was sent, and the connection ended before its answer came ({error}).")
            }
            Self::TooSlow(span) => write!(f, "The request was sent, and no answer came within {span:?}."),
            Self::Incomplete => {
                f.write_str("The request's body ended early, or did not come in time. Send it again.")
            }
            Self::Abandoned => f.write_str("The client left before its answer came."),
            Self::Switched => f.write_str("The upstream changed the protocol without being asked."),
            Self::Malformed(what) => {
                write!(f, "The request was sent, and its answer {what}, so that it cannot be passed on.")
            }
        }
    }
}

impl Upstream {
    pub(crate) fn new(settings: &ProxySettings, abandoned: Abandoned) -> Result<Self, Error> {
        let tls = (settings.upstream.scheme() == Some(&Scheme::HTTPS)).then(|| to_upstream(settings));
        let limits = &settings.upstream_limits;
        let lines = match settings.upstream_version {
            UpstreamVersion::Http1 => {
                Lines::Http1(Arc::new(Pool::new(limits.idle_max, limits.idle, abandoned)))
            }
            UpstreamVersion::Http2 => Lines::Http2(Multiplexed::default()),
        };
        let dial = Dial::new(&settings.upstream, tls.transpose()?, limits.connect)?;
        let body_idle = settings.listener.timeouts.body_idle;
        Ok(Self { dial, lines, response_timeout: limits.response, body_idle })
    }

    /// Closes idle connections that are past their time.
    pub(crate) fn tidy(&self) {
        match &self.lines {
            Lines::Http1(pool) => pool.tidy(),
            Lines::Http2(_) => {}
        }
    }

    /// Sends a request once. It may try several connections, for as long as not one byte of it was written.
    pub(crate) async fn send(&self, mut request: Request<Sent>) -> Result<Response<UpstreamBody>, Failure> {
        if matches!(self.lines, Lines::Http1(_)) {
            announce_length(&mut request);
        }
        let progress = request.body().progress();
        let is_head = request.method() == Method::HEAD;
        for tries in 0_u32.. {
            let patience = Patience::new(self.response_timeout, progress.clone());
            let (exchanged, is_last, link) = match &self.lines {
                Lines::Http1(pool) => {
                    let idle = if tries < IDLE_TRIES_MAX { pool.take() } else { None };
                    let is_fresh = idle.is_none();
                    let mut link = match idle {
                        Some(link) => link,
                        None => self.connect().await.map_err(Failure::Unreachable)?,
                    };
                    if is_without_client() {
                        pool.put(link);
                        return Err(Failure::Abandoned);
                    }
                    (link.exchange(request, patience).await, is_fresh, Some((link, pool)))
                }
                Lines::Http2(shared) => {
                    let mut connection = shared.connected(&self.dial).await.map_err(Failure::Unreachable)?;
                    if is_without_client() {
                        return Err(Failure::Abandoned);
                    }
                    let exchanged = connection.exchange(request, patience).await;
                    if matches!(exchanged, Exchanged::TooSlow) {
                        shared.retire(&connection).await;
                    }
                    // The second connection is for a request that never left on the first.
                    (exchanged, tries > 0, None)
                }
            };
            match exchanged {
                Exchanged::Answered(response) => return self.answered(response, is_head, link).await,
                Exchanged::NeverLeft(_) if is_last => break,
                Exchanged::NeverLeft(back) => request = *back,
                Exchanged::Refused(error) => return Err(Failure::Refused(error)),
                Exchanged::Lost(_) if progress.as_ref().is_some_and(|progress| progress.failed()) => {
                    return Err(Failure::Incomplete);
                }
                Exchanged::Lost(error) => return Err(Failure::Lost(error)),
                Exchanged::Abandoned => return Err(Failure::Abandoned),
                Exchanged::TooSlow => return Err(Failure::TooSlow(self.response_timeout)),
            }
        }
        let message = "the connection was closed before anything was sent";
        Err(Failure::Unreachable(io::Error::new(io::ErrorKind::ConnectionReset, message)))
    }

    async fn connect(&self) -> io::Result<Link> {
        Link::new(self.dial.dial().await?).await.map_err(io::Error::other)
    }

    async fn answered(
        &self,
        response: Response<Incoming>,
        is_head: bool,
        link: Option<(Link, &Arc<Pool>)>,
    ) -> Result<Response<UpstreamBody>, Failure> {
        let (mut head, incoming) = response.into_parts();
        let reuse =
            normalize(&mut head, is_head, incoming.size_hint().exact()).map_err(Failure::Malformed)?;
        let has_no_body = is_head || matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let body = match link {
            // hyper reads none of HTTP/1.1 there; with HTTP/2 what comes all the same is reset.
            None if has_no_body => UpstreamBody::empty(),
            None => UpstreamBody::http2(incoming, self.body_idle),
            Some((link, pool)) if !incoming.is_end_stream() => {
                let pool = (reuse == Reuse::Allowed).then(|| Arc::clone(pool));
                UpstreamBody::http1(incoming, link, pool, self.body_idle)
            }
            Some((mut link, pool)) => {
                // Nobody would poll a body that has ended, so its connection is given back here.
                if reuse == Reuse::Allowed && poll_fn(|cx| Poll::Ready(link.is_reusable(cx))).await {
                    pool.put(link);
                }
                UpstreamBody::empty()
            }
        };
        Ok(Response::from_parts(head, body))
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
