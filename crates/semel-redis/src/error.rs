//! What went wrong, and above all whether anything can have happened.
//!
//! | what | what it means |
//! |---|---|
//! | could not connect, or log in | nothing was sent: nothing happened |
//! | `NOSCRIPT` | the server does not have the script: nothing happened; it is given the script, and asked again |
//! | `MOVED`, `ASK` | another server of the cluster has the key: nothing happened; that one is asked |
//! | `TRYAGAIN` | the key is moving to another server: nothing happened; asked again after 20 ms |
//! | `READONLY`, `MASTERDOWN`, `LOADING`, `CLUSTERDOWN`, `NOREPLICAS` | not a master, not yet or not any more: nothing happened; the present master is looked for, and asked if it is another |
//! | `OOM` | the memory is full: nothing happened; kind `Full` |
//! | `NOPERM` | the user lacks a right: nothing happened; kind `Invalid` |
//! | `MISCONF`, `BUSY`, `NOAUTH` | refused before the first write: nothing happened |
//! | `HALFWAY`, and any other error of a script | it may have written already: unknown |
//! | connection lost, no reply in time, a reply that makes no sense | it may have run: unknown |
//!
//! The scripts hand on an error of their first write as it is, and one after a write behind the word `HALFWAY`: so the codes
//! above mean the same whether the server refused the script or the script's first write.

use redis::{RedisError, ServerError};
use semel::{Error, ErrorKind};

use crate::config::Address;

/// What a server answered, or what went wrong.
pub(crate) type ServerResult<T> = std::result::Result<T, Failure>;

/// Something that went wrong between this process and a server.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) happened: Happened,
    pub(crate) remedy: Remedy,
    kind: ErrorKind,
    what: String,
    /// The command that grants the user its rights, if it lacks one.
    grant: Option<Box<str>>,
    /// Whether no reply came in time.
    is_overdue: bool,
}

/// Whether what was asked can have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Nothing,
    Unknown,
}

/// What may be tried before the caller gets the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    None,
    /// Give the server the scripts.
    LoadScripts,
    /// Find the present masters.
    FindMasters,
    /// Connect again, and find the present masters.
    Reconnect,
    /// Ask again after 20 ms.
    Wait,
    /// Another server has the key.
    Moved,
    /// Another server has the key, this once.
    Ask(Address),
}

impl Failure {
    fn new(happened: Happened, remedy: Remedy, kind: ErrorKind, what: String) -> Self {
        Self { happened, remedy, kind, what, grant: None, is_overdue: false }
    }

    /// The server was not reached.
    pub(crate) fn unreached(address: &Address, error: &RedisError) -> Self {
        let what = format!("cannot connect to Redis at {address}: {error}");
        Self::new(Happened::Nothing, Remedy::FindMasters, ErrorKind::Unavailable, what)
    }

    /// The reply was lost after the command was sent.
    pub(crate) fn lost(address: &Address, error: &RedisError) -> Self {
        let what = format!("the reply of Redis at {address} was lost: {error}");
        let is_overdue = error.is_timeout();
        Self { is_overdue, ..Self::new(Happened::Unknown, Remedy::Reconnect, ErrorKind::Unknown, what) }
    }

    /// The server is not the master any more, and its reply was not waited for.
    pub(crate) fn deposed(address: &Address) -> Self {
        let what = format!("Redis at {address} is not the master any more, and its reply was not waited for");
        Self::new(Happened::Unknown, Remedy::FindMasters, ErrorKind::Unknown, what)
    }

    /// The server is not the master any more, and nothing was sent to it.
    pub(crate) fn left(address: &Address) -> Self {
        let what = format!("Redis at {address} is not the master any more");
        Self::new(Happened::Nothing, Remedy::Moved, ErrorKind::Unavailable, what)
    }

    /// The server answered with an error. `grant` is the command that gives the user its rights.
    pub(crate) fn refused(address: &Address, error: &ServerError, grant: &str) -> Self {
        let details = error.details().unwrap_or_default();
        // In a script, releases before 7.2 have no code for it.
        let lacks_right = error.code() == "NOPERM"
            || (error.code() == "ERR" && details.starts_with("The user executing the script can't"));
        let (happened, remedy, kind) = match error.code() {
            _ if lacks_right => (Happened::Nothing, Remedy::None, ErrorKind::Invalid),
            "NOSCRIPT" => (Happened::Nothing, Remedy::LoadScripts, ErrorKind::Unavailable),
            "MOVED" => (Happened::Nothing, Remedy::Moved, ErrorKind::Unavailable),
            "ASK" => {
                let remedy = redirection(address, error).map_or(Remedy::FindMasters, Remedy::Ask);
                (Happened::Nothing, remedy, ErrorKind::Unavailable)
            }
            "TRYAGAIN" => (Happened::Nothing, Remedy::Wait, ErrorKind::Unavailable),
            "READONLY" => (Happened::Nothing, Remedy::Reconnect, ErrorKind::Unavailable),
            "MASTERDOWN" | "CLUSTERDOWN" | "LOADING" | "NOREPLICAS" => {
                (Happened::Nothing, Remedy::FindMasters, ErrorKind::Unavailable)
            }
            "OOM" => (Happened::Nothing, Remedy::None, ErrorKind::Full),
            "MISCONF" | "BUSY" | "NOAUTH" => (Happened::Nothing, Remedy::None, ErrorKind::Unavailable),
            _ => (Happened::Unknown, Remedy::None, ErrorKind::Unknown),
        };
        let what = format!("Redis at {address} answered {} {details}", error.code());
        let grant = lacks_right.then(|| grant.into());
        Self { grant, ..Self::new(happened, remedy, kind, what) }
    }

    /// The server answered something that makes no sense.
    pub(crate) fn unexpected_reply(what: &str) -> Self {
        let what = format!("Redis gave an unexpected reply: {what}");
        Self::new(Happened::Unknown, Remedy::None, ErrorKind::Unknown, what)
    }

    /// There is no server to ask.
    pub(crate) fn no_server(what: impl Into<String>) -> Self {
        Self::new(Happened::Nothing, Remedy::FindMasters, ErrorKind::Unavailable, what.into())
    }

    /// Whether the user may not run what was sent.
    pub(crate) fn lacks_right(&self) -> bool {
        self.grant.is_some()
    }

    /// The same failure of a command that changes nothing: nothing happened, even if it ran.
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
        let advice = match (failure.happened, failure.kind, failure.grant) {
            (Happened::Unknown, _, Some(grant)) => {
                format!("some of it may have happened: run `{grant}`, then ask again")
            }
            (Happened::Unknown, _, None) => {
                "what was asked may or may not have happened: ask again".to_owned()
            }
            (Happened::Nothing, _, Some(grant)) => format!("nothing happened: run `{grant}`, then ask again"),
            (Happened::Nothing, ErrorKind::Full, None) => {
                "nothing happened: sweep, raise maxmemory, or shorten retention".to_owned()
            }
            (Happened::Nothing, _, None) => {
                "nothing happened: check that its master runs and can be reached, then ask again".to_owned()
            }
        };
        let error = Self::new(failure.kind, format!("{}; {advice}", failure.what));
        if failure.is_overdue && failure.happened == Happened::Unknown { error.overdue() } else { error }
    }
}

/// A record that cannot be read: its name in Redis, and why.
#[cold]
pub(crate) fn damaged(name: &str, why: Error) -> Error {
    Error::new(why.kind(), format!("{name} in Redis cannot be read, and was not changed: {why}"))
        .caused_by(why)
}

/// Where `ASK 1234 host:port` points; without a host, to the server that sent it.
fn redirection(from: &Address, error: &ServerError) -> Option<Address> {
    let (_, address) = error.details()?.split_once(' ')?;
    let (host, port) = address.trim().rsplit_once(':')?;
    let host = if host.is_empty() { from.host.clone() } else { host.to_owned() };
    Some(Address { host, port: port.parse().ok()? })
}
