//! Why a store takes no new claims, in words for the public: no address, and no message of a server.

use std::fmt;

use semel::{Error, ErrorKind};

/// Why a store takes no new claims now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotReady {
    /// A setting of its server breaks the promise, and the promise was demanded.
    Refused,
    /// It takes reads only: a standby, a replica, or a server that is set so.
    ReadOnly,
    /// Its disk or its memory is full.
    Full,
    /// Its server has no connection left.
    NoConnection,
    /// It did not answer in time.
    NoAnswer,
    /// Anything else; the error is in the log.
    Failed,
}

/// What servers say, in small letters, and what it means. By text, because drivers and servers have no code in common.
const SAID: [(&str, NotReady); 11] = [
    ("new claims are refused", NotReady::Refused),
    ("read-only", NotReady::ReadOnly),
    ("readonly", NotReady::ReadOnly),
    ("takes no writes", NotReady::ReadOnly),
    ("no space left", NotReady::Full),
    ("disk is full", NotReady::Full),
    (" oom ", NotReady::Full),
    ("too many clients", NotReady::NoConnection),
    ("connection slots", NotReady::NoConnection),
    ("too many connections", NotReady::NoConnection),
    ("max number of clients", NotReady::NoConnection),
];

impl NotReady {
    /// The cause of an error of [`Opened::ready`](super::Opened::ready).
    pub fn of(error: &Error) -> Self {
        if error.kind() == ErrorKind::Full {
            return Self::Full;
        }
        if error.is_overdue() {
            return Self::NoAnswer;
        }
        let text = error.to_string().to_lowercase();
        let found = SAID.iter().find(|(said, _)| text.contains(said));
        found.map_or(Self::Failed, |(_, cause)| *cause)
    }
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Refused => "a setting of its server breaks the promise; new claims are refused",
            Self::ReadOnly => "it is read-only; new claims fail",
            Self::Full => "it is full; new claims are refused",
            Self::NoConnection => "its server has no connection left; claims fail",
            Self::NoAnswer => "it does not answer in time",
            Self::Failed => "it answers with an error, which is in the log",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say_is_known_by_its_cause() {
        for (said, cause) in [
            ("PostgreSQL: cannot execute INSERT in a read-only transaction; ask", NotReady::ReadOnly),
            (
                "this PostgreSQL is a standby, which takes no writes; give the primary's URL",
                NotReady::ReadOnly,
            ),
            (
                "Redis at h:1 said READONLY You can't write against a read only replica.; ask",
                NotReady::ReadOnly,
            ),
            ("PostgreSQL: could not extend file: No space left on device; ask", NotReady::Full),
            ("Redis at h:1 said OOM command not allowed when used memory", NotReady::Full),
            ("PostgreSQL: sorry, too many clients already; ask", NotReady::NoConnection),
            ("PostgreSQL: remaining connection slots are reserved for", NotReady::NoConnection),
            ("Redis at h:1 said ERR max number of clients reached", NotReady::NoConnection),
            ("fsync is off on the store's server, so …, and new claims are refused; set", NotReady::Refused),
            ("the room is dark", NotReady::Failed),
        ] {
            assert_eq!(NotReady::of(&Error::new(ErrorKind::Unavailable, said)), cause, "{said}");
        }
        assert_eq!(NotReady::of(&Error::new(ErrorKind::Full, "at its bound")), NotReady::Full);
        assert_eq!(NotReady::of(&Error::new(ErrorKind::Unknown, "late").overdue()), NotReady::NoAnswer);
    }
}
