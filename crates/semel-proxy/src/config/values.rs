//! How values are read: methods, statuses, names of headers, paths and URLs, and the words that may be chosen.

use std::ops::RangeInclusive;
use std::str::FromStr;

use http::{HeaderName, Method, StatusCode, Uri};
use semel::{Lapse, OnOutage};
use semel_http::json::JsonPath;
use semel_http::{KeyPresence, KeyScope, OnServerError};

use super::source::Named;
use crate::settings::{UnderscoresInHeaders, UpstreamVersion};
use semel_config::value::{Read, Value, Words, count, text, wrong};

/// Methods that change nothing by themselves: they pass untouched, with or without a key.
const SAFE: [Method; 5] = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::CONNECT];
pub(super) const PROFILE: &Words<Named> = &[("ietf", Named::Ietf), ("stripe", Named::Stripe)];
pub(super) const UPSTREAM_VERSION: &Words<UpstreamVersion> =
    &[("1.1", UpstreamVersion::Http1), ("2", UpstreamVersion::Http2)];
pub(super) const UNDERSCORES: &Words<UnderscoresInHeaders> =
    &[("drop", UnderscoresInHeaders::Drop), ("pass", UnderscoresInHeaders::Pass)];
pub(super) const KEY_PRESENCE: &Words<KeyPresence> =
    &[("optional", KeyPresence::Optional), ("required", KeyPresence::Required)];
pub(super) const KEY_SCOPE: &Words<KeyScope> = &[("caller", KeyScope::Caller), ("route", KeyScope::Route)];
pub(super) const LAPSE: &Words<Lapse> = &[("rerun", Lapse::Rerun), ("hold", Lapse::Hold)];
pub(super) const ON_SERVER_ERROR: &Words<OnServerError> =
    &[("release", OnServerError::Release), ("store", OnServerError::Store), ("hold", OnServerError::Hold)];
pub(super) const ON_OUTAGE: &Words<OnOutage> = &[("closed", OnOutage::Closed), ("open", OnOutage::Open)];

pub(super) fn method(value: &Value<'_>) -> Read<Method> {
    text(|text| {
        let method =
            Method::from_str(text).map_err(|_| format!("\"{text}\", no method; write \"POST\", say"))?;
        let upper = text.to_ascii_uppercase();
        if upper != text && Method::from_str(&upper).is_ok() {
            return Err(format!("\"{text}\", and methods are case-sensitive; write \"{upper}\""));
        }
        if SAFE.contains(&method) {
            return Err(format!("\"{text}\", which passes untouched; write POST, PATCH, PUT or DELETE"));
        }
        Ok(method)
    })(value)
}

/// A status of an answer that is not kept: 5xx have a setting of their own.
pub(super) fn status_not_kept(value: &Value<'_>) -> Read<StatusCode> {
    if let Ok(status @ 500..=599) = count::<u16>(500..=599)(value) {
        return wrong(value, format!("holds {status}; 5xx are up to `on_server_error`"));
    }
    status(value, 200..=499)
}

/// The status of a refusal.
pub(super) fn refusal(value: &Value<'_>) -> Read<StatusCode> {
    status(value, 400..=599)
}

fn status(value: &Value<'_>, bounds: RangeInclusive<u64>) -> Read<StatusCode> {
    let status = count::<u16>(bounds)(value)?;
    StatusCode::from_u16(status).or_else(|_| wrong(value, "is no status of HTTP"))
}

pub(super) fn header(value: &Value<'_>) -> Read<HeaderName> {
    text(|text| {
        HeaderName::from_str(text)
            .map_err(|_| format!("\"{text}\", no name of a header; write letters, digits and dashes"))
    })(value)
}

pub(super) fn json_path(value: &Value<'_>) -> Read<JsonPath> {
    text(|text| text.parse::<JsonPath>().map_err(|error| format!("wrong: {error}")))(value)
}

/// Where requests go.
pub(super) fn upstream(text: &str) -> Result<Uri, String> {
    let write =
        "write \"http://HOST:PORT\" or \"https://HOST\", with a path if every path is to begin with it";
    // What was written may hold a password: it is not repeated.
    let uri = text.parse::<Uri>().map_err(|_| format!("no URL; {write}"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(format!("no URL of HTTP; {write}"));
    }
    let authority = uri.authority().ok_or_else(|| format!("a URL without a host; {write}"))?;
    if authority.as_str().contains('@') {
        return Err("a URL with a user in it; let clients send their own Authorization".to_owned());
    }
    if authority.host().is_empty() {
        return Err(format!("a URL without a host; {write}"));
    }
    if uri.query().is_some() {
        return Err(format!("a URL with a query; {write}"));
    }
    Ok(uri)
}

/// Which paths a route is for.
pub(super) fn path(text: &str) -> Result<String, String> {
    if !text.starts_with('/') {
        return Err(format!("\"{text}\", which does not begin with a slash; write \"/{text}\""));
    }
    if text.contains(['?', '#']) || text.contains(char::is_whitespace) {
        return Err(format!("\"{text}\"; write a path alone, without a query: \"/charges\""));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use semel_config::value::word_for;

    use super::*;

    #[test]
    fn an_upstream_is_a_host_that_speaks_http_and_nothing_more() {
        for fine in ["http://127.0.0.1:3000", "https://api.example", "http://[::1]:80/v1"] {
            assert!(upstream(fine).is_ok(), "{fine}");
        }
        for wrong in
            ["", "127.0.0.1:3000", "ftp://a", "http://", "http:///a", "http://u:p4ss@a", "http://a/?q=1"]
        {
            let error = upstream(wrong).expect_err(wrong);
            assert!(!error.contains("p4ss"), "{error}");
        }
    }

    #[test]
    fn a_path_begins_with_a_slash_and_has_no_query() {
        assert!(path("/v1/{*rest}").is_ok());
        assert!(path("charges").expect_err("is none").contains("\"/charges\""));
        assert!(path("/a?b=1").is_err() && path("/a b").is_err());
    }

    #[test]
    fn every_meaning_has_a_word_of_its_own() {
        assert_eq!(word_for(ON_SERVER_ERROR, &OnServerError::Store), "store");
        assert_eq!(word_for(LAPSE, &Lapse::Hold), "hold");
    }
}
