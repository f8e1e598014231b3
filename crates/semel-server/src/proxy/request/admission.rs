//! What is let in at all, in one form whatever the version of HTTP: origin-form, and one `Host`.

use http::header::{HOST, TRANSFER_ENCODING};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, Version};
use http_body::Body;

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::proxy) enum Refused {
    /// `CONNECT` would make an open proxy of this one.
    Connect,
    /// `TRACE` has no body.
    TraceWithBody,
    /// The target is neither a path nor, for `OPTIONS`, `*`.
    Target,
    /// No `Host`, or several, or another than the target's.
    Host,
    /// A transfer coding other than `chunked` alone.
    Coding,
}

impl Refused {
    pub(in crate::proxy) fn status(self) -> StatusCode {
        match self {
            Self::Connect => StatusCode::METHOD_NOT_ALLOWED,
            Self::TraceWithBody | Self::Target | Self::Host | Self::Coding => StatusCode::BAD_REQUEST,
        }
    }

    pub(in crate::proxy) fn detail(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT is not served here",
            Self::TraceWithBody => "a TRACE request must not have a body",
            Self::Target => "the request's target must be a path; only OPTIONS may say `*`",
            Self::Host => "a request must name one host, and its target must not name another",
            Self::Coding => "the only transfer coding that is read is `chunked`, once",
        }
    }
}

/// Lets a request in, and gives it one form: the path as its target, and the host in `Host`.
pub(in crate::proxy) fn admit<B: Body>(request: &mut Request<B>) -> Result<(), Refused> {
    if request.method() == Method::CONNECT {
        return Err(Refused::Connect);
    }
    if request.method() == Method::TRACE && !request.body().is_end_stream() {
        return Err(Refused::TraceWithBody);
    }
    one_coding(request.headers())?;
    one_host(request)?;
    origin_form(request)
}

/// What was inside a second coding would reach the upstream as if it were the body.
fn one_coding(headers: &HeaderMap) -> Result<(), Refused> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(Refused::Coding),
    }
}

fn one_host<B>(request: &mut Request<B>) -> Result<(), Refused> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(Refused::Host);
    }
    let Some(authority) = request.uri().authority() else {
        // Only HTTP/1.0 may leave it out.
        return if host.is_some() || request.version() == Version::HTTP_10 {
            Ok(())
        } else {
            Err(Refused::Host)
        };
    };
    if authority.as_str().contains('@') {
        return Err(Refused::Host);
    }
    match host {
        Some(host) if host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes()) => Ok(()),
        Some(_) => Err(Refused::Host),
        None => {
            let host = HeaderValue::from_str(authority.as_str()).map_err(|_| Refused::Host)?;
            request.headers_mut().insert(HOST, host);
            Ok(())
        }
    }
}

fn origin_form<B>(request: &mut Request<B>) -> Result<(), Refused> {
    let uri = request.uri();
    let path = uri.path();
    let is_path = path.starts_with('/') || (path == "*" && request.method() == Method::OPTIONS);
    let is_http = uri.scheme().is_none_or(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
    if !is_path || !is_http {
        return Err(Refused::Target);
    }
    if uri.authority().is_some() {
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(path);
    }
    Ok(())
}
