//! What went wrong between us and the server.

use redis::RedisError;
use semel::{Error, ErrorKind};

/// Something that went wrong, before anybody says what had been asked.
#[derive(Debug)]
pub(super) struct Trouble {
    what: String,
    /// The server's word for it, if it was the server who said so.
    code: Option<String>,
    /// Whether the question left us, so that it may have been heard.
    sent: bool,
}

impl Trouble {
    /// Nobody was reached.
    pub(super) fn unreached(error: &RedisError) -> Self {
        Self { what: format!("cannot connect to Redis: {error}"), code: None, sent: false }
    }

    /// The server said no, or nothing that was heard.
    pub(super) fn told(error: &RedisError) -> Self {
        let code = error.code().map(str::to_owned);
        Self { what: format!("Redis did not answer as it should: {error}"), sent: code.is_none(), code }
    }

    /// No answer came in time.
    pub(super) fn late() -> Self {
        Self { what: "Redis did not answer in time".to_owned(), code: None, sent: true }
    }

    /// The answer makes no sense.
    pub(super) fn nonsense(what: &str) -> Self {
        Self { what: format!("Redis answered otherwise than it should: {what}"), code: None, sent: true }
    }

    /// The server's word for it.
    pub(super) fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }

    /// After a question that changes nothing that cannot be asked for again.
    pub(super) fn reading(self) -> Error {
        match self.code() {
            Some("WRONGTYPE") => Error::new(
                ErrorKind::Invalid,
                format!("{}; the key holds no stream: name another", self.what),
            ),
            _ => Error::new(ErrorKind::Unavailable, format!("{}; ask again later", self.what)),
        }
    }

    /// After a question that changes something.
    pub(super) fn writing(self) -> Error {
        if self.sent {
            let message = format!("{}; what was asked may or may not have happened: ask again", self.what);
            return Error::new(ErrorKind::Unknown, message);
        }
        self.reading()
    }
}
