//! One place where a caller may be found.

use std::fmt;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;
use sha2::{Digest, Sha256};

use super::address;
#[cfg(feature = "jwt")]
use super::jwt::{Claim, Jwt};
use super::name::Caller;

/// One place where a caller may be found.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) kind: Kind,
    /// How many sources of the same kind are asked before it: what one calls `7`, another may call `7`, too.
    pub(super) before: usize,
}

/// Asks somebody else who it is.
type Ask<T> = dyn Fn(&T) -> Option<String> + Send + Sync;

#[derive(Clone)]
pub(super) enum Kind {
    Header(Arc<str>),
    Extension {
        of: &'static str,
        read: fn(&Parts) -> Option<String>,
    },
    Address {
        trusted: Arc<[IpNet]>,
    },
    Function(Arc<Ask<Parts>>),
    Bearer(Arc<Ask<str>>),
    #[cfg(feature = "jwt")]
    Jwt(Arc<Jwt>),
    Shared,
}

impl Source {
    pub(super) fn caller(&self, parts: &Parts) -> Option<Caller> {
        let named = |text: String| Caller::named(self.kind.word(), self.before, &text);
        match &self.kind {
            Kind::Header(name) => header(&parts.headers, name),
            Kind::Extension { read, .. } => named(read(parts)?),
            Kind::Address { trusted } => {
                let address = address::of(parts, trusted)?;
                Caller::named(self.kind.word(), 0, &address.to_string())
            }
            Kind::Function(f) => named(f(parts)?),
            Kind::Bearer(verify) => named(verify(bearer(&parts.headers)?)?),
            #[cfg(feature = "jwt")]
            Kind::Jwt(jwt) => match jwt.claim_of(bearer(&parts.headers)?)? {
                Claim::Text(text) => named(text),
                // `7` and `"7"` are two callers.
                Claim::Number(number) => Caller::named("jwt-number", self.before, &number),
            },
            Kind::Shared => Caller::named(self.kind.word(), 0, "all"),
        }
    }
}

impl Kind {
    /// What its callers' names begin with.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Header(_) => "header",
            Self::Extension { .. } => "extension",
            Self::Address { .. } => "address",
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
            Kind::Extension { of, .. } => write!(f, "extension {of}"),
            Kind::Address { trusted } if trusted.is_empty() => f.write_str("peer address"),
            Kind::Address { trusted } => write!(f, "peer address behind {trusted:?}"),
            Kind::Function(_) => f.write_str("function"),
            Kind::Bearer(_) => f.write_str("verified bearer token"),
            #[cfg(feature = "jwt")]
            Kind::Jwt(jwt) => jwt.fmt(f),
            Kind::Shared => f.write_str("shared"),
        }
    }
}

/// A caller by all lines of a header. Empty lines are nobody's credentials: whoever sends them would be one caller
/// with everybody else who does.
fn header(headers: &HeaderMap, name: &str) -> Option<Caller> {
    let lines = || headers.get_all(name).iter().map(HeaderValue::as_bytes);
    if lines().all(|line| line.trim_ascii().is_empty()) {
        return None;
    }
    let mut digest = Sha256::new();
    for line in lines() {
        digest.update((line.len() as u64).to_be_bytes());
        digest.update(line);
    }
    Some(Caller::digested_header(name, digest.finalize().as_slice()))
}

/// The bearer token of a request that has one, and no other credentials beside it.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let (scheme, token) = line.to_str().ok()?.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
