//! A proxy in front of a service, with settings by hand.

use std::net::SocketAddr;

use semel_http::{Principal, Settings};
use semel_server::access::Tokens;
use semel_server::proxy::{AccessLog, Bounds, Proxy, ProxySettings, Timeouts, UpstreamVersion};
use semel_server::store::Address;

/// What a test starts from: everything at its default, on a free port, in memory, silent.
pub(crate) fn settings(upstream: SocketAddr) -> ProxySettings {
    ProxySettings {
        listen: "127.0.0.1:0".parse().expect("is an address"),
        upstream: format!("http://{upstream}").parse().expect("is a URL"),
        store: Address::Memory,
        principal: Principal::header("authorization"),
        http: Settings::default(),
        tls: None,
        upstream_authorities: None,
        upstream_version: UpstreamVersion::Http1,
        trusted_proxies: Vec::new(),
        admin: None,
        admin_tokens: Tokens::none(),
        admin_tokens_file: None,
        audit: None,
        access_log: AccessLog::Off,
        bounds: Bounds::default(),
        timeouts: Timeouts::default(),
    }
}

pub(crate) async fn start(settings: ProxySettings) -> Proxy {
    Proxy::start(settings).await.expect("starts")
}
