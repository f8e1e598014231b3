//! What becomes of a request's head between a client and the upstream: its headers, and where it goes.
//!
//! The upstream sees the client's own `Host`: a service that is put behind the proxy must make the same links as
//! before. `X-Forwarded-For`, `-Proto` and `-Host` say the rest. They are appended to what a trusted proxy in front
//! wrote, and replace whatever anybody else did. `Via` is not written, as with most gateways: it would tell outsiders
//! what runs here and help nobody.

use std::net::IpAddr;

use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE,
    CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, DATE,
    EXPECT, EXPIRES, FORWARDED, HOST, LOCATION, RETRY_AFTER, SET_COOKIE, STRICT_TRANSPORT_SECURITY, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE, VARY, WWW_AUTHENTICATE,
};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, Version};
use ipnet::IpNet;
use semel::{Error, ErrorKind, Result};

use crate::settings::UpstreamVersion;

static FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
static REAL: HeaderName = HeaderName::from_static("x-real-ip");
static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// Takes out what the client said to this proxy alone. What is left of `TE` is `trailers`, which gRPC asks for.
pub(crate) fn strip_request(headers: &mut HeaderMap) {
    let trailers = wants_trailers(headers);
    strip(headers);
    // The proxy answers it itself, as soon as the body is wanted.
    headers.remove(EXPECT);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
}

/// Takes out headers with an underscore in their name: to some services they are the same as those with a hyphen.
pub(crate) fn strip_underscores(headers: &mut HeaderMap) {
    remove_where(headers, |name| name.contains('_'));
}

/// Takes out of a request's trailers what only a head may say: how the message is framed, where it goes, whose it is and
/// what it must happen once under. The proxy has decided all that from the head; nobody may hear something else later.
pub(crate) fn strip_trailers(trailers: &mut HeaderMap) {
    strip(trailers);
    for name in [&AUTHORIZATION, &CONTENT_LENGTH, &COOKIE, &EXPECT, &FORWARDED, &HOST, &TRAILER] {
        trailers.remove(name);
    }
    remove_where(trailers, |name| {
        name.ends_with("idempotency-key") || name.starts_with("x-forwarded-") || name.contains('_')
    });
}

/// Takes out of an answer's trailers what RFC 9110, 6.5.1 keeps out of them: framing, routing, authentication, cookies, how
/// the content is to be read, and how the answer is to be handled. Everything else passes: `grpc-status`, checksums.
pub(crate) fn strip_response_trailers(trailers: &mut HeaderMap) {
    strip(trailers);
    for name in &NEVER_IN_RESPONSE_TRAILERS {
        trailers.remove(name);
    }
    // What says that an answer is stored, until when and whether it is protected is for the proxy's own head.
    remove_where(trailers, |name| name.starts_with("idempoten"));
}

/// Fields of an answer that are read before its body, or decide who may see it.
const NEVER_IN_RESPONSE_TRAILERS: [HeaderName; 24] = [
    AGE,
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_DISPOSITION,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_LENGTH,
    CONTENT_LOCATION,
    CONTENT_RANGE,
    CONTENT_SECURITY_POLICY,
    CONTENT_TYPE,
    COOKIE,
    DATE,
    EXPECT,
    EXPIRES,
    FORWARDED,
    HOST,
    LOCATION,
    RETRY_AFTER,
    SET_COOKIE,
    STRICT_TRANSPORT_SECURITY,
    TRAILER,
    VARY,
    WWW_AUTHENTICATE,
];

/// Takes out what one side said to this proxy alone.
pub(crate) fn strip(headers: &mut HeaderMap) {
    strip_named(headers);
    for name in [&TRANSFER_ENCODING, &UPGRADE, &TE, &KEEP_ALIVE] {
        headers.remove(name);
    }
    remove_where(headers, is_for_proxies);
}

fn remove_where(headers: &mut HeaderMap, is_refused: impl Fn(&str) -> bool) {
    if headers.keys().any(|name| is_refused(name.as_str())) {
        let names: Vec<_> = headers.keys().filter(|name| is_refused(name.as_str())).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }
}

/// `Proxy-…` is for proxies, and `Proxy` becomes `HTTP_PROXY` in the environment of a careless service.
fn is_for_proxies(name: &str) -> bool {
    name == "proxy" || name.starts_with("proxy-")
}

/// Takes out `Connection`, and what it names. Names that frame or route a message are not for it to name.
fn strip_named(headers: &mut HeaderMap) {
    if !headers.contains_key(CONNECTION) {
        return;
    }
    let values: Vec<_> = headers.get_all(CONNECTION).iter().cloned().collect();
    headers.remove(CONNECTION);
    let names = values.iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    for name in names.filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok()) {
        if name != CONTENT_LENGTH && name != HOST {
            headers.remove(name);
        }
    }
}

fn wants_trailers(headers: &HeaderMap) -> bool {
    headers.get_all(TE).iter().any(|value| {
        value
            .as_bytes()
            .split(|byte| *byte == b',')
            .any(|word| word.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    })
}

/// What the upstream is told of clients.
#[derive(Clone, Debug)]
pub(crate) struct Forwarded {
    trusted: Vec<IpNet>,
    proto: HeaderValue,
}

impl Forwarded {
    /// Clients come over TLS, or not; proxies in these networks speak the truth.
    pub(crate) fn new(over_tls: bool, trusted: Vec<IpNet>) -> Self {
        let proto = HeaderValue::from_static(if over_tls { "https" } else { "http" });
        Self { trusted, proto }
    }

    /// Says of a request where it came from.
    pub(crate) fn tell(&self, headers: &mut HeaderMap, peer: IpAddr) {
        let peer = peer.to_canonical();
        if self.trusted.iter().any(|network| network.contains(&peer)) {
            append_hop(headers, peer);
            headers.entry(&PROTO).or_insert_with(|| self.proto.clone());
        } else {
            for spoofed in [&FORWARDED, &PORT, &REAL] {
                headers.remove(spoofed);
            }
            if let Ok(peer) = HeaderValue::try_from(peer.to_string()) {
                headers.insert(&FOR, peer);
            }
            headers.insert(&PROTO, self.proto.clone());
            headers.remove(&FORWARDED_HOST);
        }
        if !headers.contains_key(&FORWARDED_HOST)
            && let Some(host) = headers.get(HOST).cloned()
        {
            headers.insert(&FORWARDED_HOST, host);
        }
    }
}

/// Adds a hop at the end, on the same line: some services read only the first line.
fn append_hop(headers: &mut HeaderMap, peer: IpAddr) {
    let mut hops = Vec::new();
    for line in headers.get_all(&FOR) {
        hops.extend_from_slice(line.as_bytes());
        hops.extend_from_slice(b", ");
    }
    hops.extend_from_slice(peer.to_string().as_bytes());
    if let Ok(hops) = HeaderValue::try_from(hops) {
        headers.insert(&FOR, hops);
    }
}

/// Where requests go.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    scheme: Scheme,
    authority: Authority,
    /// What comes before every path, without a `/` at its end.
    base: Box<str>,
    version: UpstreamVersion,
}

impl Target {
    pub(crate) fn new(upstream: &Uri, version: UpstreamVersion) -> Result<Self> {
        let refused = |why: &str| {
            Error::new(
                ErrorKind::Invalid,
                format!("the upstream `{upstream}` {why}; use `http://127.0.0.1:3000`, say"),
            )
        };
        let scheme = upstream.scheme().filter(|scheme| **scheme == Scheme::HTTP || **scheme == Scheme::HTTPS);
        let scheme = scheme.cloned().ok_or_else(|| refused("is neither http nor https"))?;
        let authority = upstream.authority().cloned().ok_or_else(|| refused("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("holds a user, which is not sent"));
        }
        if upstream.query().is_some() {
            return Err(refused("holds a query, which has no place before a path"));
        }
        let base = upstream.path().trim_end_matches('/').into();
        Ok(Self { scheme, authority, base, version })
    }

    /// Points a request at the upstream. The client's `Host` stays; one that has none gets the upstream's.
    pub(crate) fn point<B>(&self, request: &mut Request<B>) -> Option<()> {
        let path = self.path_behind(request.uri())?;
        match self.version {
            UpstreamVersion::Http1 => {
                *request.version_mut() = Version::HTTP_11;
                if !request.headers().contains_key(HOST) {
                    let host = HeaderValue::from_str(self.authority.as_str()).ok()?;
                    request.headers_mut().insert(HOST, host);
                }
                if let Some(path) = path {
                    *request.uri_mut() = Uri::from(path);
                }
            }
            UpstreamVersion::Http2 => {
                *request.version_mut() = Version::HTTP_2;
                let host = request.headers_mut().remove(HOST);
                let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
                let path = path.or_else(|| request.uri().path_and_query().cloned())?;
                *request.uri_mut() = Uri::builder()
                    .scheme(self.scheme.clone())
                    .authority(authority.unwrap_or_else(|| self.authority.clone()))
                    .path_and_query(path)
                    .build()
                    .ok()?;
            }
        }
        Some(())
    }

    /// The path with the base before it; `Some(None)` if it stays as it is.
    #[expect(clippy::option_option, reason = "cannot be, or need not change, or changes")]
    fn path_behind(&self, uri: &Uri) -> Option<Option<PathAndQuery>> {
        if self.base.is_empty() || uri.path() == "*" {
            return Some(None);
        }
        let path = uri.path_and_query()?;
        PathAndQuery::try_from(format!("{}{path}", self.base)).ok().map(Some)
    }
}

#[cfg(test)]
mod tests;
