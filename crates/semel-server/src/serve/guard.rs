//! Who may ask from where: what every request must pass before it is answered, and what browsers are told about the answer.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::app::Shown;
use crate::api::problem::{Code, Problem};
use crate::state::AppState;

/// Nothing is loaded from elsewhere, no script stands in a page, and nobody frames one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What is checked.
pub(super) struct Guard {
    served: Arc<AppState>,
    shown: Shown,
}

impl Guard {
    pub(super) fn new(served: Arc<AppState>, shown: Shown) -> Self {
        Self { served, shown }
    }

    fn judge(&self, request: &Request) -> Result<(), Problem> {
        let path = request.uri().path();
        // Whoever probes a process knows it by any name, and learns nothing but whether it lives.
        let is_probe = path == "/healthz" || path == "/readyz";
        let is_open = self.shown == Shown::HealthOnly || !self.served.tokens.is_empty();
        if !is_probe && !is_open && !is_this_machine(request.headers()) {
            return Err(misdirected());
        }
        if self.shown == Shown::HealthOnly && path.starts_with("/v1") {
            return Err(Problem::forbidden(
                "others can reach this address and it has no tokens, so it shows health and metrics alone; start it with \
                 tokens, or have it listen on loopback",
            ));
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        if !reads && is_cross_site(request.headers()) {
            return Err(Problem::forbidden(
                "a page of another site sent this; ask from a program, or from the dashboard's own pages",
            ));
        }
        if !reads && self.shown == Shown::ReadSide && path.starts_with("/v1") && !is_operator_action(path) {
            return Err(Problem::not_found("keys are not claimed here; `semel serve` takes claims"));
        }
        Ok(())
    }
}

/// Whether this is what operators do to a record, a pipeline or the store: it works wherever the dashboard does, for the roles that
/// may act.
fn is_operator_action(path: &str) -> bool {
    matches!(path, "/v1/receipts/record" | "/v1/offsets/move" | "/v1/store/sweep")
        || path
            .strip_prefix("/v1/records/")
            .is_some_and(|rest| matches!(rest.split_once('/'), Some((_, "release" | "resolve"))))
}

/// Lets a request in or refuses it, and tells browsers what they may do with the answer.
pub(super) async fn guarded(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let mut response = match guard.judge(&request) {
        Ok(()) => {
            name_span(&request);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    secure(response.headers_mut());
    response
}

/// A span is called by its route, which is one of a few; a path may be anything.
fn name_span(request: &Request) {
    let span = tracing::Span::current();
    if span.is_disabled() {
        return;
    }
    if let Some(route) = request.extensions().get::<MatchedPath>() {
        span.record("http.route", route.as_str());
        span.record("otel.name", format!("{} {}", request.method(), route.as_str()));
    }
}

/// Without tokens, whoever reaches the server may do everything, and a browser on this machine can be sent here by any
/// page under a name of that page's own (DNS rebinding). Such a request names the page's host.
fn is_this_machine(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Some((host, _)) = host.to_str().ok().and_then(split_port) else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn misdirected() -> Problem {
    Problem::new(
        Code::Misdirected,
        "without tokens, this server answers only as localhost, 127.0.0.1 and [::1]; ask under one of these, or give it tokens",
    )
}

/// Whether a browser says that another site's page sent this.
fn is_cross_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(&SEC_FETCH_SITE).iter();
    if sites.any(|site| !matches!(site.as_bytes(), b"same-origin" | b"none")) {
        return true;
    }
    let mut origins = headers.get_all(ORIGIN).iter().peekable();
    if origins.peek().is_none() {
        return false;
    }
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    !origins.all(|origin| origin.to_str().is_ok_and(|origin| is_origin_of(origin, host)))
}

/// Whether this origin is the host that was asked. The scheme may be another where something before this server
/// speaks TLS, so only its usual port is taken from it.
fn is_origin_of(origin: &str, host: &str) -> bool {
    let (scheme, authority) = origin.split_once("://").unwrap_or(("", origin));
    let usual = match scheme {
        "http" => "80",
        "https" => "443",
        _ => return false,
    };
    let (Some((name, port)), Some((host, asked))) = (split_port(authority), split_port(host)) else {
        return false;
    };
    name.eq_ignore_ascii_case(host) && port.unwrap_or(usual) == asked.unwrap_or(usual)
}

/// A host and its port; `None` for what is neither.
fn split_port(authority: &str) -> Option<(&str, Option<&str>)> {
    let port_at = match authority.strip_prefix('[') {
        Some(rest) => rest.find(']')?.checked_add(2)?,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at_checked(port_at)?;
    match port.strip_prefix(':') {
        _ if host.is_empty() => None,
        None if port.is_empty() => Some((host, None)),
        Some(port) if port.parse::<u16>().is_ok() => Some((host, Some(port))),
        _ => None,
    }
}

/// Tells browsers what they may do with an answer.
pub(super) fn secure(headers: &mut HeaderMap) {
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Under `no-referrer`, browsers send the dashboard's own forms without an origin, like those of a stranger.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // What is to be kept as a file has a policy of its own, under which nothing in it runs.
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(named: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in named {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn only_names_of_this_machine_are_this_machine() {
        for host in [
            "localhost",
            "LOCALHOST:4747",
            "127.0.0.1",
            "127.0.0.1:4747",
            "127.8.9.1:1",
            "[::1]",
            "[::1]:4747",
        ] {
            let headers = headers(&[("host", Box::leak(host.to_owned().into_boxed_str()))]);
            assert!(is_this_machine(&headers), "{host}");
        }
        for host in [
            "",
            ":4747",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:",
            "localhost:x",
            "0.0.0.0",
            "10.0.0.1",
            "[::1",
            "[::1]x",
            "[::2]:1",
            "2130706433",
            "localhost@evil.example",
        ] {
            let headers = headers(&[("host", Box::leak(host.to_owned().into_boxed_str()))]);
            assert!(!is_this_machine(&headers), "{host}");
        }
        assert!(!is_this_machine(&headers(&[])));
        assert!(!is_this_machine(&headers(&[("host", "localhost"), ("host", "evil.example")])));
    }

    #[test]
    fn a_page_of_another_site_is_told_from_the_own_and_from_a_program() {
        let host = ("host", "localhost:4747");
        for own in [
            &[host][..],
            &[host, ("sec-fetch-site", "same-origin")],
            &[host, ("origin", "http://localhost:4747")],
            &[("host", "semel.example"), ("origin", "https://semel.example")],
            &[("host", "semel.example:443"), ("origin", "https://Semel.example")],
        ] {
            assert!(!is_cross_site(&headers(own)), "{own:?}");
        }
        for foreign in [
            &[host, ("sec-fetch-site", "cross-site")][..],
            &[host, ("sec-fetch-site", "same-site")],
            &[host, ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
            &[host, ("origin", "null")],
            &[host, ("origin", "http://localhost:4748")],
            &[host, ("origin", "http://localhost")],
            &[host, ("origin", "http://localhost:4747.evil.example")],
            &[host, ("sec-fetch-site", "same-origin"), ("origin", "http://evil.example")],
            &[("origin", "http://localhost:4747")],
        ] {
            assert!(is_cross_site(&headers(foreign)), "{foreign:?}");
        }
    }
}
