//! The servers that a URL names: which of them is asked, and which is refused.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use semel::store::Finding;
use semel::{Error, ErrorKind, Result};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::Notification;
use tokio_postgres::config::Host;

use crate::check::ServerSettings;
use crate::config::{Config, Pooling, Role};
use crate::error::{Sent, error};
use crate::health::Health;
use crate::rights;
use crate::statement::raise_versions;
use crate::wire::{self, Tls, Wire, text_rows};

/// Settings that a session of ours needs. They go with the login, so that they end with the session: what is set in a
/// session of a pooler stays in it for the next application.
///
/// - No server-side time limits: they cancel statements, and a commit that is cancelled while it waits for a standby
///   has happened here and not there.
/// - READ COMMITTED, whatever the role's default is: a swap looks at the version again after it has waited.
/// - Warnings are sent: one of them says that a commit did not wait for its standby.
/// - One plan for any number of rows, by the index: a plan that was made while the table was small must not stay.
pub(crate) const SETTINGS: [(&str, &str); 12] = [
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("client_min_messages", "warning"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
];

/// What is looked at first: its role, whether it took the settings, and which server it is.
const LOOK: &str = "SELECT pg_is_in_recovery(), current_setting('plan_cache_mode'), \
     (SELECT system_identifier FROM pg_control_system()), \
     CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END";
/// The same where a role may not see which server it is.
const LOOK_ONLY: &str = "SELECT pg_is_in_recovery(), current_setting('plan_cache_mode'), NULL, NULL";

/// How long to wait for other servers once one will do: one of them may have taken its place.
const OTHERS_WITHIN: Duration = Duration::from_millis(300);

/// The servers of a store, and what all its connections know of them.
pub(crate) struct Servers {
    pub(crate) config: Config,
    tls: Tls,
    pub(crate) health: Health,
    /// The server that was asked last.
    known: Mutex<Option<ServerIdentity>>,
    /// The server on which versions are known to be raised above those of every former primary.
    raised: Mutex<Option<ServerIdentity>>,
}

/// Which server it is: a copy of its files has the same system identifier, and each promotion starts a new timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerIdentity {
    pub(crate) system: i64,
    pub(crate) timeline: u32,
}

impl ServerIdentity {
    /// Stands for a server that does not say which one it is.
    const UNKNOWN: Self = Self { system: 0, timeline: 0 };
}

/// A connection to a server that may be asked.
pub(crate) struct Connected {
    pub(crate) wire: Wire,
    /// Which server it is; `None` if this role may not see it, or it is a standby.
    pub(crate) identity: Option<ServerIdentity>,
    pub(crate) is_standby: bool,
    pub(crate) sessions: Sessions,
}

/// Whether the session belongs to this process alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sessions {
    /// It does, and has the settings.
    Own,
    /// It may be another one for each transaction.
    Pooled,
}

impl Servers {
    pub(crate) fn new(config: Config) -> Result<Self> {
        let health = Health::new(&config);
        Ok(Self {
            tls: wire::tls(&config)?,
            config,
            health,
            known: Mutex::default(),
            raised: Mutex::default(),
        })
    }

    /// Connects to the server that takes writes: all are asked at the same time, and of several that will do it is the one
    /// with the newest timeline.
    pub(crate) async fn connect(
        &self,
        notified: impl Fn(&Notification) + Clone + Send + 'static,
    ) -> Result<Connected> {
        let mut attempts = JoinSet::new();
        for server in &self.config.servers {
            let attempt = Attempt {
                server: server.clone(),
                tls: self.tls.clone(),
                pooling: self.config.pooling,
                within: self.config.connect_within,
            };
            attempts.spawn(attempt.make(notified.clone()));
        }
        let (mut best, mut refusals, mut until) = (None::<Connected>, Refusals::default(), None);
        while let Some(made) = next(&mut attempts, until).await {
            match made.and_then(|(name, connected)| self.judge(&name, connected)) {
                Ok(connected) => {
                    until = until.or_else(|| Instant::now().checked_add(OTHERS_WITHIN));
                    if best.as_ref().is_none_or(|best| connected.timeline() > best.timeline()) {
                        best = Some(connected);
                    }
                }
                Err(refusal) => refusals.add(refusal),
            }
        }
        let best = best.ok_or_else(|| refusals.into_error())?;
        if let Some(identity) = best.identity {
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(identity);
        }
        Ok(best)
    }

    /// Looks at everything that the promise needs of a server, and remembers what is found.
    pub(crate) async fn check(&self, wire: &Wire) -> Result<Vec<Finding>> {
        let settings = ServerSettings::read(wire).await?;
        let mut findings = settings.findings(&self.config);
        findings.push(rights::finding(wire).await?);
        self.health.note(&settings, &findings, &self.config);
        Ok(findings)
    }

    /// Whether a connection to this server may still be used: no newer timeline has been seen since it was made.
    pub(crate) fn is_current(&self, server: Option<ServerIdentity>) -> bool {
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.zip(server).is_none_or(|(known, server)| known == server)
    }

    /// Whether versions of this server are known to be above those of every former primary.
    pub(crate) fn has_raised_versions(&self, server: Option<ServerIdentity>) -> bool {
        let raised = *self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised == Some(server.unwrap_or(ServerIdentity::UNKNOWN))
    }

    /// Raises versions above those of every former primary, unless that is done.
    pub(crate) async fn raise_versions(&self, wire: &Wire, server: Option<ServerIdentity>) -> Result<()> {
        if self.has_raised_versions(server) {
            return Ok(());
        }
        let server = server.unwrap_or(ServerIdentity::UNKNOWN);
        let raised = wire.client().batch_execute(&raise_versions(server.system, server.timeline)).await;
        raised.map_err(|failed| error(failed, Sent::No))?;
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        Ok(())
    }

    /// Looks for a server that was promoted while another one is still in use; there is none if the URL names one server.
    pub(crate) async fn look_for_promoted(&self) {
        if self.config.servers.len() > 1
            && let Err(error) = self.connect(|_| {}).await
        {
            tracing::debug!(%error, "semel: no server could be asked whether it was promoted");
        }
    }

    /// Refuses a standby where writes are meant, a former primary, and a server of another system.
    fn judge(&self, name: &str, connected: Connected) -> Result<Connected> {
        if connected.is_standby && self.config.role == Role::Primary {
            return Err(unavailable(format!(
                "PostgreSQL at {name} is a standby, which takes no writes; give the primary's URL, or name all servers in \
                 one: postgres://a,b/database"
            )));
        }
        let known = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.zip(connected.identity) {
            Some((known, found)) if known.system != found.system => Err(unavailable(format!(
                "PostgreSQL at {name} has the system identifier {}, and this process has used {}: it is another database \
                 server; check the URL, or start this process again if that is meant",
                found.system, known.system
            ))),
            Some((known, found)) if known.timeline > found.timeline => Err(unavailable(format!(
                "PostgreSQL at {name} is on timeline {}, and this process has used timeline {}: it is a former primary \
                 that lacks what was written since; make it a standby of the present one (pg_rewind)",
                found.timeline, known.timeline
            ))),
            _ => Ok(connected),
        }
    }
}

impl Connected {
    fn timeline(&self) -> Option<u32> {
        self.identity.map(|identity| identity.timeline)
    }
}

/// The next attempt that ended; `None` if there is none, or the time is over.
async fn next(
    attempts: &mut JoinSet<Result<(String, Connected)>>,
    until: Option<Instant>,
) -> Option<Result<(String, Connected)>> {
    let joined = match until {
        None => attempts.join_next().await,
        Some(until) => timeout_at(until, attempts.join_next()).await.ok()?,
    };
    let stopped =
        |error| Err(unavailable("connecting to PostgreSQL was stopped; ask again").caused_by(error));
    joined.map(|made| made.unwrap_or_else(stopped))
}

/// One attempt to connect to one server.
struct Attempt {
    server: tokio_postgres::Config,
    tls: Tls,
    pooling: Pooling,
    within: Duration,
}

impl Attempt {
    async fn make(
        self,
        notified: impl Fn(&Notification) + Clone + Send + 'static,
    ) -> Result<(String, Connected)> {
        let name = name(&self.server);
        match timeout(self.within, self.connect(notified)).await {
            Ok(Ok(connected)) => Ok((name, connected)),
            Ok(Err(failed)) => {
                let error = error(failed, Sent::No);
                Err(Error::new(error.kind(), format!("{name}: {error}")).caused_by(error))
            }
            Err(_) => Err(unavailable(format!(
                "PostgreSQL at {name} did not answer within {:?}; check that it runs and can be reached",
                self.within
            ))),
        }
    }

    async fn connect(
        &self,
        notified: impl Fn(&Notification) + Clone + Send + 'static,
    ) -> Result<Connected, tokio_postgres::Error> {
        let wire = self.open(notified).await?;
        let look = match look(&wire, LOOK).await {
            Err(failed) if failed.code().is_some() => look(&wire, LOOK_ONLY).await?,
            look => look?,
        };
        let sessions =
            if look.has_settings && self.pooling == Pooling::Auto { Sessions::Own } else { Sessions::Pooled };
        Ok(Connected { wire, identity: look.identity, is_standby: look.is_standby, sessions })
    }

    /// Logs in with the settings; without them where a pooler refuses to take any.
    async fn open(
        &self,
        notified: impl Fn(&Notification) + Clone + Send + 'static,
    ) -> Result<Wire, tokio_postgres::Error> {
        if self.pooling == Pooling::Transaction {
            return Wire::open(&self.server, &self.tls, notified).await;
        }
        let mut with_settings = self.server.clone();
        with_settings.options(options(self.server.get_options()));
        match Wire::open(&with_settings, &self.tls, notified.clone()).await {
            Err(failed) if is_refused_option(&failed) => Wire::open(&self.server, &self.tls, notified).await,
            opened => opened,
        }
    }
}

/// The settings as a login takes them, behind those of the URL.
fn options(own: Option<&str>) -> String {
    let setting = |(name, value): &(&str, &str)| format!("-c {name}={}", value.replace(' ', "\\ "));
    own.map(str::to_owned).into_iter().chain(SETTINGS.iter().map(setting)).collect::<Vec<_>>().join(" ")
}

/// Whether a login was refused for something that a server itself would have taken.
fn is_refused_option(failed: &tokio_postgres::Error) -> bool {
    failed.as_db_error().is_some_and(|error| {
        let message = error.message();
        error.code().code() == "08P01" || message.contains("startup parameter") || message.contains("options")
    })
}

/// What a first look found.
struct Look {
    is_standby: bool,
    has_settings: bool,
    identity: Option<ServerIdentity>,
}

/// In the simple protocol: it prepares nothing, which a pooler could not keep.
async fn look(wire: &Wire, text: &str) -> Result<Look, tokio_postgres::Error> {
    let row = text_rows(&wire.client().simple_query(text).await?).into_iter().next().unwrap_or_default();
    let get = |column: usize| row.get(column).and_then(Option::as_deref);
    let system = get(2).and_then(|number| number.parse().ok());
    let timeline = get(3).and_then(|hex| u32::from_str_radix(hex, 16).ok());
    Ok(Look {
        is_standby: get(0) == Some("t"),
        has_settings: get(1) == Some("force_generic_plan"),
        identity: system.zip(timeline).map(|(system, timeline)| ServerIdentity { system, timeline }),
    })
}

/// Why no server would do.
#[derive(Default)]
struct Refusals(Vec<Error>);

impl Refusals {
    fn add(&mut self, error: Error) {
        self.0.push(error);
    }

    /// All of them in one. If one of them may pass, asking again is right.
    fn into_error(mut self) -> Error {
        match self.0.len() {
            0 => unavailable("the URL names no server"),
            1 => self.0.remove(0),
            _ => {
                let kinds = || self.0.iter().map(Error::kind);
                let may_pass = kinds().any(|kind| kind == ErrorKind::Unavailable);
                let kind = if may_pass { None } else { kinds().next() };
                let messages = self.0.iter().map(Error::to_string).collect::<Vec<_>>().join(" | ");
                Error::new(kind.unwrap_or(ErrorKind::Unavailable), messages)
            }
        }
    }
}

/// What a server is called in messages: its host and port.
fn name(server: &tokio_postgres::Config) -> String {
    let host = match (server.get_hosts().first(), server.get_hostaddrs().first()) {
        (Some(Host::Tcp(name)), _) => name.clone(),
        #[cfg(unix)]
        (Some(Host::Unix(path)), _) => path.display().to_string(),
        (None, Some(address)) => address.to_string(),
        (None, None) => String::new(),
    };
    let port = server.get_ports().first().copied().unwrap_or_default();
    format!("{host}:{port}")
}

fn unavailable(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unavailable, message)
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Servers({:?})", self.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_go_behind_those_of_the_url_and_spaces_are_escaped() {
        let text = options(Some("-c search_path=x"));
        assert!(text.starts_with("-c search_path=x -c statement_timeout=0 "), "{text}");
        assert!(text.contains("-c default_transaction_isolation=read\\ committed "), "{text}");
    }

    #[test]
    fn of_several_refusals_all_are_said_and_one_that_may_pass_decides() {
        let mut refusals = Refusals::default();
        refusals.add(Error::new(ErrorKind::Invalid, "a: no such user"));
        refusals.add(Error::new(ErrorKind::Unavailable, "b: away"));
        let error = refusals.into_error();
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Unavailable, "a: no such user | b: away".into())
        );
    }
}
