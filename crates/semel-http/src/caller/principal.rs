//! `Principal`: which part of a request says who its caller is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{any, fmt};

use http::request::Parts;
use ipnet::IpNet;

#[cfg(feature = "jwt")]
use super::jwt::Jwt;
use super::name::Caller;
use super::source::{Kind, Source};
use super::unknown::{UnknownCaller, Warnings};

/// Who a caller is: where that is to be found in a request. A key belongs to one caller; nobody else sees it.
///
/// ```
/// use semel_http::Principal;
///
/// // Whoever has the same credentials is the same caller; without any, whoever has the same address.
/// let principal = Principal::header("authorization").or(Principal::peer_address());
/// # let (parts, ()) = http::Request::new(()).into_parts();
/// assert!(principal.caller(&parts).is_none());
/// ```
#[derive(Clone)]
pub struct Principal {
    sources: Arc<Vec<Source>>,
    warnings: Arc<Warnings>,
}

/// The address that a request came from: a request extension, put there by whoever accepts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub SocketAddr);

impl Principal {
    /// By a digest of what the header `name` holds, all lines of it. Whoever sends the same is the same caller.
    ///
    /// A name that no header can have is never found, so nobody is known by it.
    pub fn header(name: &str) -> Self {
        Self::of(Kind::Header(name.to_ascii_lowercase().into()))
    }

    /// By a digest of the value of the cookie `name`: the session of a browser, say. All values count if there are several.
    pub fn cookie(name: &str) -> Self {
        Self::of(Kind::Cookie(name.into()))
    }

    /// By a request extension that authentication put there, before the layer.
    pub fn from_extension<T: AsRef<str> + Clone + Send + Sync + 'static>() -> Self {
        let read = |parts: &Parts| parts.extensions.get::<T>().map(|value| value.as_ref().to_owned());
        Self::of(Kind::Extension { of: any::type_name::<T>(), read })
    }

    /// By the IP address of the other end of the connection, as [`PeerAddress`] says it (with the feature `axum`,
    /// also `ConnectInfo<SocketAddr>`). Forwarded headers are not looked at.
    pub fn peer_address() -> Self {
        Self::peer_address_behind(Vec::new())
    }

    /// As [`peer_address`](Self::peer_address), but behind proxies of these networks: `X-Forwarded-For` is read from
    /// its end, and only as far as trusted proxies wrote it.
    pub fn peer_address_behind(trusted: Vec<IpNet>) -> Self {
        Self::of(Kind::Address { trusted: trusted.into() })
    }

    /// As [`peer_address_behind`](Self::peer_address_behind), but only where the address can be that of one caller. Refused
    /// are requests with a `Cookie` or with credentials that no source before this one read, requests with a
    /// forwarding header (`X-Forwarded-For`, `Forwarded`, `X-Real-IP`, `Via`, …) from a peer that is not trusted, and
    /// requests of a trusted proxy that does not say for whom it asks.
    pub fn lone_peer_address(trusted: Vec<IpNet>) -> Self {
        Self::of(Kind::LoneAddress { trusted: trusted.into() })
    }

    /// By what a function makes of the request. `None`, or an empty text, if it does not know.
    pub fn function(f: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::of(Kind::Function(Arc::new(f)))
    }

    /// By what `verify` makes of the bearer token: the caller, if the token is good. So a refreshed token is still the
    /// same caller.
    pub fn verified_bearer(verify: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::of(Kind::Bearer(Arc::new(verify)))
    }

    /// By a claim of the bearer token, if its signature and its times are good. A request with a bearer token that is not
    /// is refused with 401, and no further source is asked: otherwise an expired token would make another caller.
    #[cfg(feature = "jwt")]
    pub fn jwt(jwt: Jwt) -> Self {
        Self::of(Kind::Jwt(Arc::new(jwt)))
    }

    /// All callers are one: each sees what every other did under the same key.
    pub fn shared() -> Self {
        Self::of(Kind::Shared)
    }

    /// By this; or, if this does not know, by the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let mut sources = Arc::unwrap_or_clone(self.sources);
        for Source { kind, .. } in Arc::unwrap_or_clone(other.sources) {
            let before = sources.iter().filter(|source| source.kind.word() == kind.word()).count();
            sources.push(Source { kind, before });
        }
        Self { sources: Arc::new(sources), warnings: Arc::default() }
    }

    /// Who sent this request. `None` if nothing in it says so.
    pub fn caller(&self, parts: &Parts) -> Option<Caller> {
        self.find(parts).ok()
    }

    /// Who sent this request, or why that is not known. What the operator should know is logged.
    pub(crate) fn identify(&self, parts: &Parts) -> Result<Caller, UnknownCaller> {
        self.find(parts).inspect_err(|unknown| self.warnings.refused(unknown))
    }

    fn find(&self, parts: &Parts) -> Result<Caller, UnknownCaller> {
        for source in self.sources.iter() {
            if let Some(caller) = source.caller(parts)? {
                if source.digests_jwt(&parts.headers) {
                    self.warnings.jwt_digested();
                }
                return Ok(caller);
            }
        }
        Err(UnknownCaller::NotStated)
    }

    fn of(kind: Kind) -> Self {
        Self { sources: Arc::new(vec![Source { kind, before: 0 }]), warnings: Arc::default() }
    }
}

/// How callers are told apart, in words for people.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, source) in self.sources.iter().enumerate() {
            let before = if index == 0 { "" } else { "; without it by " };
            write!(f, "{before}{source}")?;
        }
        match self.sources.last() {
            Some(last) if last.may_not_know() => f.write_str("; a request without it is refused"),
            Some(_) | None => Ok(()),
        }
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal")?;
        f.debug_list().entries(self.sources.iter()).finish()
    }
}

#[cfg(test)]
mod tests;
