//! Where a store is: what was written, and what it means; a password in it is never shown.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use semel::{Error, ErrorKind, Result};

use super::opened::{Migrated, Opened, Pending};
use super::server::ServerUrl;
use super::{file, memory, postgres, redis};

/// The store of whoever names none.
pub const DEFAULT: &str = "file:./semel-data";

/// What there is, for whoever asked for something else.
const AVAILABLE: &str = "there are `file:FOLDER`, `memory:`, `postgres://USER@HOST/DATABASE`, `redis://HOST`, \
                         `redis+cluster://HOST,HOST`, `redis+sentinel://HOST`, and `http://HOST:PORT` for a running server";
/// What stands where a password was.
const HIDDEN: &str = "***";
/// Parameters whose value is a secret, by a part of their name.
const SECRET_PARAMETERS: [&str; 4] = ["password", "passwd", "secret", "token"];

/// Where a store is. Shown without its password, also by `Debug`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// `memory:`, inside this process.
    Memory,
    /// `file:FOLDER`, on this machine's disk.
    File(PathBuf),
    /// `postgres://…` or `postgresql://…`.
    Postgres(Url),
    /// `redis://…`, `rediss://…`, and the same with `+cluster` or `+sentinel`.
    Redis(Url),
    /// `http://…` or `https://…`: a running server that has the store. Tools look into it there; no program opens it.
    Server(ServerUrl),
}

impl Address {
    /// Whether it holds something that must not be shown.
    pub fn has_password(&self) -> bool {
        match self {
            Self::Memory | Self::File(_) | Self::Server(_) => false,
            Self::Postgres(url) | Self::Redis(url) => url.to_string() != url.with_password(),
        }
    }

    /// The store. A folder that is missing is made.
    pub fn open(&self) -> Pending<'_, Opened> {
        match self {
            Self::Memory => at_once(Ok(memory::open())),
            Self::File(folder) => at_once(file::open(folder)),
            Self::Postgres(url) => postgres::open(url),
            Self::Redis(url) => redis::open(url),
            Self::Server(url) => at_once(Err(url.is_no_store())),
        }
    }

    /// The store, if there is one: nothing is made.
    pub fn open_existing(&self) -> Pending<'_, Opened> {
        match self {
            Self::Memory => at_once(Err(memory::elsewhere())),
            Self::File(folder) => at_once(file::open_existing(folder)),
            Self::Postgres(_) | Self::Redis(_) | Self::Server(_) => self.open(),
        }
    }

    /// The store, if there is one, and also if its server is set so that it cannot keep its promise: only to say why.
    pub fn open_to_check(&self) -> Pending<'_, Opened> {
        match self {
            Self::Postgres(url) => postgres::open_to_check(url),
            Self::Memory | Self::File(_) | Self::Redis(_) | Self::Server(_) => self.open_existing(),
        }
    }

    /// The store with room for this many small records, if it is one that is bounded by itself.
    pub fn open_with_room(&self, records: usize) -> Pending<'_, Opened> {
        match self {
            Self::Memory => at_once(Ok(memory::open_with_room(records))),
            Self::File(_) | Self::Postgres(_) | Self::Redis(_) | Self::Server(_) => self.open(),
        }
    }

    /// Makes what the store needs before it can be used, or brings it up to date.
    pub fn migrate(&self) -> Pending<'_, Migrated> {
        match self {
            Self::Memory | Self::File(_) | Self::Redis(_) => at_once(Ok(Migrated::NothingToDo)),
            Self::Postgres(url) => postgres::migrate(url),
            Self::Server(url) => at_once(Err(url.is_no_store())),
        }
    }
}

fn at_once<'a, T: Send + 'a>(answer: Result<T>) -> Pending<'a, T> {
    Box::pin(std::future::ready(answer))
}

impl Default for Address {
    fn default() -> Self {
        Self::File(DEFAULT.trim_start_matches("file:").into())
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = |message: String| Err(Error::new(ErrorKind::Invalid, message));
        match text.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("memory", _)) => refused("a memory store has no path: use `memory:`".to_owned()),
            Some(("file", "")) => {
                refused("a file store needs a folder: use `file:./semel-data`, say".to_owned())
            }
            Some(("file", folder)) => Ok(Self::File(folder.into())),
            Some(("postgres" | "postgresql", rest)) if has_host(rest) => Ok(Self::Postgres(Url::new(text))),
            Some(("postgres" | "postgresql", _)) => {
                refused("a PostgreSQL store needs a server: use `postgres://USER@HOST/DATABASE`".to_owned())
            }
            Some(("http" | "https", _)) => text.parse().map(Self::Server),
            Some((scheme, rest)) if is_redis(scheme) => {
                if has_host(rest) {
                    Ok(Self::Redis(Url::new(text)))
                } else {
                    refused(format!("a Redis store needs a server: use `{scheme}://HOST`"))
                }
            }
            Some((scheme, _)) => refused(format!("there is no store for `{scheme}:`; {AVAILABLE}")),
            // What was given may be a password without its URL: it is not repeated.
            None => refused(format!("this is not the address of a store: {AVAILABLE}")),
        }
    }
}

fn is_redis(scheme: &str) -> bool {
    let (plain, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
    matches!(plain, "redis" | "rediss") && matches!(kind, "" | "cluster" | "sentinel")
}

fn has_host(rest: &str) -> bool {
    rest.strip_prefix("//").is_some_and(|rest| !rest.is_empty())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::File(folder) => write!(f, "file:{}", folder.display()),
            Self::Postgres(url) | Self::Redis(url) => url.fmt(f),
            Self::Server(url) => url.fmt(f),
        }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The URL of a server. Only whoever connects sees all of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(Box<str>);

impl Url {
    /// The URL in this text.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// All of it, the password too: for the driver, and for nobody else.
    pub fn with_password(&self) -> &str {
        &self.0
    }

    /// The value of a parameter behind the `?`, as it was written; the last one, if there are several.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let (_, parameters) = self.0.split_once('?')?;
        let mut pairs = parameters.split('&').filter_map(|parameter| parameter.split_once('='));
        pairs.rfind(|(found, _)| *found == name).map(|(_, value)| value)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hidden(&self.0))
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The URL without what may be secret in it.
fn hidden(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    // Up to the last @, wherever it is: a password that was not escaped may hold any other character. If a parameter
    // holds one, too much is hidden, which harms nobody.
    let shown = match rest.rsplit_once('@') {
        None => rest.to_owned(),
        Some((who, place)) => match who.split_once(':') {
            Some((user, _)) => format!("{user}:{HIDDEN}@{place}"),
            None => format!("{who}@{place}"),
        },
    };
    let (place, parameters) = match shown.split_once('?') {
        Some((place, parameters)) => (place, Some(parameters)),
        None => (shown.as_str(), None),
    };
    let mut text = format!("{scheme}://{place}");
    if let Some(parameters) = parameters {
        let shown: Vec<_> = parameters.split('&').map(shown_parameter).collect();
        text.push('?');
        text.push_str(&shown.join("&"));
    }
    text
}

fn shown_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}"),
        _ => parameter.to_owned(),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_PARAMETERS.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_shown() {
        for text in [
            "memory:",
            "file:semel-data",
            "file:/a:b",
            "postgres://app@db/semel",
            "postgresql://db",
            "redis://h",
            "rediss://h:6380/1",
            "redis+cluster://a:1,b:2",
            "rediss+cluster://a:1",
            "redis+sentinel://a:26379/mymaster",
            "http://127.0.0.1:4747",
            "https://semel.example",
        ] {
            assert_eq!(text.parse::<Address>().expect("is fine").to_string(), text);
        }
    }

    #[test]
    fn the_default_is_a_folder_beside_you() {
        assert_eq!(Address::default().to_string(), DEFAULT);
        assert_eq!(DEFAULT.parse::<Address>().expect("is fine"), Address::default());
    }

    #[test]
    fn an_address_that_lacks_something_is_told_what() {
        for (text, said) in [
            ("file:", "file:./semel-data"),
            ("memory:/tmp", "use `memory:`"),
            ("postgres:", "postgres://USER@HOST"),
            ("postgres://", "postgres://USER@HOST"),
            ("redis+cluster:", "redis+cluster://HOST"),
        ] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn an_address_without_a_store_is_told_what_there_is() {
        for text in ["mysql://localhost", "memory", "", "redis+moon://h", "C:"] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains("`memory:`") && error.contains("`postgres://"), "{text}: {error}");
        }
    }

    #[test]
    fn an_address_shows_no_password_by_any_road() {
        let address: Address = "postgres://app:s3cret@db/semel".parse().expect("is fine");
        assert_eq!((address.to_string(), format!("{address:?}")).0, "postgres://app:***@db/semel");
        assert!(!format!("{address:?}").contains("s3cret"));
        assert!(address.has_password());
        assert!(!"postgres://app@db/semel".parse::<Address>().expect("is fine").has_password());
    }

    #[test]
    fn a_password_is_never_shown_wherever_it_stands() {
        for (url, shown) in [
            ("postgres://app:s3cret@db:5432/semel", "postgres://app:***@db:5432/semel"),
            ("postgres://app:s3/c?r@et@db/semel", "postgres://app:***@db/semel"),
            ("redis://:s3cret@cache", "redis://:***@cache"),
            (
                "postgres://db/semel?user=app&password=s3cret&x=1",
                "postgres://db/semel?user=app&password=***&x=1",
            ),
            ("redis+cluster://a:s3cret@h1:1,h2:2", "redis+cluster://a:***@h1:1,h2:2"),
            ("postgres://db/semel?sslPassword=s3cret", "postgres://db/semel?sslPassword=***"),
        ] {
            let url = Url::new(url);
            assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), shown.to_owned()));
            assert!(url.with_password().contains("s3"), "the driver gets it");
        }
    }

    #[test]
    fn a_parameter_is_found_by_its_whole_name_and_the_last_one_counts() {
        let url = Url::new("postgres://a?durability=promised&not_durability=1&durability=as-configured");
        assert_eq!(url.parameter("durability"), Some("as-configured"));
        assert_eq!(url.parameter("ability"), None);
        assert_eq!(Url::new("redis://durability=none@host").parameter("durability"), None);
    }

    #[test]
    fn a_url_without_a_password_is_shown_as_it_is() {
        for url in
            ["postgres://app@db:5432/semel?sslmode=require", "redis://h:6379/2", "redis+cluster://a:1,b:2"]
        {
            assert_eq!(Url::new(url).to_string(), url);
        }
    }
}
