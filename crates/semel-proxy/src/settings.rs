//! Everything that a proxy may be told, as it means after defaults were filled in.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use ipnet::IpNet;
use semel_http::{Principal, Settings};

use crate::probe::ProbeClient;
use semel_listen::ListenerConfig;
use semel_ops::access_log::AccessLog;
use semel_ops::store_url::Address;

/// Everything that a proxy may be told.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// Where clients come, what they must trust, and what bounds them.
    pub listener: ListenerConfig,
    /// Where requests go: scheme and authority, and a path to put before every path.
    pub upstream: Uri,
    /// Where outcomes are kept.
    pub store: Address,
    /// Who a caller is.
    pub principal: Principal,
    /// What clients see, route by route.
    pub http: Settings,
    /// How the probes that `http` names reach the upstream: filled in by the proxy that is started with these settings.
    pub probe_client: ProbeClient,
    /// Whose certificates of an upstream with `https` are trusted, beside the system's.
    pub upstream_authorities: Option<PathBuf>,
    /// Which version of HTTP the upstream speaks.
    pub upstream_version: UpstreamVersion,
    /// Proxies in front of this one: what they say in `X-Forwarded-…` is passed on, and what others say is replaced.
    pub trusted_proxies: Vec<IpNet>,
    /// What becomes of request headers with an underscore in their name.
    pub underscores_in_headers: UnderscoresInHeaders,
    /// Where health, metrics and the dashboard are; `None` for nowhere.
    pub admin: Option<SocketAddr>,
    /// The file with the tokens of those who may look at the dashboard there, and act; without one, everybody on this machine may.
    pub admin_tokens_file: Option<PathBuf>,
    /// Where operators' actions are written down; `None` for the program's own log.
    pub audit: Option<PathBuf>,
    /// What is written of each request.
    pub access_log: AccessLog,
    /// What bounds connections to the upstream.
    pub upstream_limits: UpstreamLimits,
}

/// Which version of HTTP the upstream speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamVersion {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, without asking first if the upstream is plain.
    Http2,
}

/// What becomes of request headers with an underscore in their name. To a service that turns names into variables, as CGI does,
/// `X_Forwarded_For` is `X-Forwarded-For`, and the client would say where it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnderscoresInHeaders {
    /// The upstream does not see them.
    #[default]
    Drop,
    /// They are passed on, in heads; never in trailers.
    Pass,
}

/// What bounds connections to the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamLimits {
    /// Connections that are kept while idle.
    pub idle_max: usize,
    /// How long an idle connection is kept.
    pub idle: Duration,
    /// For a new connection.
    pub connect: Duration,
    /// For the head of a response.
    pub response: Duration,
    /// Between two parts of what goes over an upgraded connection (a websocket, say), in either direction.
    pub upgraded_idle: Duration,
}

impl Default for UpstreamLimits {
    fn default() -> Self {
        Self {
            idle_max: 256,
            idle: Duration::from_secs(4),
            connect: Duration::from_secs(5),
            response: Duration::from_mins(1),
            upgraded_idle: Duration::from_mins(5),
        }
    }
}
