//! What is let in at all, in one form whatever the version of HTTP: origin-form, and one `Host`.

use http::header::{COOKIE, HOST, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, Version};
use http_body::Body;

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// `CONNECT` would make an open proxy of this one.
    Connect,
    /// `TRACE` has no body.
    TraceWithBody,
    /// The target is neither a path in ASCII nor, for `OPTIONS`, `*`.
    Target,
    /// No `Host`, or several, or none that is one, or another than the target's.
    Host,
    /// A transfer coding other than `chunked` alone.
    Coding,
}

impl Refused {
    /// The status that it is refused with.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Connect => StatusCode::METHOD_NOT_ALLOWED,
            Self::TraceWithBody | Self::Target | Self::Host | Self::Coding => StatusCode::BAD_REQUEST,
        }
    }

    /// Why, for the client.
    pub fn detail(self) -> &'static str {
        match self {
            Self::Connect => "CONNECT is not served here",
            Self::TraceWithBody => "a TRACE request must not have a body",
            Self::Target => {
                "the request's target must be a path, with what is not ASCII percent-encoded; only OPTIONS may say `*`"
            }
            Self::Host => "a request must name one host, and its target must not name another",
            Self::Coding => "the only transfer coding that is read is `chunked`, once",
        }
    }
}

/// Lets a request in, and gives it one form: the path as its target, and the host in `Host`.
pub fn admit<B: Body>(request: &mut Request<B>) -> Result<(), Refused> {
    if request.method() == Method::CONNECT {
        return Err(Refused::Connect);
    }
    if request.method() == Method::TRACE && !request.body().is_end_stream() {
        return Err(Refused::TraceWithBody);
    }
    one_coding(request.headers())?;
    one_host(request)?;
    one_cookie(request.headers_mut());
    origin_form(request)
}

/// HTTP/2 may send each pair of a cookie as a field of its own. Whoever reads them behind here, the upstream included, must
/// find one field, with the pairs in their order (RFC 9113, 8.2.3).
fn one_cookie(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let crumbs: Vec<_> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(mut cookie) = HeaderValue::from_bytes(&crumbs.join(b"; ".as_slice())) {
        cookie.set_sensitive(true);
        headers.insert(COOKIE, cookie);
    }
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
    if hosts.next().is_some() || host.is_some_and(|host| !is_host(host)) {
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

/// A host with or without a port, and nothing else: what one reader takes for the host, another must not.
fn is_host(value: &HeaderValue) -> bool {
    if value.is_empty() {
        return true;
    }
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'@' | b',' | b'/' | b'?' | b'#');
    let Some(authority) =
        value.as_bytes().iter().all(is_plain).then(|| Authority::try_from(value.as_bytes()))
    else {
        return false;
    };
    authority.is_ok_and(|authority| {
        let rest = authority.as_str().strip_prefix(authority.host());
        rest.is_some_and(|rest| rest.is_empty() || rest == ":" || authority.port_u16().is_some())
    })
}

fn origin_form<B>(request: &mut Request<B>) -> Result<(), Refused> {
    let uri = request.uri();
    let path = uri.path();
    let is_path = path.starts_with('/') || (path == "*" && request.method() == Method::OPTIONS);
    let is_http = uri.scheme().is_none_or(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
    let is_ascii = uri.path_and_query().is_none_or(|target| target.as_str().is_ascii());
    if !is_path || !is_http || !is_ascii {
        return Err(Refused::Target);
    }
    if uri.authority().is_some() {
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_one_name_and_perhaps_one_port() {
        for host in ["", "api.test", "api.test:8080", "127.0.0.1:1", "[::1]", "[::1]:443", "api_1.test:"] {
            assert!(is_host(&HeaderValue::from_str(host).unwrap()), "{host}");
        }
        for host in
            ["a b", "a,b", "a, b", "u@a", "a/b", "a:1:2", "a:x", "a:99999", "a?b", "a#b", "[::1", "caf\u{e9}"]
        {
            assert!(!is_host(&HeaderValue::from_bytes(host.as_bytes()).unwrap()), "{host}");
        }
    }

    #[test]
    fn a_target_with_a_user_is_refused_also_without_a_host_beside_it() {
        let judged = |target: &str| {
            let mut request = Request::get(target).version(Version::HTTP_2).body(()).unwrap();
            one_host(&mut request).is_ok()
        };
        assert!(judged("http://a/"));
        assert!(!judged("http://user@a/"));
    }
}
