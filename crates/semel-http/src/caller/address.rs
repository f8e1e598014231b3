//! The address of whoever is behind the connection, and behind trusted proxies.

use std::net::{IpAddr, SocketAddr};

use http::header::{AUTHORIZATION, COOKIE, FORWARDED, VIA};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;

use super::PeerAddress;
use super::unknown::{Shared, UnknownCaller};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Credentials beside a cookie. Where they are read, an address is not asked for.
static CREDENTIALS: [HeaderName; 3] =
    [AUTHORIZATION, HeaderName::from_static("x-api-key"), HeaderName::from_static("x-auth-token")];
/// Names that load balancers and content delivery networks have for the address of a client.
const CLIENT_ADDRESS: [&str; 7] = [
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
];

/// The address that a request came from, if the framework says what the other end of its connection is.
pub(super) fn of(parts: &Parts, trusted: &[IpNet]) -> Option<IpAddr> {
    Some(client_address(peer(parts)?, &parts.headers, trusted))
}

/// The address of a request's client: of those in `X-Forwarded-For`, the last one that nobody but a trusted proxy could have
/// written; the peer itself if that is no trusted proxy.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    // An IPv4 address that came over an IPv6 socket is the same address.
    let mut address = peer.to_canonical();
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    if !is_trusted(address) {
        return address;
    }
    let lines = headers.get_all(FORWARDED_FOR).iter().map(HeaderValue::as_bytes);
    // The last entry was written by whoever is next to us; each one before it is worth as much as who passed it on.
    let entries = lines.rev().flat_map(|line| line.rsplit(|byte| *byte == b','));
    for entry in entries {
        let Some(before) = read(entry) else { break };
        address = before;
        if !is_trusted(address) {
            break;
        }
    }
    address
}

/// The address that a request came from, if it can be that of one caller; otherwise why it cannot.
pub(super) fn lone(parts: &Parts, trusted: &[IpNet]) -> Result<Option<IpAddr>, UnknownCaller> {
    let (Some(peer), Some(address)) = (peer(parts), of(parts, trusted)) else { return Ok(None) };
    let shared = |why| Err(UnknownCaller::SharedAddress(why));
    let is_stated = |name: &HeaderName| {
        parts.headers.get_all(name).iter().any(|line| !line.as_bytes().trim_ascii().is_empty())
    };
    if is_stated(&COOKIE) {
        return shared(Shared::Cookie);
    }
    if let Some(name) = CREDENTIALS.iter().find(|name| is_stated(name)) {
        return shared(Shared::Credentials(name.clone()));
    }
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(&address));
    if is_trusted(peer) {
        return if is_trusted(address) { shared(Shared::ProxyOnly) } else { Ok(Some(address)) };
    }
    match parts.headers.keys().find(|name| is_forwarding(name)) {
        Some(name) => shared(Shared::Forwarded(name.clone())),
        None => Ok(Some(address)),
    }
}

/// Whether proxies write this header for those behind them.
fn is_forwarding(name: &HeaderName) -> bool {
    *name == FORWARDED
        || *name == VIA
        || name.as_str().starts_with("x-forwarded-")
        || CLIENT_ADDRESS.contains(&name.as_str())
}

/// The other end of the connection.
fn peer(parts: &Parts) -> Option<IpAddr> {
    let stated = parts.extensions.get::<PeerAddress>().map(|peer| peer.0);
    #[cfg(feature = "axum")]
    let stated = stated.or_else(|| {
        let info = parts.extensions.get::<axum::extract::ConnectInfo<SocketAddr>>();
        info.map(|info| info.0)
    });
    // An IPv4 address that came over an IPv6 socket is the same address.
    stated.map(|peer: SocketAddr| peer.ip().to_canonical())
}

/// One entry: an address, or one with a port, which says nothing of who it is.
fn read(entry: &[u8]) -> Option<IpAddr> {
    let entry = str::from_utf8(entry).ok()?.trim_matches([' ', '\t']);
    let unbracketed = entry.strip_prefix('[').and_then(|inside| inside.strip_suffix(']'));
    let address = match unbracketed {
        Some(inside) => IpAddr::V6(inside.parse().ok()?),
        None => entry.parse().ok().or_else(|| entry.parse::<SocketAddr>().ok().map(|socket| socket.ip()))?,
    };
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn found(peer: &str, trusted: &[&str], lines: &[&str]) -> Option<String> {
        let mut request = Request::new(());
        if !peer.is_empty() {
            request.extensions_mut().insert(PeerAddress(peer.parse().unwrap()));
        }
        for line in lines {
            request.headers_mut().append(FORWARDED_FOR, line.parse().unwrap());
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        of(&request.into_parts().0, &trusted).map(|address| address.to_string())
    }

    #[test]
    fn a_forwarded_header_from_a_stranger_picks_no_caller() {
        for line in ["1.1.1.1", "10.0.0.1", "127.0.0.1", "1.1.1.1, 10.0.0.1"] {
            assert_eq!(found("9.9.9.9:443", &[], &[line]).as_deref(), Some("9.9.9.9"));
            assert_eq!(found("9.9.9.9:443", &["10.0.0.0/8"], &[line]).as_deref(), Some("9.9.9.9"));
            assert_eq!(found("", &["0.0.0.0/0"], &[line]), None);
        }
    }

    #[test]
    fn trusted_hops_are_walked_over_from_the_end() {
        let trusted = &["10.0.0.0/8", "fd00::/8"][..];
        for (lines, address) in [
            (&[][..], "10.0.0.1"),
            (&["2.2.2.2"], "2.2.2.2"),
            (&["1.1.1.1, 2.2.2.2"], "2.2.2.2"),
            (&["1.1.1.1, 2.2.2.2, 10.3.3.3"], "2.2.2.2"),
            (&["1.1.1.1", "2.2.2.2,10.3.3.3", "10.4.4.4"], "2.2.2.2"),
            (&["10.5.5.5 , 10.3.3.3"], "10.5.5.5"),
            (&["2.2.2.2:8080, fd00::7"], "2.2.2.2"),
            (&["[2001:db8::1]:80,[fd00::7]"], "2001:db8::1"),
            (&["2.2.2.2, ::ffff:10.1.2.3"], "2.2.2.2"),
            (&["::ffff:2.2.2.2"], "2.2.2.2"),
        ] {
            assert_eq!(found("10.0.0.1:1", trusted, lines).as_deref(), Some(address), "{lines:?}");
        }
    }

    #[test]
    fn a_malformed_entry_ends_the_walk_at_whoever_passed_it_on() {
        let trusted = &["10.0.0.0/8"][..];
        for line in [
            "2.2.2.2, unknown",
            "2.2.2.2, ",
            "2.2.2.2,_hidden",
            "2.2.2.2,10.1",
            "2.2.2.2,1.2.3.4:x",
            "2.2.2.2,[10.0.0.1]",
        ] {
            assert_eq!(found("10.0.0.1:1", trusted, &[line]).as_deref(), Some("10.0.0.1"), "{line}");
            let line = format!("{line}, 10.7.7.7");
            assert_eq!(found("10.0.0.1:1", trusted, &[&line]).as_deref(), Some("10.7.7.7"), "{line}");
        }
    }

    fn is_refused(peer: &str, trusted: &[&str], lines: &[(&str, &str)]) -> Option<UnknownCaller> {
        let mut request = Request::new(());
        request.extensions_mut().insert(PeerAddress(peer.parse().unwrap()));
        for (name, value) in lines {
            request.headers_mut().append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|network| network.parse().unwrap()).collect();
        lone(&request.into_parts().0, &trusted).err()
    }

    #[test]
    fn h60_an_address_that_several_callers_may_share_is_nobody() {
        let stranger = "9.9.9.9:443";
        for name in
            ["x-forwarded-for", "X-Forwarded-Proto", "forwarded", "via", "x-real-ip", "cf-connecting-ip"]
        {
            let refused = is_refused(stranger, &["10.0.0.0/8"], &[(name, "1.1.1.1")]);
            let name = name.to_ascii_lowercase().parse().unwrap();
            assert_eq!(refused, Some(UnknownCaller::SharedAddress(Shared::Forwarded(name))));
        }
        let cookie = Some(UnknownCaller::SharedAddress(Shared::Cookie));
        assert_eq!(is_refused(stranger, &[], &[("cookie", "session=1")]), cookie);
        assert_eq!(
            is_refused("10.0.0.1:1", &["10.0.0.0/8"], &[("x-forwarded-for", "1.1.1.1"), ("cookie", "a=b")]),
            cookie
        );
        for name in ["authorization", "x-api-key"] {
            let refused = is_refused(stranger, &[], &[(name, "secret")]);
            let name = name.parse().unwrap();
            assert_eq!(refused, Some(UnknownCaller::SharedAddress(Shared::Credentials(name))));
        }
        // A trusted proxy that does not say for whom it asks may ask for anybody.
        for lines in [&[][..], &[("x-forwarded-for", "10.7.7.7")], &[("x-forwarded-for", "unknown")]] {
            let refused = is_refused("10.0.0.1:1", &["10.0.0.0/8"], lines);
            assert_eq!(refused, Some(UnknownCaller::SharedAddress(Shared::ProxyOnly)), "{lines:?}");
        }
        // Controls: an address alone is one caller, and so is one that a trusted proxy names.
        assert_eq!(is_refused(stranger, &[], &[("accept", "*/*"), ("cookie", "")]), None);
        let told = [("x-forwarded-for", "1.1.1.1"), ("via", "1.1 lb"), ("x-forwarded-proto", "https")];
        assert_eq!(is_refused("10.0.0.1:1", &["10.0.0.0/8"], &told), None);
    }

    #[test]
    fn an_address_is_one_caller_whatever_socket_and_port_it_came_over() {
        let v4 = found("192.0.2.1:1", &[], &[]);
        assert_eq!(v4, found("192.0.2.1:2", &[], &[]));
        assert_eq!(v4, found("[::ffff:192.0.2.1]:3", &[], &[]));
        assert_eq!(found("[::ffff:10.0.0.1]:3", &["10.0.0.0/8"], &["2.2.2.2"]).as_deref(), Some("2.2.2.2"));
    }
}
