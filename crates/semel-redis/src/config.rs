//! The settings of a store, from a URL and a builder.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use semel::{Error, ErrorKind, Result};

use crate::ACL_RULES;
use crate::durability::Durability;
use crate::store::RedisStore;
use crate::url;

/// How many connections a server gets: more of them help when many callers share one store, and cost next to nothing.
const CONNECTIONS: usize = 4;
/// How long a reply may take before it counts as lost.
const REPLY_WITHIN: Duration = Duration::from_secs(5);
/// How long it may take to connect.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// The settings of a store.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) servers: Kind,
    pub(crate) addresses: Vec<Address>,
    pub(crate) tls: Option<Tls>,
    pub(crate) login: Login,
    pub(crate) database: i64,
    pub(crate) prefix: String,
    pub(crate) connections: usize,
    pub(crate) reply_within: Duration,
    pub(crate) connect_within: Duration,
    pub(crate) wanted: Option<Durability>,
}

/// What the addresses are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One server.
    One,
    /// Some of a cluster's servers.
    Cluster,
    /// Sentinels, which know where the master of this name is.
    Sentinel { master: String, login: Login },
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The certificates of encrypted connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    /// The authority that signed the server's certificate; `None`: those that the system trusts.
    pub(crate) ca: Option<PathBuf>,
    /// Our own certificate and its key, for servers that ask for one.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
}

/// A user of the server's access list, never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.password.is_some() { "Login(…)" } else { "Login(none)" })
    }
}

impl Config {
    /// The defaults for servers of this kind at these addresses.
    pub(crate) fn of(servers: Kind, addresses: Vec<Address>) -> Self {
        Self {
            servers,
            addresses,
            tls: None,
            login: Login::default(),
            database: 0,
            prefix: "semel".to_owned(),
            connections: CONNECTIONS,
            reply_within: REPLY_WITHIN,
            connect_within: CONNECT_WITHIN,
            wanted: None,
        }
    }

    /// The command that gives the user of this store its rights.
    pub(crate) fn grant(&self) -> String {
        let user = self.login.user.as_deref().unwrap_or("default");
        format!("ACL SETUSER {user} {}", ACL_RULES.replace("~semel:*", &format!("~{}:*", self.prefix)))
    }

    fn checked(self) -> Result<Self> {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}' | b'*' | b'?');
        if self.prefix.is_empty() || !self.prefix.bytes().all(is_plain) {
            // A brace would decide where a cluster keeps the keys, and then keys that belong together would lie apart.
            return Err(invalid(
                "the prefix must be plain ASCII without spaces, braces or wildcards: change it",
            ));
        }
        if self.servers == Kind::Cluster && self.database != 0 {
            return Err(invalid("a cluster has only database 0: leave the number out"));
        }
        if self.connections == 0 || self.connections > 64 {
            return Err(invalid("connections must be between 1 and 64: change their number"));
        }
        if self.reply_within.is_zero() || self.connect_within.is_zero() {
            return Err(invalid("no reply can come within 0 ms: allow some milliseconds"));
        }
        Ok(self)
    }
}

/// Builder for [`RedisStore`]: [`RedisStore::builder`] starts one.
#[derive(Debug)]
#[must_use = "a builder does nothing until it connects"]
pub struct RedisStoreBuilder {
    config: Result<Config>,
}

impl RedisStoreBuilder {
    pub(crate) fn new(url: &str) -> Self {
        Self { config: url::parse(url) }
    }

    fn with(mut self, set: impl FnOnce(&mut Config)) -> Self {
        if let Ok(config) = &mut self.config {
            set(config);
        }
        self
    }

    /// What every key's name starts with; `semel` by default.
    pub fn prefix(self, prefix: &str) -> Self {
        self.with(|config| prefix.clone_into(&mut config.prefix))
    }

    /// How many connections each server gets.
    pub fn connections(self, connections: usize) -> Self {
        self.with(|config| config.connections = connections)
    }

    /// How long a reply may take before it counts as lost: then it is unknown whether what was asked has happened.
    pub fn reply_within(self, span: Duration) -> Self {
        self.with(|config| config.reply_within = span)
    }

    /// How long it may take to connect.
    pub fn connect_within(self, span: Duration) -> Self {
        self.with(|config| config.connect_within = span)
    }

    /// The authority that signed the server's certificate, as a PEM file; by default those that the system trusts.
    pub fn ca_file(self, path: impl AsRef<Path>) -> Self {
        self.with(|config| config.tls.get_or_insert_default().ca = Some(path.as_ref().to_path_buf()))
    }

    /// The user of the server's access list to log in as.
    pub fn user(self, user: &str, password: &str) -> Self {
        let login = Login { user: Some(user.to_owned()), password: Some(password.to_owned()) };
        self.with(|config| config.login = login)
    }

    /// Refuses servers that would lose more than this at a crash.
    pub fn durability(self, wanted: Durability) -> Self {
        self.with(|config| config.wanted = Some(wanted))
    }

    /// Connects, and refuses servers that cannot keep what the store promises.
    pub async fn connect(self) -> Result<RedisStore> {
        RedisStore::open(self.config.and_then(Config::checked)?).await
    }
}

/// An error in a URL or a setting, for its owner to correct.
#[cold]
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(builder: RedisStoreBuilder) -> String {
        builder.config.and_then(Config::checked).unwrap_err().to_string()
    }

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let builder = || RedisStoreBuilder::new("redis://localhost");
        assert!(refusal(builder().prefix("a{b}")).starts_with("the prefix must"));
        assert!(refusal(builder().prefix("")).starts_with("the prefix must"));
        assert!(refusal(builder().connections(0)).starts_with("connections must"));
        assert!(refusal(builder().reply_within(Duration::ZERO)).starts_with("no reply can come"));
        let cluster = RedisStoreBuilder::new("redis+cluster://a:1,b:2?db=3");
        assert!(refusal(cluster).starts_with("a cluster has only database 0"));
        assert!(builder().prefix("acme:semel").config.and_then(Config::checked).is_ok());
    }

    #[test]
    fn a_password_is_never_shown() {
        let builder = RedisStoreBuilder::new("redis://ana:s3cret@localhost").user("ana", "s3cret");
        assert!(!format!("{builder:?}").contains("s3cret"));
    }
}
