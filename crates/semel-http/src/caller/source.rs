//! One place where a caller may be found.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::{AUTHORIZATION, COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;
use sha2::{Digest, Sha256};

use super::address;
#[cfg(feature = "jwt")]
use super::jwt::{Claim, Jwt};
use super::name::Caller;
use super::unknown::UnknownCaller;

/// One place where a caller may be found.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) kind: Kind,
    /// How many sources of the same kind are asked before it: what one calls `7`, another may call `7`, too.
    pub(super) before: usize,
}

/// Asks a function of the application who the caller is.
type Ask<T> = dyn Fn(&T) -> Option<String> + Send + Sync;

#[derive(Clone)]
pub(super) enum Kind {
    Header(Arc<str>),
    Cookie(Arc<str>),
    Extension {
        of: &'static str,
        read: fn(&Parts) -> Option<String>,
    },
    Address {
        trusted: Arc<[IpNet]>,
    },
    LoneAddress {
        trusted: Arc<[IpNet]>,
    },
    Function(Arc<Ask<Parts>>),
    Bearer(Arc<Ask<str>>),
    #[cfg(feature = "jwt")]
    Jwt(Arc<Jwt>),
    Shared,
}

impl Source {
    /// Who sent a request; `None` if this source does not say, and another may.
    pub(super) fn caller(&self, parts: &Parts) -> Result<Option<Caller>, UnknownCaller> {
        let word = self.kind.word();
        let named = |text: String| Caller::named(word, self.before, &text);
        Ok(match &self.kind {
            Kind::Header(name) => header(&parts.headers, name),
            Kind::Cookie(name) => cookie(&parts.headers, name),
            Kind::Extension { read, .. } => read(parts).and_then(named),
            Kind::Address { trusted } => {
                address::of(parts, trusted).and_then(|address| by_address(word, address))
            }
            Kind::LoneAddress { trusted } => {
                address::lone(parts, trusted)?.and_then(|address| by_address(word, address))
            }
            Kind::Function(f) => f(parts).and_then(named),
            Kind::Bearer(verify) => bearer(&parts.headers).and_then(&**verify).and_then(named),
            #[cfg(feature = "jwt")]
            Kind::Jwt(jwt) => return self.jwt(jwt, &parts.headers),
            Kind::Shared => Caller::named(word, 0, "all"),
        })
    }

    /// A bearer token that is no good is refused here, and no other source is asked.
    #[cfg(feature = "jwt")]
    fn jwt(&self, jwt: &Jwt, headers: &HeaderMap) -> Result<Option<Caller>, UnknownCaller> {
        let Some(token) = bearer(headers) else {
            return if states_bearer(headers) {
                Err(UnknownCaller::InvalidToken("there is not exactly one Authorization with one token"))
            } else {
                Ok(None)
            };
        };
        match jwt.claim_of(token) {
            Ok(Claim::Text(text)) => Ok(Caller::named(self.kind.word(), self.before, &text)),
            // `7` and `"7"` are two callers.
            Ok(Claim::Number(number)) => Ok(Caller::named("jwt-number", self.before, &number)),
            Err(reason) => Err(UnknownCaller::InvalidToken(reason)),
        }
    }

    /// Whether there are requests that it does not name a caller of.
    pub(super) fn may_not_know(&self) -> bool {
        !matches!(self.kind, Kind::Address { .. } | Kind::LoneAddress { .. } | Kind::Shared)
    }

    /// Whether callers are known by a digest of what looks like a JWT.
    pub(super) fn digests_jwt(&self, headers: &HeaderMap) -> bool {
        let Kind::Header(name) = &self.kind else { return false };
        **name == *AUTHORIZATION.as_str() && bearer(headers).is_some_and(looks_like_jwt)
    }
}

fn by_address(word: &str, address: IpAddr) -> Option<Caller> {
    Caller::named(word, 0, &address.to_string())
}

impl Kind {
    /// What its callers' names begin with.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Header(_) => "header",
            Self::Cookie(_) => "cookie",
            Self::Extension { .. } => "extension",
            // One word for both: an address is the same caller, however sure it is.
            Self::Address { .. } | Self::LoneAddress { .. } => "address",
            Self::Function(_) => "function",
            Self::Bearer(_) => "bearer",
            #[cfg(feature = "jwt")]
            Self::Jwt(_) => "jwt",
            Self::Shared => "shared",
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Header(name) => write!(f, "header {name}"),
            Kind::Cookie(name) => write!(f, "cookie {name}"),
            Kind::Extension { of, .. } => write!(f, "extension {of}"),
            Kind::Address { trusted } if trusted.is_empty() => f.write_str("peer address"),
            Kind::Address { trusted } => write!(f, "peer address behind {trusted:?}"),
            Kind::LoneAddress { trusted } => write!(f, "peer address of one caller behind {trusted:?}"),
            Kind::Function(_) => f.write_str("function"),
            Kind::Bearer(_) => f.write_str("verified bearer token"),
            #[cfg(feature = "jwt")]
            Kind::Jwt(jwt) => jwt.fmt(f),
            Kind::Shared => f.write_str("shared"),
        }
    }
}

/// In words for people.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Header(name) => write!(f, "a digest of `{name}`"),
            Kind::Cookie(name) => write!(f, "a digest of the cookie `{name}`"),
            Kind::Extension { .. } => f.write_str("what authentication found"),
            Kind::Address { .. } => f.write_str("address"),
            Kind::LoneAddress { .. } => {
                f.write_str("address, but requests with a cookie or through an unknown proxy are refused")
            }
            Kind::Function(_) => f.write_str("a function"),
            Kind::Bearer(_) => f.write_str("a verified bearer token"),
            #[cfg(feature = "jwt")]
            Kind::Jwt(jwt) => write!(f, "the claim `{}` of a verified token", jwt.claim_name()),
            Kind::Shared => f.write_str("nothing: all callers are one"),
        }
    }
}

/// A caller by all lines of a header. Empty lines are no credentials: all who send them would be one caller
/// with everybody else who does.
fn header(headers: &HeaderMap, name: &str) -> Option<Caller> {
    let lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    Some(Caller::digested_header(name, &digest(lines)?))
}

/// A caller by all values of a cookie. With several, services differ on which one counts; those who send the same list
/// are the same caller to each of them.
fn cookie(headers: &HeaderMap, name: &str) -> Option<Caller> {
    let pairs = headers.get_all(COOKIE).iter().flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let values = pairs.filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let (stated, value) = pair.split_at(at);
        (stated.trim_ascii() == name.as_bytes()).then(|| value.get(1..).unwrap_or_default().trim_ascii())
    });
    Some(Caller::digested_cookie(name, &digest(values)?))
}

/// A digest of values, and of where each ends; `None` if all are empty.
fn digest<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<[u8; 32]> {
    let mut digest = Sha256::new();
    let mut is_stated = false;
    for value in values {
        is_stated |= !value.trim_ascii().is_empty();
        digest.update((value.len() as u64).to_be_bytes());
        digest.update(value);
    }
    is_stated.then(|| digest.finalize().into())
}

/// Whether a request claims to have a bearer token, well-formed or not.
#[cfg(feature = "jwt")]
fn states_bearer(headers: &HeaderMap) -> bool {
    headers.get_all(AUTHORIZATION).iter().any(|line| {
        let scheme = line.as_bytes().trim_ascii_start().get(..6);
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer"))
    })
}

/// Three parts in base64url, the first of which begins a JSON object.
fn looks_like_jwt(token: &str) -> bool {
    token.starts_with("eyJ") && token.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// The bearer token of a request that has one, and no other credentials beside it.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let (scheme, token) = line.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
