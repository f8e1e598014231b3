//! `[server]`: everything that a claim server is told.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;

use semel_config::value::{address, any_text, bytes, count, text, time};
use semel_config::{Errors, Source, Table, layout};
use semel_listen::ServerTls;
use semel_ops::store_setting::{StoreFrom, StoreOverrides, StoreSetting};

use super::render;
use crate::access::{FromFile, Tokens};
use crate::serve::{Bounds, ServerSettings, Timeouts};

/// Where a server listens unless somebody says otherwise.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4747);
/// More of anything than one process can have.
const MANY: u64 = 10_000_000;
/// Where tokens are if neither the command line nor the file says: the text of such a file.
pub(super) const TOKENS_VARIABLE: &str = "SEMEL_TOKENS";

/// What the command line says, and the environment. Whatever is `None` is up to the file.
#[derive(Clone, Debug, Default)]
pub struct ServerOverrides {
    /// Where callers come.
    pub listen: Option<SocketAddr>,
    /// Where records are kept.
    pub store: StoreOverrides,
    /// The file with tokens.
    pub tokens: Option<PathBuf>,
    /// Tokens themselves, from the environment, if no file is named.
    pub tokens_variable: Option<String>,
    /// Where operators' actions are written down.
    pub audit: Option<PathBuf>,
    /// A certificate and its key.
    pub tls: Option<ServerTls>,
    /// Where traces go.
    pub otlp: Option<Uri>,
    /// Where traces go if neither the command line nor the file says.
    pub otlp_variable: Option<Uri>,
}

impl ServerOverrides {
    /// Reads the URL of a collector as the file does.
    pub fn collector(text: &str) -> Result<Uri, String> {
        collector(text).map_err(|error| format!("this is {error}"))
    }
}

/// What a file and a command line mean for a claim server.
#[derive(Debug)]
pub struct ServerMeaning {
    /// What the server is told.
    pub settings: ServerSettings,
    /// Where traces go, if anywhere.
    pub otlp: Option<Uri>,
    /// What is not wrong, but not as it should be.
    pub warnings: Vec<String>,
    pub(super) store: StoreFrom,
    pub(super) tokens: TokensFrom,
}

impl ServerMeaning {
    /// What it all means, as a file that means the same. Secrets are not in it, only where they are.
    pub fn effective(&self) -> String {
        render::written(self)
    }
}

/// Where tokens come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokensFrom {
    Nowhere,
    File(PathBuf),
    Variable,
}

/// What a file and a command line mean for a server; or everything that is wrong with them.
pub fn server(source: &Source, overrides: &ServerOverrides) -> Result<ServerMeaning, Errors> {
    source.judged(|root| Some(written(root, overrides)))?.meaning(source.name(), overrides)
}

/// What was written, before any other file is read.
#[derive(Debug)]
struct Written {
    listen: SocketAddr,
    store: StoreSetting,
    tokens: TokensFrom,
    audit: Option<PathBuf>,
    tls: Option<ServerTls>,
    bounds: Bounds,
    timeouts: Timeouts,
    otlp: Option<Uri>,
}

fn written(mut root: Table<'_>, overrides: &ServerOverrides) -> Written {
    let store = StoreSetting::read(&mut root, &overrides.store);
    let mut table = root.table("server");
    let listen = table.read("listen", text(address));
    let tokens = table.read("tokens", any_text).map(PathBuf::from);
    let audit = table.read("audit", any_text).map(PathBuf::from);
    let otlp = table.read("otlp", text(collector));
    let tls = ServerTls::read(&mut table);
    let (bounds, timeouts) = (bounds(table.table("bounds")), timeouts(table.table("timeouts")));
    table.finish();
    // What a proxy is told in the same file is for a proxy to judge.
    for name in layout::of_a_proxy() {
        root.value(name);
    }
    root.finish();
    let variable = overrides.tokens_variable.as_ref().map(|_| TokensFrom::Variable);
    let file = overrides.tokens.clone().or(tokens).map(TokensFrom::File);
    Written {
        listen: overrides.listen.or(listen).unwrap_or(LISTEN),
        store,
        tokens: file.or(variable).unwrap_or(TokensFrom::Nowhere),
        audit: overrides.audit.clone().or(audit),
        tls: overrides.tls.clone().or(tls),
        bounds,
        timeouts,
        otlp: overrides.otlp.clone().or(otlp).or_else(|| overrides.otlp_variable.clone()),
    }
}

impl Written {
    /// What it means, with the tokens in the file that it names.
    fn meaning(self, name: &str, overrides: &ServerOverrides) -> Result<ServerMeaning, Errors> {
        let FromFile { tokens, warning } = match &self.tokens {
            TokensFrom::Nowhere => FromFile { tokens: Tokens::none(), warning: None },
            TokensFrom::File(path) => Tokens::read(path)?,
            TokensFrom::Variable => {
                let text = overrides.tokens_variable.as_deref().unwrap_or_default();
                FromFile { tokens: Tokens::parse(text, TOKENS_VARIABLE)?, warning: None }
            }
        };
        let settings = ServerSettings {
            tokens,
            audit: self.audit,
            tls: self.tls,
            bounds: self.bounds,
            timeouts: self.timeouts,
            ..ServerSettings::new(self.listen, self.store.address)
        };
        settings.check().map_err(|error| Errors::whole(name, format!("`listen` cannot be: {error}")))?;
        let warnings = warning.into_iter().collect();
        Ok(ServerMeaning { settings, otlp: self.otlp, warnings, store: self.store.from, tokens: self.tokens })
    }
}

fn bounds(mut table: Table<'_>) -> Bounds {
    let mut bounds = Bounds::default();
    table.set("connections_max", &mut bounds.connections_max, count(1..=MANY));
    table.set("connections_per_peer_max", &mut bounds.connections_per_peer_max, count(1..=MANY));
    table.set("in_flight_max", &mut bounds.in_flight_max, count(1..=MANY));
    table.set("waiting_max", &mut bounds.waiting_max, count(0..=MANY));
    table.set("head_bytes_max", &mut bounds.head_bytes_max, bytes(8 << 10..=16 << 20));
    table.set("streams_max", &mut bounds.streams_max, count(1..=65_536));
    table.finish();
    bounds
}

fn timeouts(mut table: Table<'_>) -> Timeouts {
    let span = || -> RangeInclusive<Duration> { Duration::from_millis(10)..=Duration::from_hours(24) };
    let mut timeouts = Timeouts::default();
    table.set("handshake", &mut timeouts.handshake, time(span()));
    table.set("head", &mut timeouts.head, time(span()));
    table.set("body", &mut timeouts.body, time(span()));
    table.set("body_idle", &mut timeouts.body_idle, time(span()));
    table.set("drain", &mut timeouts.drain, time(Duration::ZERO..=Duration::from_hours(24)));
    table.finish();
    timeouts
}

/// Where traces go: a collector that speaks OTLP over HTTP.
fn collector(text: &str) -> Result<Uri, String> {
    let write = "write \"http://127.0.0.1:4318\"";
    let uri = text.parse::<Uri>().map_err(|_| format!("no URL; {write}"))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(host)) if !host.is_empty() && uri.query().is_none() => Ok(uri),
        (Some("https"), _) => {
            Err(format!("a URL with TLS; let a collector on this machine carry traces further, and {write}"))
        }
        _ => Err(format!("no URL of a collector; {write}")),
    }
}
