//! What a server's refusal, or its silence, means, in sentences that say what to do next.
//!
//! Errors of sockets are kept as text: one of kind `BrokenPipe` would be taken for a reader of standard output that went away.

use std::io;
use std::time::Duration;

use http::StatusCode;
use semel::{Error, ErrorKind, Result};
use semel_ops::store_url::ServerUrl;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::client::{Answered, Client};
use super::token::VARIABLE;

/// Where servers listen.
const WHERE: &str = "`semel serve` listens on port 4747, and the admin side of `semel proxy` on port 9464, unless they were started \
                     with others";

/// A refusal, as semel writes it.
#[derive(Deserialize)]
struct Written {
    code: String,
    detail: String,
}

/// What an answer says, or why it is refused.
pub(super) fn read<T: DeserializeOwned>(client: &Client, answered: &Answered, target: &str) -> Result<T> {
    let path = target.split('?').next().unwrap_or(target);
    match (answered.status, answered.media_type()) {
        (StatusCode::OK, "application/json") => serde_json::from_slice(&answered.body).map_err(|error| {
            let message = format!(
                "the answer of {} to {path} cannot be read: {error}; is it semel, and of the release of this command ({})?",
                client.url(),
                env!("CARGO_PKG_VERSION"),
            );
            Error::new(ErrorKind::Corrupt, message)
        }),
        (_, "application/problem+json") => match serde_json::from_slice(&answered.body) {
            Ok(problem) => Err(refusal(client, &problem, path)),
            Err(_) => Err(not_semel(client.url(), answered)),
        },
        _ => Err(not_semel(client.url(), answered)),
    }
}

fn refusal(client: &Client, Written { code, detail }: &Written, path: &str) -> Error {
    let (kind, message) = match (code.as_str(), client.token()) {
        ("unauthorized", None) => (
            ErrorKind::Invalid,
            format!(
                "the server wants a token; put it into {VARIABLE}, or into a file that --token-file names (`semel token new` makes \
                 tokens)"
            ),
        ),
        ("unauthorized", Some(token)) => (
            ErrorKind::Invalid,
            format!(
                "the server does not know the token in {}; is it this server's, and still in its file of tokens?",
                token.found_in()
            ),
        ),
        // Its other paths are as old as the API.
        ("not_found", _) if path.starts_with("/v1/store") => (
            ErrorKind::Invalid,
            format!(
                "the server is of an older release, which cannot be looked into from elsewhere; upgrade it to the release of this \
                 command ({})",
                env!("CARGO_PKG_VERSION")
            ),
        ),
        ("unavailable", _) => (ErrorKind::Unavailable, said(detail)),
        ("unknown", _) => (ErrorKind::Unknown, said(detail)),
        ("full", _) => (ErrorKind::Full, said(detail)),
        ("corrupt", _) => (ErrorKind::Corrupt, said(detail)),
        _ => (ErrorKind::Invalid, said(detail)),
    };
    Error::new(kind, message)
}

fn said(detail: &str) -> String {
    format!("the server refused: {detail}")
}

fn not_semel(url: &ServerUrl, answered: &Answered) -> Error {
    let (status, media_type) = (answered.status.as_u16(), answered.media_type());
    let with = if media_type.is_empty() { String::new() } else { format!(" with {media_type}") };
    let message = format!("what answers at {url} is not a semel server: it answered {status}{with}; {WHERE}");
    Error::new(ErrorKind::Invalid, message)
}

/// There is no connection.
pub(super) fn unreachable(url: &ServerUrl, within: Duration, error: &io::Error) -> Error {
    let place = format!("{}:{}", url.host(), url.port());
    let tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
    let message = match (error.kind(), tls) {
        (_, Some(rustls::Error::InvalidCertificate(why))) => format!(
            "the certificate of {place} is not trusted: {why}; if its authority is your own, name its certificate with --ca-file"
        ),
        (_, Some(why)) => {
            format!("{place} does not speak TLS as expected: {why}; is it http:// and not https://?")
        }
        (io::ErrorKind::ConnectionRefused, None) => format!("nothing listens at {place}; {WHERE}"),
        (io::ErrorKind::TimedOut, None) => format!(
            "no connection to {place} within {}s; check the host, the port, and what is between here and there",
            within.as_secs()
        ),
        _ => format!("no connection to {place}: {error}; check the URL"),
    };
    Error::new(ErrorKind::Unavailable, message)
}

/// Nothing was answered to what changes nothing.
pub(super) fn no_answer(url: &ServerUrl, why: &str) -> Error {
    let other = if url.is_secured() { "http://" } else { "https://" };
    let message =
        format!("{url} gave no HTTP answer ({why}); try again, or {other} if that is what it speaks");
    Error::new(ErrorKind::Unavailable, message)
}

/// Nothing was answered to what changes something.
pub(super) fn unknown(url: &ServerUrl, why: &str, find_out: &str) -> Error {
    let message = format!(
        "the answer of {url} was lost ({why}), so it is not known whether this was done; find out with `{find_out}`, then try again"
    );
    Error::new(ErrorKind::Unknown, message)
}
