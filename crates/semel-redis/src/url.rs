//! URLs of Redis: `redis`, `rediss`, `redis+cluster`, `rediss+cluster`, `redis+sentinel` and `rediss+sentinel`.

use std::time::Duration;

use semel::Result;

use crate::config::{Address, Config, Kind, Login, Tls, invalid};
use crate::durability::Durability;

const PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;

/// Parses a URL. Its errors name the part that is wrong and never show a password.
pub(crate) fn parse(url: &str) -> Result<Config> {
    let (scheme, rest) = url.split_once("://").ok_or_else(unlike_a_url)?;
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    // The last one: a password may hold others, though it should not.
    let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (encrypted, port, servers) = match scheme {
        "redis" => (false, PORT, Kind::One),
        "rediss" => (true, PORT, Kind::One),
        "redis+cluster" => (false, PORT, Kind::Cluster),
        "rediss+cluster" => (true, PORT, Kind::Cluster),
        "redis+sentinel" => (false, SENTINEL_PORT, sentinel(path)?),
        "rediss+sentinel" => (true, SENTINEL_PORT, sentinel(path)?),
        _ => return Err(unlike_a_url()),
    };
    let addresses: Vec<_> = hosts.split(',').map(|host| address(host, port)).collect::<Result<_>>()?;
    if servers == Kind::One && addresses.len() > 1 {
        return Err(invalid(
            "redis:// takes one server; for several use redis+cluster:// or redis+sentinel://",
        ));
    }
    let database = if let Kind::Sentinel { .. } = servers {
        path.split_once('/').map_or("", |(_, database)| database)
    } else {
        path
    };
    let mut config = Config::of(servers, addresses);
    config.login = self::login(login)?;
    config.tls = encrypted.then(Tls::default);
    if !database.is_empty() {
        config.database = number(database, "the database")?;
    }
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    parameters.into_iter().try_for_each(|parameter| set(&mut config, parameter))?;
    Ok(config)
}

fn sentinel(path: &str) -> Result<Kind> {
    let (master, _) = path.split_once('/').unwrap_or((path, ""));
    let master = decoded(master)?;
    if master.is_empty() {
        return Err(invalid("redis+sentinel:// needs the master's name behind the addresses: …/mymaster"));
    }
    Ok(Kind::Sentinel { master, login: Login::default() })
}

fn address(host: &str, port: u16) -> Result<Address> {
    let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let (host, port) = match host.rsplit_once(':') {
        // The colons of an IPv6 address stand within brackets.
        Some((name, digits)) if !digits.contains(']') => (bare(name), number(digits, "a port")?),
        _ => (bare(host), port),
    };
    if host.is_empty() {
        return Err(invalid("the URL names no host: write redis://HOST:PORT"));
    }
    Ok(Address { host, port })
}

fn login(text: &str) -> Result<Login> {
    if text.is_empty() {
        return Ok(Login::default());
    }
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let some = |part: &str| decoded(part).map(|part| (!part.is_empty()).then_some(part));
    Ok(Login { user: some(user)?, password: some(password)? })
}

/// One parameter behind the question mark.
fn set(config: &mut Config, parameter: &str) -> Result<()> {
    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    let value = decoded(value)?;
    let millis = |value: &str| number(value, name).map(Duration::from_millis);
    match name {
        "prefix" => config.prefix = value,
        "db" => config.database = number(&value, name)?,
        "connections" => config.connections = number(&value, name)?,
        "reply_within_ms" => config.reply_within = millis(&value)?,
        "connect_within_ms" => config.connect_within = millis(&value)?,
        "durability" => config.wanted = Some(Durability::wanted(&value)?),
        "ca" => encrypted(config, name)?.ca = Some(value.into()),
        "cert" => identity(config, name)?.0 = value.into(),
        "key" => identity(config, name)?.1 = value.into(),
        "sentinel_user" => sentinel_login(config, name)?.user = Some(value),
        "sentinel_password" => sentinel_login(config, name)?.password = Some(value),
        _ => {
            let name = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
            return Err(invalid(format!(
                "`{name}` is no parameter of a Redis URL; there are prefix, db, connections, reply_within_ms, \
                 connect_within_ms, durability, ca, cert, key, sentinel_user and sentinel_password"
            )));
        }
    }
    Ok(())
}

fn encrypted<'a>(config: &'a mut Config, name: &str) -> Result<&'a mut Tls> {
    config
        .tls
        .as_mut()
        .ok_or_else(|| invalid(format!("`{name}` needs an encrypted connection: write rediss")))
}

fn identity<'a>(
    config: &'a mut Config,
    name: &str,
) -> Result<&'a mut (std::path::PathBuf, std::path::PathBuf)> {
    Ok(encrypted(config, name)?.identity.get_or_insert_default())
}

fn sentinel_login<'a>(config: &'a mut Config, name: &str) -> Result<&'a mut Login> {
    match &mut config.servers {
        Kind::Sentinel { login, .. } => Ok(login),
        Kind::One | Kind::Cluster => {
            Err(invalid(format!("`{name}` is for redis+sentinel:// only: leave it out")))
        }
    }
}

fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N> {
    text.parse().map_err(|_| invalid(format!("{what} in the URL is not a number in its range: correct it")))
}

/// Text with its `%41` as `A`.
fn decoded(text: &str) -> Result<String> {
    let bad = || invalid("the URL has a `%` that two hex digits do not follow: write %25 for a percent sign");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        bytes.push(if *first == b'%' {
            let (digits, behind) = rest.split_first_chunk::<2>().ok_or_else(bad)?;
            rest = behind;
            std::str::from_utf8(digits)
                .ok()
                .and_then(|two| u8::from_str_radix(two, 16).ok())
                .ok_or_else(bad)?
        } else {
            *first
        });
    }
    String::from_utf8(bytes).map_err(|_| invalid("the URL is not UTF-8 after percent-decoding: correct it"))
}

#[cold]
fn unlike_a_url() -> semel::Error {
    invalid(
        "this is no URL of Redis; write redis://HOST:PORT, rediss://…, redis+cluster://H:P,H:P, rediss+cluster://…, \
         redis+sentinel://H:P,H:P/MASTER or rediss+sentinel://…",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    #[test]
    fn one_server_is_understood_with_all_its_parts() {
        let config =
            parse("redis://ana:p%40ss@redis.example:6380/3?prefix=a:b&connections=2&durability=always");
        let config = config.unwrap();
        assert_eq!((config.servers, config.addresses), (Kind::One, vec![at("redis.example", 6_380)]));
        assert_eq!((config.database, config.connections, &*config.prefix), (3, 2, "a:b"));
        assert_eq!(config.login.user.as_deref(), Some("ana"));
        assert_eq!(config.login.password.as_deref(), Some("p@ss"));
        assert_eq!((config.tls, config.wanted), (None, Some(Durability::Always)));
        let bare = parse("redis://:only@[::1]").unwrap();
        assert_eq!((bare.addresses, bare.login.user), (vec![at("::1", 6_379)], None));
    }

    #[test]
    fn encrypted_ones_take_certificates_and_plain_ones_do_not() {
        let config = parse("rediss://localhost?ca=/c.pem&cert=/i.pem&key=/k.pem&reply_within_ms=70").unwrap();
        assert_eq!(config.reply_within, Duration::from_millis(70));
        let identity = Some(("/i.pem".into(), "/k.pem".into()));
        assert_eq!(config.tls, Some(Tls { ca: Some("/c.pem".into()), identity }));
        assert!(parse("redis://localhost?ca=/c.pem").unwrap_err().to_string().contains("write rediss"));
    }

    #[test]
    fn clusters_and_sentinels_take_several_addresses() {
        let cluster = parse("rediss+cluster://a:1,b,[::1]:3").unwrap();
        assert_eq!((cluster.servers, cluster.tls.is_some()), (Kind::Cluster, true));
        assert_eq!(cluster.addresses, [at("a", 1), at("b", 6_379), at("::1", 3)]);
        let watched = parse("redis+sentinel://u:p@a,b:2/main/5?sentinel_password=q").unwrap();
        assert_eq!((watched.database, watched.addresses), (5, vec![at("a", 26_379), at("b", 2)]));
        let login = Login { user: None, password: Some("q".to_owned()) };
        assert_eq!(watched.servers, Kind::Sentinel { master: "main".to_owned(), login });
    }

    #[test]
    fn what_is_wrong_is_named_without_the_password() {
        for url in [
            "http://ana:s3cret@h",
            "redis:h",
            "redis://ana:s3cret@",
            "redis://ana:s3cret@h:port",
            "redis://ana:s3cret@a,b",
            "redis://ana:s3cret@h/many",
            "redis://ana:s3cret@h?colour=s3cret",
            "redis://ana:s3cret%@h",
            "redis+sentinel://ana:s3cret@h",
            "redis://ana:s3cret@h?sentinel_password=s3cret",
            "redis://ana:s3cret@h?durability=s3cret",
        ] {
            let error = parse(url).unwrap_err();
            assert_eq!(error.kind(), semel::ErrorKind::Invalid, "{url}");
            assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
        }
    }
}
