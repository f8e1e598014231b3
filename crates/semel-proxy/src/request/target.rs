//! Where a request goes: its path behind the upstream's own, and its host.

use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Uri, Version};
use semel::{Error, ErrorKind, Result};

use crate::settings::UpstreamVersion;

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
