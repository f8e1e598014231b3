//! A proxy in front of a service, with settings by hand.

use std::net::SocketAddr;

use semel_http::{Principal, Settings};
use semel_listen::ListenerConfig;
use semel_ops::store_url::Address;
use semel_proxy::{
    AccessLog, ProbeClient, Proxy, ProxySettings, Running, UnderscoresInHeaders, UpstreamLimits,
    UpstreamVersion,
};
use semel_server::access::{Audit, Tokens};
use semel_server::admin;
use semel_server::state::AppState;

/// What a test starts from: everything at its default, on a free port, in memory, silent.
pub(crate) fn settings(upstream: SocketAddr) -> ProxySettings {
    ProxySettings {
        listener: ListenerConfig::new("127.0.0.1:0".parse().expect("is an address")),
        upstream: format!("http://{upstream}").parse().expect("is a URL"),
        store: Address::Memory,
        principal: Principal::header("authorization"),
        http: Settings::default(),
        probe_client: ProbeClient::default(),
        upstream_authorities: None,
        upstream_version: UpstreamVersion::Http1,
        trusted_proxies: Vec::new(),
        underscores_in_headers: UnderscoresInHeaders::Drop,
        admin: None,
        admin_tokens_file: None,
        audit: None,
        access_log: AccessLog::Off,
        upstream_limits: UpstreamLimits::default(),
    }
}

pub(crate) async fn start(settings: ProxySettings) -> Proxy {
    start_with_tokens(settings, Tokens::none()).await
}

/// The same, with an admin side that knows these tokens.
pub(crate) async fn start_with_tokens(settings: ProxySettings, tokens: Tokens) -> Proxy {
    admin::recorder();
    let audit = settings.audit.clone();
    let admin = Box::new(move |listener, running: Running| {
        let address = running.store_address.to_string();
        let state = AppState {
            audit: Audit::to(audit)?,
            ..AppState::new(running.semel, running.store, address, tokens)
        };
        admin::Side::new(state, running.measure).serve(listener, running.phase)
    });
    Proxy::start_with_admin(settings, admin).await.expect("starts")
}
