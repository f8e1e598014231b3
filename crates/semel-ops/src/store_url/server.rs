//! `http://HOST:PORT` or `https://HOST:PORT`: a running semel server, through which its store is looked into and acted on.

use std::fmt;
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, Scheme};
use semel::{Error, ErrorKind, Result};

/// Where a running server is: `semel serve`, or the admin side of `semel proxy`. It never holds a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    scheme: Scheme,
    authority: Authority,
}

impl ServerUrl {
    /// The host, without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    /// The port: 80 or 443 if none was given.
    pub fn port(&self) -> u16 {
        self.authority.port_u16().unwrap_or(if self.is_secured() { 443 } else { 80 })
    }

    /// Host and port as they were given, for the header `Host`.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Whether it is `https://`.
    pub fn is_secured(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// What is said to a program that wants to open it as its own store.
    pub fn is_no_store(&self) -> Error {
        refused(format!(
            "`{self}` is a running server, and this needs the store itself; give the store's own address: `file:FOLDER` once \
             no process uses it, `postgres://…` or `redis://…`"
        ))
    }
}

impl FromStr for ServerUrl {
    type Err = Error;

    /// What may be a secret is not repeated in an error.
    fn from_str(text: &str) -> Result<Self> {
        const HOW: &str = "write `http://HOST:PORT` or `https://HOST:PORT`";
        if text.contains(['@', '?', '#']) {
            return Err(refused(format!(
                "the URL of a server holds no token, user or password: other users of the machine can see it. Put the token into \
                 SEMEL_TOKEN, or into a file that --token-file names, and {HOW}"
            )));
        }
        let uri: Uri =
            text.parse().map_err(|error| refused(format!("this is not a URL ({error}); {HOW}")))?;
        if !matches!(uri.path(), "" | "/") {
            return Err(refused(format!("the URL of a server has no path; {HOW}")));
        }
        let parts = uri.into_parts();
        match (parts.scheme, parts.authority) {
            // Behind the host, only a port is left: one that is no number must not become the usual one.
            (Some(_), Some(authority))
                if authority.as_str() != authority.host() && authority.port_u16().is_none() =>
            {
                Err(refused(format!("the port of this URL is not a number from 1 to 65535; {HOW}")))
            }
            (Some(scheme), Some(authority)) if !authority.host().is_empty() => Ok(Self { scheme, authority }),
            _ => Err(refused(format!("the URL of a server needs a host; {HOW}"))),
        }
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)
    }
}

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_host_and_a_port_and_the_port_may_be_the_usual_one() {
        for (text, host, port) in [
            ("http://127.0.0.1:4747", "127.0.0.1", 4747),
            ("http://localhost", "localhost", 80),
            ("https://semel.example/", "semel.example", 443),
            ("https://[::1]:9464", "::1", 9464),
        ] {
            let url: ServerUrl = text.parse().expect("is fine");
            assert_eq!((url.host(), url.port()), (host, port));
            assert_eq!(url.to_string(), text.trim_end_matches('/'));
        }
    }

    #[test]
    fn a_secret_in_the_url_is_refused_with_where_it_belongs_and_not_repeated() {
        for text in ["http://s3cret@h", "http://u:s3cret@h:1", "http://h?token=s3cret", "http://h#s3cret"] {
            let error = text.parse::<ServerUrl>().expect_err(text).to_string();
            assert!(error.contains("SEMEL_TOKEN") && error.contains("--token-file"), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        for text in ["http://", "http://h/v1", "http://h:x", "http://h:", "http://h:99999", "http:h"] {
            let error = text.parse::<ServerUrl>().expect_err(text).to_string();
            assert!(error.contains("http://HOST:PORT"), "{error}");
        }
    }
}
