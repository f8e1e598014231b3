//! The URL of a server, which may hold a password and never shows it.

use std::fmt;

/// What stands where a password was.
const HIDDEN: &str = "***";
/// Parameters whose value is a secret, by a part of their name.
const SECRET_PARAMETERS: [&str; 4] = ["password", "passwd", "secret", "token"];

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
    fn a_url_without_a_password_is_shown_as_it_is() {
        for url in
            ["postgres://app@db:5432/semel?sslmode=require", "redis://h:6379/2", "redis+cluster://a:1,b:2"]
        {
            assert_eq!(Url::new(url).to_string(), url);
        }
    }
}
