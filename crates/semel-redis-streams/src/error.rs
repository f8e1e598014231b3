//! What a failure means, above all whether anything happened.

use redis::RedisError;
use semel::{Error, ErrorKind};

/// A request that failed. What that means depends on what was asked: see [`reading`](Self::reading) and
/// [`writing`](Self::writing).
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    /// The server's error code, if it was the server that refused.
    code: Option<String>,
    /// Whether the request was sent, so that the server may have acted on it.
    sent: bool,
}

impl Failure {
    /// There is no connection.
    pub(crate) fn unreached(error: &RedisError) -> Self {
        Self { what: format!("cannot connect to Redis: {error}"), code: None, sent: false }
    }

    /// The server refused, or its answer was lost.
    pub(crate) fn refused(error: &RedisError) -> Self {
        let code = error.code().map(str::to_owned);
        Self { what: format!("Redis did not answer as it should: {error}"), sent: code.is_none(), code }
    }

    /// No answer came in time.
    pub(crate) fn late() -> Self {
        Self { what: "Redis did not answer in time".to_owned(), code: None, sent: true }
    }

    /// The answer could not be parsed.
    pub(crate) fn nonsense(what: &str) -> Self {
        Self { what: format!("Redis answered otherwise than it should: {what}"), code: None, sent: true }
    }

    /// The server's error code.
    pub(crate) fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// The error of a request that can be repeated.
    pub(crate) fn reading(self) -> Error {
        match self.code() {
            Some("WRONGTYPE") => Error::new(
                ErrorKind::Invalid,
                format!("{}; the key holds no stream: name another", self.what),
            ),
            _ => Error::new(ErrorKind::Unavailable, format!("{}; ask again later", self.what)),
        }
    }

    /// The error of a request that changes something.
    pub(crate) fn writing(self) -> Error {
        if self.sent {
            let message = format!("{}; what was asked may or may not have happened: ask again", self.what);
            return Error::new(ErrorKind::Unknown, message);
        }
        self.reading()
    }
}
