//! What is noted of each request of a claim server: a line in the access log at its end. Handlers note what they find out.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body as AxumBody;
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use http_body::{Body, Frame, SizeHint};
use semel::RecordId;
use semel_listen::OneInFlight;
use semel_ops::access_log::{AccessLine, AccessLogWriter};
use tokio::time::Instant;

use crate::access::Caller;
use crate::monitoring::DecisionKind;

tokio::task_local! {
    /// The request that is being answered, if there is a log.
    static ANSWERING: Arc<LoggedRequest>;
}

/// A request, and what handlers noted of it.
pub(super) struct LoggedRequest {
    log: Arc<AccessLogWriter>,
    method: Method,
    uri: Uri,
    peer: IpAddr,
    request_id: Option<Box<str>>,
    started_at: Instant,
    notes: Mutex<Notes>,
}

/// What handlers find out about the request that they answer.
#[derive(Default)]
struct Notes {
    caller: Option<Arc<Caller>>,
    about: About,
}

/// Which records a request is about.
#[derive(Clone, Copy, Default)]
enum About {
    #[default]
    None,
    One {
        key: RecordId,
        decision: Option<DecisionKind>,
    },
    /// A batch, or a list: a line names none of them.
    Many,
}

impl LoggedRequest {
    pub(super) fn new<B>(
        log: Arc<AccessLogWriter>,
        request: &Request<B>,
        peer: IpAddr,
        request_id: Option<&str>,
    ) -> Arc<Self> {
        Arc::new(Self {
            log,
            method: request.method().clone(),
            uri: request.uri().clone(),
            peer,
            request_id: request_id.map(Into::into),
            started_at: Instant::now(),
            notes: Mutex::default(),
        })
    }

    /// Answers the request, and lets handlers note what they find out meanwhile.
    pub(super) async fn noting<T>(self: Arc<Self>, answering: impl Future<Output = T>) -> T {
        ANSWERING.scope(self, answering).await
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, status: Option<StatusCode>, is_whole: bool) {
        let Notes { caller, about } = std::mem::take(&mut *self.notes());
        let (key, decision) = match about {
            About::One { key, decision } => (Some(key), decision),
            About::None | About::Many => (None, None),
        };
        let gone = status.is_none().then_some("gone");
        self.log.write(&AccessLine {
            peer: self.peer,
            method: self.method.as_str(),
            path: self.uri.path(),
            status: status.map(|status| status.as_u16()),
            decision: decision.map(DecisionKind::as_str).or(gone),
            code: None,
            key,
            token: caller.as_ref().map(|caller| (caller.name(), caller.role_word())),
            request_id: self.request_id.as_deref(),
            took: self.started_at.elapsed(),
            upstream_took: None,
            is_whole,
        });
    }
}

/// Notes whose token a request came with.
pub(crate) fn note_caller(caller: &Arc<Caller>) {
    // An error means that nothing is noted of this request.
    let _ = ANSWERING.try_with(|request| request.notes().caller = Some(Arc::clone(caller)));
}

/// Notes which record a request is about.
pub(crate) fn note_key(key: RecordId) {
    let _ = ANSWERING.try_with(|request| request.notes().about.join(key, None));
}

/// Notes what was decided about a record.
pub(crate) fn note_decision(decision: DecisionKind, key: RecordId) {
    let _ = ANSWERING.try_with(|request| request.notes().about.join(key, Some(decision)));
}

/// Whether anything is noted of the request that is being answered.
pub(crate) fn is_noting() -> bool {
    ANSWERING.try_with(|_| ()).is_ok()
}

impl About {
    fn join(&mut self, key: RecordId, decision: Option<DecisionKind>) {
        *self = match *self {
            Self::None => Self::One { key, decision },
            Self::One { key: known, decision: earlier } if known == key => {
                Self::One { key, decision: decision.or(earlier) }
            }
            Self::One { .. } | Self::Many => Self::Many,
        };
    }
}

/// The end of a request: dropped, its line is written.
pub(super) struct Entry {
    request: Option<Arc<LoggedRequest>>,
    status: Option<StatusCode>,
    is_whole: bool,
}

impl Entry {
    /// Nothing is written without a request.
    pub(super) fn new(request: Option<Arc<LoggedRequest>>) -> Self {
        Self { request, status: None, is_whole: false }
    }

    /// The head of the answer is known.
    pub(super) fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            request.write(self.status, self.is_whole);
        }
    }
}

/// The body of an answer, in flight and not yet logged until its last byte was handed over.
pub(super) struct LoggedBody {
    body: AxumBody,
    entry: Entry,
    _in_flight: Option<OneInFlight>,
}

impl LoggedBody {
    pub(super) fn new(body: AxumBody, mut entry: Entry, in_flight: Option<OneInFlight>) -> Self {
        entry.is_whole = body.is_end_stream();
        Self { body, entry, _in_flight: in_flight }
    }
}

impl Body for LoggedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(frame) = &polled {
            self.entry.is_whole =
                frame.is_none() || (self.body.is_end_stream() && matches!(frame, Some(Ok(_))));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> RecordId {
        semel::Key::new("charge", name).expect("is a key").id()
    }

    fn noted(notes: &[(RecordId, Option<DecisionKind>)]) -> Option<(RecordId, Option<DecisionKind>)> {
        let mut about = About::default();
        for (key, decision) in notes {
            about.join(*key, *decision);
        }
        match about {
            About::One { key, decision } => Some((key, decision)),
            About::None | About::Many => None,
        }
    }

    #[test]
    fn a_line_names_a_record_only_if_the_request_is_about_one() {
        let (one, other) = (key("1"), key("2"));
        let run = Some(DecisionKind::Run);
        assert_eq!(noted(&[]), None);
        assert_eq!(noted(&[(one, None)]), Some((one, None)));
        assert_eq!(noted(&[(one, None), (one, run)]), Some((one, run)));
        assert_eq!(noted(&[(one, run), (one, None)]), Some((one, run)));
        assert_eq!(noted(&[(one, run), (other, run)]), None);
        assert_eq!(noted(&[(one, run), (other, run), (one, run)]), None);
    }
}
