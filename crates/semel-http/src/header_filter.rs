//! Which headers of a response are kept.

use http::header::{
    CONNECTION, CONTENT_LENGTH, DATE, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, WWW_AUTHENTICATE,
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// What belongs to one connection, one moment or one client, by its whole name.
const NEVER: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    SET_COOKIE,
    DATE,
    WWW_AUTHENTICATE,
];
/// The same, by how its name starts.
const NEVER_STARTING: [&str; 4] = ["proxy-", "ratelimit", "x-ratelimit-", "server-timing"];

/// Whether a header must never be kept or replayed.
pub(crate) fn is_never_kept(name: &HeaderName) -> bool {
    NEVER.contains(name) || NEVER_STARTING.iter().any(|start| name.as_str().starts_with(start))
}

/// The headers of a response that are kept, in their order: all but those that must never be, or that `Connection`
/// names; of these only the allowed ones if there is a list.
pub(crate) fn headers<'a>(
    headers: &'a HeaderMap,
    allowed: Option<&'a [HeaderName]>,
) -> impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)> {
    let hops = named_by_connection(headers);
    headers.iter().filter(move |(name, _)| {
        !is_never_kept(name)
            // It is counted anew from what is replayed.
            && **name != CONTENT_LENGTH
            && allowed.is_none_or(|allowed| allowed.contains(name))
            && !hops.iter().any(|hop| hop.eq_ignore_ascii_case(name.as_str()))
    })
}

fn named_by_connection(headers: &HeaderMap) -> Vec<&str> {
    let lines = headers.get_all(CONNECTION).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(lines: &[(&str, &str)], allowed: Option<&[HeaderName]>) -> Vec<String> {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value.parse().unwrap());
        }
        headers(&map, allowed).map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect()
    }

    #[test]
    fn what_belongs_to_a_connection_or_a_client_is_left_out() {
        let lines = [
            ("connection", "close, X-Hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("set-cookie", "a=b"),
            ("date", "now"),
            ("www-authenticate", "Basic"),
            ("proxy-authenticate", "Basic"),
            ("server-timing", "db"),
            ("ratelimit", "1"),
            ("ratelimit-policy", "1"),
            ("x-ratelimit-remaining", "1"),
            ("content-length", "3"),
            ("link", "a"),
            ("link", "b"),
            ("x-mine", "1"),
            ("cache-control", "no-store"),
        ];
        assert_eq!(kept(&lines, None), ["link: a", "link: b", "x-mine: 1", "cache-control: no-store"]);
    }

    #[test]
    fn a_list_allows_no_more_than_may_be_kept() {
        let allowed = [HeaderName::from_static("link"), SET_COOKIE];
        assert_eq!(
            kept(&[("link", "a"), ("x-mine", "1"), ("set-cookie", "a=b")], Some(&allowed)),
            ["link: a"]
        );
    }
}
