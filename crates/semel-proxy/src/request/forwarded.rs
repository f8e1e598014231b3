//! What the upstream is told of the client: `X-Forwarded-For`, `-Proto` and `-Host`.

use std::fmt::Write as _;
use std::net::IpAddr;

use http::header::{FORWARDED, HOST};
use http::{HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;

static FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
static REAL: HeaderName = HeaderName::from_static("x-real-ip");

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
            if let Some(peer) = as_value(peer) {
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

fn as_value(peer: IpAddr) -> Option<HeaderValue> {
    let mut text = String::with_capacity(39);
    write!(text, "{peer}").ok()?;
    HeaderValue::try_from(text).ok()
}
