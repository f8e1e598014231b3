//! A stored response, answered again.

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use semel::clock::Timestamp;
use semel::{Error, Replay};

use crate::body::{ResponseBody, Whole};
use crate::budget::{NoRoom, Reserved};
use crate::decided::Decided;
use crate::problem::{Code, Problem};
use crate::profile::Names;
use crate::refusal::{SOON, overloaded};
use crate::reply::{Reply, Stored, stored};

/// Why a record that is done cannot be replayed.
pub(crate) enum Unanswerable {
    /// The first response was not kept; this was its status, if that is known.
    NotKept(Option<StatusCode>),
    /// The record cannot be read.
    Unreadable(Error),
    /// There is no room for it now.
    NoRoom(NoRoom),
}

/// The first response again.
pub(crate) fn replayed<R>(
    replay: &Replay,
    names: &Names,
    mut reserved: Reserved,
) -> Result<Response<ResponseBody<R>>, Unanswerable> {
    let Reply { status, headers, trailers, body } =
        match stored(replay.outcome()).map_err(Unanswerable::Unreadable)? {
            Stored::Whole(first) => *first,
            Stored::NotKept(status) => return Err(Unanswerable::NotKept(status)),
        };
    let length = body.len();
    reserved.take(length).map_err(Unanswerable::NoRoom)?;
    let whole = Whole { bytes: body, trailers, reserved };
    let mut response = Response::new(ResponseBody::whole(whole));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    if !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response.headers_mut().insert(names.replayed.clone(), HeaderValue::from_static("true"));
    tell_until(response.headers_mut(), names, replay.remembered_until());
    let decided = Decided { decision: "replay", code: None, key: Some(replay.record().key.id()) };
    response.extensions_mut().insert(decided);
    Ok(response)
}

/// Says until when a retry is safe. Whole seconds, rounded down: a second too early harms nobody.
pub(crate) fn tell_until(headers: &mut HeaderMap, names: &Names, until: Option<Timestamp>) {
    let (Some(name), Some(until)) = (&names.expires, until) else { return };
    let seconds = std::time::Duration::from_secs(until.as_micros() / 1_000_000);
    let Some(moment) = std::time::UNIX_EPOCH.checked_add(seconds) else { return };
    if let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(moment)) {
        headers.insert(name.clone(), date);
    }
}

impl Unanswerable {
    pub(crate) fn problem(self) -> Problem {
        match self {
            Self::NotKept(status) => {
                let problem = Problem::new(
                    Code::OutcomeNotKept,
                    "The first request was carried out and answered. Its answer was not kept, and it does not run again.",
                );
                match status {
                    Some(status) => problem.member("original_status", status.as_u16()),
                    None => problem,
                }
            }
            Self::NoRoom(full) => overloaded(full),
            Self::Unreadable(error) => {
                tracing::error!(%error, "semel: a kept response cannot be read");
                Problem::new(
                    Code::StoreUnavailable,
                    "The record of this key cannot be read. Nothing ran, and nothing was overwritten.",
                )
                .retry_after(SOON)
            }
        }
    }
}
