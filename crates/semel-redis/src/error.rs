//! What went wrong, and above all whether anything can have happened.
//!
//! | what | what it means |
//! |---|---|
//! | could not connect, or log in | nothing was sent: nothing happened |
//! | `NOSCRIPT` | the server does not have the script: nothing happened; it is given it, and asked again |
//! | `MOVED`, `ASK` | another server of the cluster has the key: nothing happened; that one is asked |
//! | `TRYAGAIN` | the key is on its way to another server: nothing happened; asked again in a moment |
//! | `READONLY`, `MASTERDOWN`, `LOADING`, `CLUSTERDOWN` | no master, or not yet: nothing happened; whoever is the master now is asked, if there is another |
//! | `OOM` | the memory is full: nothing happened; kind `Full` |
//! | `MISCONF`, `NOREPLICAS`, `BUSY`, `NOAUTH` | refused before the first write: nothing happened |
//! | any other error of a script | it may have written already: unknown |
//! | connection lost, no reply in time, a reply that makes no sense | it may have run: unknown |
//!
//! A script that writes nothing before its first write is refused makes these errors certain: memory, role and disk are
//! judged once a script, before its first write.

use redis::{RedisError, ServerError};
use semel::{Error, ErrorKind};

use crate::config::Address;

/// What a server answered, or what went wrong.
pub(crate) type ServerResult<T> = std::result::Result<T, Failure>;

/// Something that went wrong between us and a server.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) happened: Happened,
    pub(crate) remedy: Remedy,
    kind: ErrorKind,
    what: String,
    lacks_rights: bool,
}

/// Whether what was asked can have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Nothing,
    Unknown,
}

/// What may be tried before anybody hears of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    None,
    /// Give the server the scripts.
    LoadScripts,
    /// Look where the masters are.
    Look,
    /// Connect again, and look where the masters are.
    Reconnect,
    /// Ask in a moment.
    Wait,
    /// Another server has the key.
    Moved,
    /// Another server has the key, this once.
    Ask(Address),
}

impl Failure {
    /// Nobody was reached.
    pub(crate) fn unreached(address: &Address, error: &RedisError) -> Self {
        let what = format!("cannot connect to Redis at {address}: {error}");
        Self {
            happened: Happened::Nothing,
            remedy: Remedy::Look,
            kind: ErrorKind::Unavailable,
            what,
            lacks_rights: false,
        }
    }

    /// The answer was lost after the question was sent.
    pub(crate) fn lost(address: &Address, error: &RedisError) -> Self {
        let what = format!("the reply of Redis at {address} was lost: {error}");
        Self {
            happened: Happened::Unknown,
            remedy: Remedy::Reconnect,
            kind: ErrorKind::Unknown,
            what,
            lacks_rights: false,
        }
    }

    /// The server said no.
    pub(crate) fn refused(address: &Address, error: &ServerError) -> Self {
        let (happened, remedy, kind) = match error.code() {
            "NOSCRIPT" => (Happened::Nothing, Remedy::LoadScripts, ErrorKind::Unavailable),
            "MOVED" => (Happened::Nothing, Remedy::Moved, ErrorKind::Unavailable),
            "ASK" => {
                let remedy = redirection(address, error).map_or(Remedy::Look, Remedy::Ask);
                (Happened::Nothing, remedy, ErrorKind::Unavailable)
            }
            "TRYAGAIN" => (Happened::Nothing, Remedy::Wait, ErrorKind::Unavailable),
            "READONLY" => (Happened::Nothing, Remedy::Reconnect, ErrorKind::Unavailable),
            "MASTERDOWN" | "CLUSTERDOWN" | "LOADING" => {
                (Happened::Nothing, Remedy::Look, ErrorKind::Unavailable)
            }
            "OOM" => (Happened::Nothing, Remedy::None, ErrorKind::Full),
            "MISCONF" | "NOREPLICAS" | "BUSY" | "NOAUTH" => {
                (Happened::Nothing, Remedy::None, ErrorKind::Unavailable)
            }
            _ => (Happened::Unknown, Remedy::None, ErrorKind::Unknown),
        };
        let details = error.details().unwrap_or_default();
        let what = format!("Redis at {address} said {} {details}", error.code());
        // Within a script, older servers have no code for it.
        let lacks_rights = error.code() == "NOPERM" || details.contains("can't run this command");
        Self { happened, remedy, kind, what, lacks_rights }
    }

    /// The server said something that makes no sense.
    pub(crate) fn unexpected_reply(what: &str) -> Self {
        let what = format!("Redis answered otherwise than it should: {what}");
        Self {
            happened: Happened::Unknown,
            remedy: Remedy::None,
            kind: ErrorKind::Unknown,
            what,
            lacks_rights: false,
        }
    }

    /// There is nobody to ask.
    pub(crate) fn no_server(what: impl Into<String>) -> Self {
        let what = what.into();
        Self {
            happened: Happened::Nothing,
            remedy: Remedy::Look,
            kind: ErrorKind::Unavailable,
            what,
            lacks_rights: false,
        }
    }

    /// The same failure with something that changes nothing: whatever became of it, nothing happened.
    pub(crate) fn harmless(mut self) -> Self {
        if self.happened == Happened::Unknown {
            (self.happened, self.kind) = (Happened::Nothing, ErrorKind::Unavailable);
        }
        self
    }

    /// The same failure, when other parts of what was asked have happened.
    pub(crate) fn in_part(mut self) -> Self {
        (self.happened, self.kind) = (Happened::Unknown, ErrorKind::Unknown);
        self
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let advice = match (failure.happened, failure.kind) {
            (Happened::Unknown, _) if failure.lacks_rights => {
                "the script may have stopped half-way: give its user the rights that the store needs, then ask again"
            }
            (Happened::Unknown, _) => "what was asked may or may not have happened: ask again",
            (Happened::Nothing, ErrorKind::Full) => {
                "nothing happened: sweep, raise maxmemory, or shorten retention"
            }
            (Happened::Nothing, _) => {
                "nothing happened: see that its master runs and can be reached, then ask again"
            }
        };
        Self::new(failure.kind, format!("{}; {advice}", failure.what))
    }
}

/// A record that cannot be read: its name in Redis, and why.
#[cold]
pub(crate) fn damaged(name: &str, why: Error) -> Error {
    Error::new(why.kind(), format!("{name} in Redis cannot be read, and was not changed: {why}"))
        .caused_by(why)
}

/// Where `ASK 1234 host:port` points; without a host, to the one who says it.
fn redirection(from: &Address, error: &ServerError) -> Option<Address> {
    let (_, address) = error.details()?.split_once(' ')?;
    let (host, port) = address.trim().rsplit_once(':')?;
    let host = if host.is_empty() { from.host.clone() } else { host.to_owned() };
    Some(Address { host, port: port.parse().ok()? })
}
