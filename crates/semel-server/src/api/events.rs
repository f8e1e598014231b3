//! What happens now, told as it happens: server-sent events.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http_body_util::channel::{Channel, Sender};
use semel::Key;
use serde::Serialize;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{MissedTickBehavior, interval};

use super::ask::{Query, admit};
#[cfg(feature = "openapi")]
use super::openapi::Looked;
use super::problem::{Code, Problem};
use super::stats::{CensusView, Decisions};
use crate::access::{Authenticated, Caller, Need};
use crate::monitoring::{Sample, Seen};
use crate::state::AppState;
use semel_ops::record_json::Id;

/// How often something is said although nothing happened, so that both sides know of each other.
const COMMENT_EVERY: Duration = Duration::from_secs(15);
/// How many pieces a slow listener may be behind before others have to wait for it, and it begins to miss some.
const PIECES_MAX: usize = 16;
/// How many bytes of decisions are told in one piece.
const PIECE_BYTES: usize = 16 << 10;

/// Who listens.
pub(super) struct Listener(Authenticated);

impl FromRequestParts<Arc<AppState>> for Listener {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, served: &Arc<AppState>) -> Result<Self, Problem> {
        Authenticated::looking(served, &parts.headers).map(Self)
    }
}

/// Hear of decisions as they are made
///
/// Server-sent events: `decision` (within the token's scope), `rates` each second (for a token without a scope), `census`
/// when records were counted anew, `missed` if the listener was too slow. A comment comes every 15 seconds. It ends when
/// the server stops; listen again then.
#[cfg_attr(feature = "openapi", utoipa::path(get, path = "/v1/events", tag = "look", operation_id = "events",
    responses((status = 200, description = "Events until the end.", body = String,
        content_type = "text/event-stream",
        example = "event: decision\ndata: {\"decision\":\"run\",\"id\":\"9f86…\",\"scope\":[\"acme\"],\"operation\":\"charge\",\"name\":\"order-1042\",\"attempt\":1}\n\n"),
        Looked)))]
pub(super) async fn events(
    State(served): State<Arc<AppState>>,
    Listener(asker): Listener,
    query: Query,
) -> Result<Response, Problem> {
    admit(&asker, Need::List, 1)?;
    query.end()?;
    let Some(place) = served.api.listen() else {
        return Err(Problem::new(
            Code::Unavailable,
            "too many listen already; ask again later, or of another server",
        ));
    };
    let (sender, body) = Channel::new(PIECES_MAX);
    let told = Told::new(served, asker.0, sender);
    tokio::spawn(async move {
        told.tell().await;
        drop(place);
    });
    let mut response = Body::new(body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// One listener.
struct Told {
    served: Arc<AppState>,
    caller: Arc<Caller>,
    decisions: Receiver<Arc<Seen>>,
    sender: Sender<Bytes>,
}

impl Told {
    fn new(served: Arc<AppState>, caller: Arc<Caller>, sender: Sender<Bytes>) -> Self {
        let decisions = served.live.listen();
        Self { served, caller, decisions, sender }
    }

    /// Tells until the listener or the server is gone.
    async fn tell(mut self) {
        let served = Arc::clone(&self.served);
        let (mut rates, mut walks) = (served.rates.last_second(), served.census.walks());
        let mut comments = interval(COMMENT_EVERY);
        comments.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut draining = std::pin::pin!(served.waits.draining());
        let is_everywhere = self.caller.scope().is_empty();
        loop {
            let text = tokio::select! {
                () = &mut draining => return,
                seen = self.decisions.recv() => match seen {
                    Ok(seen) => self.decided(&seen),
                    Err(RecvError::Lagged(count)) => self.missed(count),
                    Err(RecvError::Closed) => return,
                },
                Ok(()) = rates.changed(), if is_everywhere => rated(*rates.borrow_and_update()),
                Ok(()) = walks.changed() => self.counted(),
                _ = comments.tick() => ":\n\n".to_owned(),
            };
            if text.is_empty() {
                continue;
            }
            tokio::select! {
                () = &mut draining => return,
                sent = self.sender.send_data(text.into()) => {
                    if sent.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// This decision, and those that were made meanwhile.
    fn decided(&mut self, first: &Seen) -> String {
        let mut text = String::new();
        self.add(&mut text, first);
        while text.len() < PIECE_BYTES {
            match self.decisions.try_recv() {
                Ok(seen) => self.add(&mut text, &seen),
                Err(TryRecvError::Lagged(count)) => text.push_str(&self.missed(count)),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        text
    }

    fn add(&self, text: &mut String, seen: &Seen) {
        if self.caller.reaches(&seen.key) {
            event(text, "decision", &Decided::of(seen));
        }
    }

    /// How many were missed is told only to those who would have heard of all.
    fn missed(&self, count: u64) -> String {
        let count = self.caller.scope().is_empty().then_some(count);
        one("missed", &Missed { count })
    }

    fn counted(&self) -> String {
        one("census", &CensusView::from(&*self.served.census.latest(self.caller.scope())))
    }
}

fn rated(sample: Sample) -> String {
    one("rates", &Rated { at: sample.at, decisions: sample.decisions.into() })
}

#[derive(Serialize)]
struct Decided<'a> {
    decision: &'static str,
    id: Id,
    scope: Vec<&'a str>,
    operation: &'a str,
    name: &'a str,
    attempt: Option<u32>,
}

impl<'a> Decided<'a> {
    fn of(seen: &'a Seen) -> Self {
        let key: &'a Key = &seen.key;
        Self {
            decision: seen.decision.as_str(),
            id: Id(key.id()),
            scope: key.scope().collect(),
            operation: key.operation(),
            name: key.name(),
            attempt: seen.attempt,
        }
    }
}

#[derive(Serialize)]
struct Missed {
    count: Option<u64>,
}

#[derive(Serialize)]
struct Rated {
    /// In seconds since 1970.
    at: u64,
    #[serde(flatten)]
    decisions: Decisions,
}

fn one(name: &str, data: &impl Serialize) -> String {
    let mut text = String::new();
    event(&mut text, name, data);
    text
}

/// JSON as `serde_json` writes it has no line ends: whatever is in a key, it cannot begin another event.
fn event(text: &mut String, name: &str, data: &impl Serialize) {
    if let Ok(json) = serde_json::to_string(data) {
        // Writing to a string cannot fail.
        let _ = write!(text, "event: {name}\ndata: {json}\n\n");
    }
}
