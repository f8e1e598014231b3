//! Where the server is, and what a person may choose: everything from one URL.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use semel::Result;
use tokio_postgres::config::{Host, SslMode};

use crate::error::invalid;

/// How many batches of swaps may be under way at once. More would commit in more, smaller pieces.
const SWAP_CONNECTIONS_DEFAULT: usize = 2;
/// How long an ask may take before its answer is unknown, by default.
const REPLY_WITHIN: Duration = Duration::from_secs(5);
/// How long connecting to one server may take, by default: the network, TLS, the login and a first look at the server.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// When an idle connection is first asked for a sign of life, how often then, and how many may stay unanswered: a
/// connection that went dead while it was idle is noticed before the next ask has to wait for it.
const KEEPALIVES: (Duration, Duration, u32) = (Duration::from_secs(5), Duration::from_secs(2), 3);
/// The port of a server for which the URL names none.
const PORT: u16 = 5_432;

/// What the server's settings must keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Refuse a server whose own settings lose what it acknowledged. If it has a synchronous standby, a failover to that
    /// loses nothing either.
    #[default]
    Promised,
    /// The same, and refuse a server without a synchronous standby.
    SynchronousStandby,
    /// Connect to any server, with a warning in the log: what is acknowledged survives as much as the server's settings
    /// let it.
    AsConfigured,
}

/// What is between this process and the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pooling {
    /// Find out: a server that takes settings at the login is asked directly, any other is taken for a pooler.
    #[default]
    Auto,
    /// A pooler that gives each transaction another session: nothing is prepared, set or listened for.
    Transaction,
}

/// How to reach a server.
#[derive(Clone)]
pub struct Config {
    /// One for each server that the URL names.
    pub(crate) servers: Vec<tokio_postgres::Config>,
    /// The file with the authorities to trust, instead of the system's.
    pub(crate) trusted: Option<PathBuf>,
    pub(crate) durability: Durability,
    pub(crate) pooling: Pooling,
    pub(crate) role: Role,
    pub(crate) swap_connections: usize,
    pub(crate) reply_within: Duration,
    pub(crate) connect_within: Duration,
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
    /// What the URL says. Beside the parameters of libpq that the driver knows (`sslmode`, `options`,
    /// `application_name`, `keepalives_idle`, `tcp_user_timeout`, …) there are:
    ///
    /// - `reply_within_ms=5000`: after that the answer is unknown, and the connection is given up;
    /// - `connect_within_ms=2000`: how long connecting to one server may take (`connect_timeout` in seconds does the same);
    /// - `durability=synchronous-standby`: refuse a server without one; `durability=as-configured`: connect also to a server
    ///   whose settings may lose what was acknowledged;
    /// - `pooling=transaction`: a pooler in transaction mode is in between, which is found out without this, too;
    /// - `sslrootcert=FILE`: trust the authorities in this PEM file, and no other;
    /// - `sslmode=verify-ca|verify-full`: taken as `require`, since a certificate that cannot be verified is never taken.
    pub fn from_url(url: &str) -> Result<Self> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut own = OwnParameters::default();
        let mut passed_on = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            passed_on.extend(own.take(parameter)?);
        }
        let url = if passed_on.is_empty() { base.into() } else { format!("{base}?{}", passed_on.join("&")) };
        let driver = url.parse::<tokio_postgres::Config>().map_err(|error| {
            let shape = "postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE";
            invalid(format!("the URL is not one of PostgreSQL's; it has the shape {shape}")).caused_by(error)
        })?;
        let names_keepalive = passed_on.iter().any(|parameter| parameter.starts_with("keepalives_idle="));
        let within = driver.get_connect_timeout().filter(|within| !within.is_zero()).copied();
        let reply_within = own.reply_within.unwrap_or(REPLY_WITHIN);
        let driver = with_defaults(driver, names_keepalive, reply_within);
        Ok(Self {
            servers: servers(&driver)?,
            trusted: own.trusted,
            durability: own.durability,
            pooling: own.pooling,
            role: Role::Primary,
            swap_connections: SWAP_CONNECTIONS_DEFAULT,
            reply_within,
            connect_within: own.connect_within.or(within).unwrap_or(CONNECT_WITHIN),
        })
    }

    /// What the server's settings must keep.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// What is between this process and the server.
    #[must_use]
    pub fn pooling(mut self, pooling: Pooling) -> Self {
        self.pooling = pooling;
        self
    }

    /// How long an ask may take before its answer is unknown; 5 seconds by default, and six times as long for a sweep or a
    /// page of a list.
    #[must_use]
    pub fn reply_within(mut self, span: Duration) -> Self {
        self.reply_within = span;
        self
    }

    /// How long connecting to one server may take; 2 seconds by default.
    #[must_use]
    pub fn connect_within(mut self, span: Duration) -> Self {
        self.connect_within = span;
        self
    }

    /// Connects also to a standby. What a standby shows is late, and it takes no swap: good for looking at records,
    /// and nothing may be decided on it.
    #[must_use]
    pub fn or_standby(mut self) -> Self {
        self.role = Role::Any;
        self
    }

    /// How many batches of swaps may be under way at once, each on a connection of its own; 2 by default.
    #[must_use]
    pub fn swap_connections(mut self, count: usize) -> Self {
        self.swap_connections = count.max(1);
        self
    }

    /// Whether the connections must be encrypted.
    pub(crate) fn wants_tls(&self) -> bool {
        self.servers.iter().any(|server| server.get_ssl_mode() != SslMode::Disable)
    }
}

/// The parameters of a URL that are not the driver's.
#[derive(Default)]
struct OwnParameters {
    trusted: Option<PathBuf>,
    durability: Durability,
    pooling: Pooling,
    reply_within: Option<Duration>,
    connect_within: Option<Duration>,
}

impl OwnParameters {
    /// Takes in one of ours, and hands back one of the driver's.
    fn take<'a>(&mut self, parameter: &'a str) -> Result<Option<&'a str>> {
        match parameter.split_once('=') {
            Some(("sslrootcert", file)) => self.trusted = Some(PathBuf::from(decoded(file)?)),
            Some(("sslmode", "verify-ca" | "verify-full")) => return Ok(Some("sslmode=require")),
            Some(("durability", word)) => self.durability = durability(word)?,
            Some(("pooling", "auto")) => self.pooling = Pooling::Auto,
            Some(("pooling", "transaction")) => self.pooling = Pooling::Transaction,
            Some(("pooling", word)) => {
                return Err(invalid(format!("pooling is `{word}`; use `auto` or `transaction`")));
            }
            Some((name @ "reply_within_ms", number)) => self.reply_within = Some(millis(name, number)?),
            Some((name @ "connect_within_ms", number)) => self.connect_within = Some(millis(name, number)?),
            _ => return Ok(Some(parameter)),
        }
        Ok(None)
    }
}

fn durability(word: &str) -> Result<Durability> {
    match word {
        "promised" => Ok(Durability::Promised),
        "synchronous-standby" => Ok(Durability::SynchronousStandby),
        "as-configured" => Ok(Durability::AsConfigured),
        _ => Err(invalid(format!(
            "durability is `{word}`; use `promised`, `synchronous-standby` or `as-configured`"
        ))),
    }
}

fn millis(name: &str, number: &str) -> Result<Duration> {
    let millis = number.parse().ok().filter(|millis| *millis > 0);
    millis
        .map(Duration::from_millis)
        .ok_or_else(|| invalid(format!("{name} is `{number}`; give a number of milliseconds above 0")))
}

fn with_defaults(
    mut driver: tokio_postgres::Config,
    names_keepalive: bool,
    reply_within: Duration,
) -> tokio_postgres::Config {
    let (idle, interval, retries) = KEEPALIVES;
    if driver.get_application_name().is_none() {
        driver.application_name("semel");
    }
    if driver.get_tcp_user_timeout().is_none() {
        driver.tcp_user_timeout(reply_within);
    }
    if !names_keepalive {
        driver.keepalives_idle(idle);
    }
    if driver.get_keepalives_interval().is_none() {
        driver.keepalives_interval(interval);
    }
    if driver.get_keepalives_retries().is_none() {
        driver.keepalives_retries(retries);
    }
    driver
}

/// The same for each server alone: which of several is taken is decided by more than their order.
fn servers(driver: &tokio_postgres::Config) -> Result<Vec<tokio_postgres::Config>> {
    let (hosts, addresses, ports) = (driver.get_hosts(), driver.get_hostaddrs(), driver.get_ports());
    let count = hosts.len().max(addresses.len());
    let fits = |length: usize| length <= 1 || length == count;
    if count == 0
        || !fits(ports.len())
        || (!hosts.is_empty() && !addresses.is_empty() && hosts.len() != addresses.len())
    {
        return Err(invalid("the URL needs a host, and as many ports (or one) and addresses as hosts"));
    }
    let server = |at: usize| {
        let mut server = without_hosts(driver);
        match hosts.get(at) {
            Some(Host::Tcp(name)) => drop(server.host(name)),
            #[cfg(unix)]
            Some(Host::Unix(path)) => drop(server.host_path(path)),
            None => {}
        }
        if let Some(address) = addresses.get(at) {
            server.hostaddr(*address);
        }
        server.port(ports.get(at).or(ports.first()).copied().unwrap_or(PORT));
        server
    };
    Ok((0..count).map(server).collect())
}

fn without_hosts(driver: &tokio_postgres::Config) -> tokio_postgres::Config {
    let mut server = tokio_postgres::Config::new();
    server
        .ssl_mode(driver.get_ssl_mode())
        .ssl_negotiation(driver.get_ssl_negotiation())
        .channel_binding(driver.get_channel_binding())
        .keepalives(driver.get_keepalives())
        .keepalives_idle(driver.get_keepalives_idle());
    driver.get_user().map(|user| server.user(user));
    driver.get_password().map(|password| server.password(password));
    driver.get_dbname().map(|name| server.dbname(name));
    driver.get_options().map(|options| server.options(options));
    driver.get_application_name().map(|name| server.application_name(name));
    driver.get_tcp_user_timeout().map(|span| server.tcp_user_timeout(*span));
    driver.get_keepalives_interval().map(|span| server.keepalives_interval(span));
    driver.get_keepalives_retries().map(|count| server.keepalives_retries(count));
    server
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
            .field("servers", &self.servers)
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
        let [server] = &config.servers[..] else { panic!("one server") };
        assert_eq!(server.get_user(), Some("bank"));
        assert_eq!(server.get_dbname(), Some("books"));
        assert_eq!(server.get_application_name(), Some("till"));
        assert_eq!(server.get_ssl_mode(), SslMode::Require);
        assert_eq!(server.get_ports(), [6_432]);
        assert_eq!(config.trusted, Some("/etc/ca.pem".into()));
        assert_eq!(config.durability, Durability::AsConfigured);
    }

    #[test]
    fn each_server_of_several_has_a_config_of_its_own() {
        let config = Config::from_url("postgres://u:p@a:1,b:2/books?options=-c%20search_path%3Dx").unwrap();
        let shown =
            |server: &tokio_postgres::Config| (server.get_hosts().to_vec(), server.get_ports().to_vec());
        let expected = |name: &str, port| (vec![Host::Tcp(name.to_owned())], vec![port]);
        assert_eq!(
            config.servers.iter().map(shown).collect::<Vec<_>>(),
            [expected("a", 1), expected("b", 2)]
        );
        for server in &config.servers {
            assert_eq!((server.get_user(), server.get_password()), (Some("u"), Some(&b"p"[..])));
            assert_eq!(
                (server.get_dbname(), server.get_options()),
                (Some("books"), Some("-c search_path=x"))
            );
        }
        let one_port = Config::from_url("postgres://a,b:7/books").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(one_port.servers[1].get_ports(), [7]);
    }

    #[test]
    fn time_limits_are_short_by_default_and_the_urls_own_are_kept() {
        let config = Config::from_url("postgres://a/books").unwrap();
        assert_eq!((config.reply_within, config.connect_within), (REPLY_WITHIN, CONNECT_WITHIN));
        assert_eq!(config.servers[0].get_keepalives_idle(), KEEPALIVES.0);
        assert_eq!(config.servers[0].get_tcp_user_timeout(), Some(&REPLY_WITHIN));
        let url =
            "postgres://a/books?keepalives_idle=7200&tcp_user_timeout=9&connect_timeout=3&reply_within_ms=70";
        let config = Config::from_url(url).unwrap();
        let seconds = Duration::from_secs;
        assert_eq!((config.reply_within, config.connect_within), (Duration::from_millis(70), seconds(3)));
        assert_eq!(config.servers[0].get_keepalives_idle(), seconds(7_200));
        assert_eq!(config.servers[0].get_tcp_user_timeout(), Some(&seconds(9)));
        assert_eq!(
            Config::from_url("postgres://a?connect_within_ms=80").unwrap().connect_within.as_millis(),
            80
        );
    }

    #[test]
    fn what_is_wrong_is_refused_and_the_password_is_not_shown() {
        for url in [
            "postgres://u:secret@h/d?durability=some",
            "postgres://u:secret@h/d?no_such=1",
            "postgres://u:secret@h/d?pooling=some",
            "postgres://u:secret@h/d?reply_within_ms=0",
            "postgres://u:secret@a:1,b:2,c/d?hostaddr=127.0.0.1",
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
