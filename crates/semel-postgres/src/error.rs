//! What a failure of the server or of the way to it means to the caller.

use std::time::Duration;

use semel::{Error, ErrorKind};
use tokio_postgres::error::SqlState;

/// Whether a statement was on its way when something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Nothing had left this process.
    No,
    /// The server may have carried it out.
    Perhaps,
}

/// Why an ask of a session failed.
pub(crate) enum AskFailure {
    Driver(tokio_postgres::Error),
    /// It is committed on this server, and the wait for its standby was cancelled.
    Unreplicated,
}

impl From<tokio_postgres::Error> for AskFailure {
    fn from(failed: tokio_postgres::Error) -> Self {
        Self::Driver(failed)
    }
}

impl From<AskFailure> for Error {
    fn from(failure: AskFailure) -> Self {
        match failure {
            AskFailure::Driver(failed) => error(failed, Sent::Perhaps),
            AskFailure::Unreplicated => Self::new(
                ErrorKind::Unknown,
                "PostgreSQL stopped waiting for its synchronous standby: this is written on the primary, and perhaps not on \
                 the standby; ask again with the same permit",
            ),
        }
    }
}

/// The error of an ask that got no reply in time. Of one that changes nothing, nothing is unknown.
pub(crate) fn no_reply(within: Duration, writes: bool) -> Error {
    let kind = if writes { ErrorKind::Unknown } else { ErrorKind::Unavailable };
    Error::new(
        kind,
        format!(
            "PostgreSQL did not reply within {within:?}; ask again with the same permit, and see whether the server and its \
             standby can be reached"
        ),
    )
    .overdue()
}

/// What a failure of the driver means.
pub(crate) fn error(failed: tokio_postgres::Error, sent: Sent) -> Error {
    let (kind, advice) = match failed.code() {
        Some(code) => match meaning(code) {
            (ErrorKind::Unknown, _) if sent == Sent::No => {
                (ErrorKind::Unavailable, "nothing was asked; ask again")
            }
            meaning => meaning,
        },
        // No answer from the server: the connection broke.
        None if sent == Sent::Perhaps => (ErrorKind::Unknown, "ask again with the same permit"),
        None => {
            (ErrorKind::Unavailable, "check that the server runs and that the URL is right, then ask again")
        }
    };
    let said = failed.as_db_error().map_or_else(|| failed.to_string(), |error| error.message().to_owned());
    Error::new(kind, format!("PostgreSQL: {said}; {advice}")).caused_by(failed)
}

/// What the server's own word means. It undid the statement before it said so, with one exception: a session that is
/// being ended may have committed and not come to say it.
fn meaning(code: &SqlState) -> (ErrorKind, &'static str) {
    if is_ended_session(code) {
        return (ErrorKind::Unknown, "the server ended the session; ask again with the same permit");
    }
    match code.code() {
        "42P01" | "42703" | "3F000" => {
            (ErrorKind::Invalid, "the schema is missing or older than this release; run `semel migrate`")
        }
        "42501" => (ErrorKind::Invalid, "run `semel check`, which names the rights to grant"),
        "25006" => (ErrorKind::Unavailable, "this server takes no writes; ask the primary"),
        "28P01" | "28000" => (ErrorKind::Invalid, "check the user, the password and pg_hba.conf"),
        "3D000" => (ErrorKind::Invalid, "create the database, or name another in the URL"),
        "53300" => (
            ErrorKind::Unavailable,
            "the server has no free connection: raise max_connections, or close others",
        ),
        "53100" => (ErrorKind::Unavailable, "the server's disk is full: make room, then ask again"),
        other if other.starts_with("22") || other.starts_with("23") => {
            (ErrorKind::Invalid, "the server refused the values; nothing was written")
        }
        _ => (ErrorKind::Unavailable, "nothing was written; ask again"),
    }
}

fn is_ended_session(code: &SqlState) -> bool {
    [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::QUERY_CANCELED,
        SqlState::IDLE_SESSION_TIMEOUT,
    ]
    .contains(code)
        || code.code().starts_with("08")
}

/// Whether the server undid the statement only because of others' locks: asking again is all there is to do.
pub(crate) fn is_entangled(failed: &tokio_postgres::Error) -> bool {
    failed.code().is_some_and(|code| {
        [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE, SqlState::LOCK_NOT_AVAILABLE]
            .contains(code)
    })
}

/// Whether the session is of no more use: it is over, or on a server that takes no writes.
pub(crate) fn ends_session(failed: &tokio_postgres::Error) -> bool {
    failed.is_closed()
        || failed
            .code()
            .is_none_or(|code| is_ended_session(code) || *code == SqlState::READ_ONLY_SQL_TRANSACTION)
}

/// A record that cannot be read.
#[cold]
pub(crate) fn corrupt(what: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("a row of semel_records cannot be read: {what}; look at it with psql"),
    )
}

/// A choice or a setting that is refused.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
