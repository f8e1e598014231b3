//! Everything that a server may be told, as it means after defaults were filled in.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderMap;
use ipnet::IpNet;
use semel::{Error, ErrorKind, Result};

use super::waits::WAITING_MAX;
use crate::access::Tokens;
use crate::monitoring::StoreHealth;
use semel_listen::{Limits, ListenerConfig};
use semel_ops::access_log::AccessLog;
use semel_ops::store_url::Address;

/// Requests at once on one HTTP/2 connection: workers are few, and ask much.
const STREAMS_MAX: u32 = 1_024;

/// Everything that a server may be told.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Where callers come, what they must trust, and what bounds them.
    pub listener: ListenerConfig,
    /// Where records are kept.
    pub store: Address,
    /// Who may ask. With none, everybody may, and only this machine can.
    pub tokens: Tokens,
    /// Where operators' actions are written down; `None` for the program's own log.
    pub audit: Option<PathBuf>,
    /// Requests that wait at once, for a record to settle.
    pub waiting_max: usize,
    /// How often the settings of the store's server are checked. No file sets it: tests do not wait for 20 s.
    pub store_check_every: Duration,
    /// What is written of each request.
    pub access_log: AccessLog,
    /// Proxies in front of the server: the access log has the address that they say a request came from.
    pub trusted_proxies: Vec<IpNet>,
    /// What joins the span of a request to the trace that its head names, if somebody collects traces.
    pub join_trace: Option<fn(&tracing::Span, &HeaderMap)>,
}

impl ServerSettings {
    /// A server for tests and trials: on a free port of this machine, in memory, without tokens.
    pub fn in_memory() -> Self {
        Self::new(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), Address::Memory)
    }

    /// Everything else at its default, and no access log.
    pub fn new(listen: SocketAddr, store: Address) -> Self {
        let limits = Limits { streams_max: STREAMS_MAX, ..Limits::default() };
        Self {
            listener: ListenerConfig { limits, ..ListenerConfig::new(listen) },
            store,
            tokens: Tokens::none(),
            audit: None,
            waiting_max: WAITING_MAX,
            store_check_every: StoreHealth::CHECK_EVERY,
            access_log: AccessLog::Off,
            trusted_proxies: Vec::new(),
            join_trace: None,
        }
    }

    /// Whether they go together. Without tokens, only this machine may reach the server.
    pub fn check(&self) -> Result<()> {
        let address = self.listener.listen;
        if address.ip().is_loopback() || !self.tokens.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{address} may be reached by others than this machine, and without tokens everybody could do everything: make \
             one with `semel token new` and give --tokens FILE, or listen on 127.0.0.1:{}",
            address.port()
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }
}
