//! The one error type: what went wrong, and what the caller may do now.

use std::fmt;
use std::sync::Arc;

use crate::record::PermitId;

/// A result whose error is [`Error`], unless another is named.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller may do now. An expected answer (replay, busy, mismatch, held) is never an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input was refused and nothing happened. Mend what the message names.
    Invalid,
    /// The store did not answer and nothing happened. Ask again later.
    Unavailable,
    /// A reply was lost: what was asked may or may not have happened. Ask again with the same permit.
    Unknown,
    /// The permit is no longer this caller's: another run took over, or the record is gone. Do not
    /// report success.
    Lost,
    /// The store is at its bound and nothing happened. Sweep, raise the bound, or shorten retention.
    Full,
    /// A record cannot be read. Nothing was overwritten; look at it before anything else.
    Corrupt,
    /// A record was written by a newer release. Upgrade this process; nothing was overwritten.
    Newer,
}

/// An opaque error: [`kind`](Error::kind) says what to do next, the message says what went wrong.
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
    permit_id: Option<PermitId>,
    is_overdue: bool,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of this kind; the message should end with what to do next.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into().into(), permit_id: None, is_overdue: false, source: None }
    }

    /// The same error with the one below it attached.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// The same error with the permit id under which to ask again.
    #[must_use]
    pub fn with_permit_id(mut self, permit_id: PermitId) -> Self {
        self.permit_id = Some(permit_id);
        self
    }

    /// After `Unknown`: the permit id under which to ask again. A claim with it is granted the run that the lost one may
    /// have been granted.
    pub fn permit_id(&self) -> Option<PermitId> {
        self.permit_id
    }

    /// The same error of an ask that ended because its time was over: asking again at once would take as long.
    #[must_use]
    pub fn overdue(mut self) -> Self {
        self.is_overdue = true;
        self
    }

    /// Whether the ask ended because its time was over. The engine does not ask again by itself then.
    pub fn is_overdue(&self) -> bool {
        self.is_overdue
    }

    /// What the caller may do now.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn lost(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Lost, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)?;
        match &self.source {
            Some(source) => write!(f, " ({source})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_kind_message_and_source() {
        let below = std::io::Error::other("cable out");
        let error = Error::new(ErrorKind::Unavailable, "no answer; ask again").caused_by(below);
        assert_eq!(error.to_string(), "no answer; ask again");
        assert_eq!(format!("{error:?}"), "Unavailable: no answer; ask again (cable out)");
        assert!(std::error::Error::source(&error).is_some());
    }
}
