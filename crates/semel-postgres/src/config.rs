//! Where the server is, and what a person may choose: everything from one URL.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use semel::Result;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};

use crate::error::invalid;

/// How many batches of swaps may be under way at once. More would commit in more, smaller pieces.
const SWAP_CONNECTIONS_DEFAULT: usize = 2;
/// How long to wait for a connection, by default.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a dead connection may stay unnoticed, by default.
const LINE_TIMEOUT: Duration = Duration::from_secs(30);

/// What to do if the server's settings do not keep the promise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Refuse to connect: what is acknowledged survives whatever the store promises.
    #[default]
    Promised,
    /// Connect all the same, with a warning in the log: what is acknowledged survives as much as the server's settings
    /// let it.
    AsConfigured,
}

/// How to reach a server.
#[derive(Clone)]
pub struct Config {
    pub(crate) driver: tokio_postgres::Config,
    /// The file with the authorities to trust, instead of the system's.
    pub(crate) trusted: Option<PathBuf>,
    pub(crate) durability: Durability,
    pub(crate) role: Role,
    pub(crate) swap_connections: usize,
}

/// Which servers will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The one that takes writes.
    Primary,
    /// Any: for looking only.
    Any,
}

impl Config {
    /// What the URL says. Beside the parameters of libpq that the driver knows (`sslmode`, `connect_timeout`,
    /// `options`, `application_name`, `target_session_attrs`, …) there are:
    ///
    /// - `sslrootcert=FILE`: trust the authorities in this PEM file, and no other;
    /// - `sslmode=verify-ca|verify-full`: taken as `require`, since a certificate that cannot be verified is never taken;
    /// - `durability=as-configured`: connect also to a server whose settings may lose what was acknowledged.
    pub fn from_url(url: &str) -> Result<Self> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut trusted, mut durability) = (None, Durability::Promised);
        let mut passed_on = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslrootcert", file)) => trusted = Some(PathBuf::from(decoded(file)?)),
                Some(("sslmode", "verify-ca" | "verify-full")) => passed_on.push("sslmode=require"),
                Some(("durability", "as-configured")) => durability = Durability::AsConfigured,
                Some(("durability", "promised")) => durability = Durability::Promised,
                Some(("durability", other)) => {
                    return Err(invalid(format!(
                        "durability is `{other}`; use `promised` or `as-configured`"
                    )));
                }
                _ => passed_on.push(parameter),
            }
        }
        let url = if passed_on.is_empty() { base.into() } else { format!("{base}?{}", passed_on.join("&")) };
        let driver = url.parse::<tokio_postgres::Config>().map_err(|error| {
            let shape = "postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE";
            invalid(format!("the URL is not one of PostgreSQL's; it has the shape {shape}")).caused_by(error)
        })?;
        Ok(Self {
            driver: with_defaults(driver),
            trusted,
            durability,
            role: Role::Primary,
            swap_connections: SWAP_CONNECTIONS_DEFAULT,
        })
    }

    /// What to do if the server's settings do not keep the promise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Connects also to a standby. What a standby shows is late, and it takes no swap: good for looking at records,
    /// and nothing may be decided on it.
    #[must_use]
    pub fn or_standby(mut self) -> Self {
        self.role = Role::Any;
        self.driver.target_session_attrs(TargetSessionAttrs::Any);
        self
    }

    /// How many batches of swaps may be under way at once, each on a connection of its own; 2 by default.
    #[must_use]
    pub fn swap_connections(mut self, count: usize) -> Self {
        self.swap_connections = count.max(1);
        self
    }

    /// Whether the line must be secured.
    pub(crate) fn wants_tls(&self) -> bool {
        self.driver.get_ssl_mode() != SslMode::Disable
    }
}

fn with_defaults(mut driver: tokio_postgres::Config) -> tokio_postgres::Config {
    if driver.get_application_name().is_none() {
        driver.application_name("semel");
    }
    if driver.get_connect_timeout().is_none() {
        driver.connect_timeout(CONNECT_TIMEOUT);
    }
    if driver.get_tcp_user_timeout().is_none() {
        driver.tcp_user_timeout(LINE_TIMEOUT);
    }
    driver.keepalives_idle(LINE_TIMEOUT);
    if driver.get_hosts().len() > 1 {
        // Of several servers only the primary takes writes, and which one that is may change.
        driver.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    driver
}

/// A parameter's value without its percent signs.
fn decoded(value: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits: String = rest.by_ref().take(2).map(char::from).collect();
        let byte = u8::from_str_radix(&digits, 16);
        bytes.push(
            byte.map_err(|_| invalid("the URL has a `%` without two hex digits; write `%25` for `%`"))?,
        );
    }
    String::from_utf8(bytes).map_err(|error| invalid("a parameter of the URL is no UTF-8").caused_by(error))
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The driver's own form hides the password.
        f.debug_struct("Config")
            .field("driver", &self.driver)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_everything() {
        let url = "postgres://bank:s%20ecret@db:6432/books?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&durability=as-configured&application_name=till";
        let config = Config::from_url(url).unwrap();
        assert_eq!(config.driver.get_user(), Some("bank"));
        assert_eq!(config.driver.get_dbname(), Some("books"));
        assert_eq!(config.driver.get_application_name(), Some("till"));
        assert_eq!(config.driver.get_ssl_mode(), SslMode::Require);
        assert_eq!(config.trusted, Some("/etc/ca.pem".into()));
        assert_eq!(config.durability, Durability::AsConfigured);
    }

    #[test]
    fn several_servers_are_searched_for_the_primary() {
        let config = Config::from_url("postgres://a,b/books").unwrap();
        assert_eq!(config.driver.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn what_is_wrong_is_refused_and_the_password_is_not_shown() {
        for url in [
            "postgres://u:secret@h/d?durability=some",
            "postgres://u:secret@h/d?no_such=1",
            "mysql://u:secret@h",
        ] {
            let error = Config::from_url(url).unwrap_err();
            assert_eq!(error.kind(), semel::ErrorKind::Invalid, "{url}");
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
        let config = Config::from_url("postgres://u:secret@h/d").unwrap();
        assert!(!format!("{config:?}").contains("secret"), "{config:?}");
    }
}
