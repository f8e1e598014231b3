//! What a file means as a whole: its top, its tables, and what they mean together.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use http::Uri;
use semel_config::Table;
use semel_http::{Quotas, Route, Rules, Settings};
use semel_listen::config::{MANY, read_timeout};
use semel_listen::{Limits, ListenerConfig, ServerTls, Timeouts};
use semel_ops::store_setting::{StoreFrom, StoreSetting};

use super::callers::{self, Callers};
use super::keys::{self, Keys};
use super::profile;
use super::source::{Admin, Overrides};
use super::values::{UNDERSCORES, UPSTREAM_VERSION, upstream};
use crate::probe::ProbeClient;
use crate::settings::{ProxySettings, UpstreamLimits};
use semel_config::value::{address, any_text, bytes, count, file, list, network, or_none, text, truth, word};
use semel_ops::access_log::ACCESS_LOG;

const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
const ADMIN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

/// What a file means, and how to say so without its secrets.
#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) settings: ProxySettings,
    pub(super) store: StoreFrom,
    pub(super) callers: Callers,
    pub(super) keys: Keys,
}

/// Everything that the file and the command line mean; `None` only if something was wrong, which is then told.
pub(super) fn meaning(mut root: Table<'_>, overrides: &Overrides) -> Option<Meaning> {
    let upstream = upstream_of(&mut root, overrides);
    let listen = root.read("listen", text(address));
    let listen = overrides.listen.or(listen).unwrap_or(LISTEN);
    let admin = admin(&mut root, overrides, listen);
    let store = StoreSetting::read(&mut root, &overrides.store);
    let trusted_proxies = root.read("trusted_proxies", list(text(network))).unwrap_or_default();
    let callers = callers::callers(root.table("principal"), &trusted_proxies);
    let probe_client = ProbeClient::default();
    let mut profile = profile::profile(&mut root, overrides, &probe_client);
    let keys = keys::keys(root.table("key"), &mut profile.key);
    let routes = profile::routes(&mut root, &profile.rules, &probe_client);
    let mut listener = ListenerConfig::new(listen);
    let mut upstream_limits = UpstreamLimits::default();
    let mut http = Settings {
        scope: scope_prefix(&mut root, &keys),
        hosts: keys.hosts.clone(),
        key_identity: keys.identity,
        quotas: quotas(root.table("quotas")),
        profile,
        routes,
        ..Settings::default()
    };
    bounds(root.table("bounds"), &mut listener.limits, &mut upstream_limits, &mut http);
    timeouts(root.table("timeouts"), &mut listener.timeouts, &mut upstream_limits, &mut http);
    held(&root, &http);
    let access_log = root.read("access_log", word(ACCESS_LOG));
    let upstream_version = root.read("upstream_version", word(UPSTREAM_VERSION)).unwrap_or_default();
    let upstream_authorities = root.read("upstream_authorities", file);
    let underscores_in_headers = root.read("underscores_in_headers", word(UNDERSCORES)).unwrap_or_default();
    listener.tls = ServerTls::read(&mut root);
    let admin_tokens_file = tokens(&mut root, overrides);
    let audit = root.read("audit", any_text).map(PathBuf::from);
    let audit = overrides.audit.clone().or(audit);
    // What a claim server is told in the same file is for a server to judge.
    root.value("server");
    if let Some(upstream) = &upstream {
        together(&root, upstream, listen);
    }
    root.finish();
    let settings = ProxySettings {
        listener,
        upstream: upstream?,
        store: store.address,
        principal: callers.principal()?,
        http,
        probe_client,
        upstream_authorities,
        upstream_version,
        trusted_proxies,
        underscores_in_headers,
        admin,
        admin_tokens_file,
        audit,
        access_log: overrides.access_log.or(access_log).unwrap_or_default(),
        upstream_limits,
    };
    Some(Meaning { settings, store: store.from, callers, keys })
}

fn upstream_of(root: &mut Table<'_>, overrides: &Overrides) -> Option<Uri> {
    let written = root.read("upstream", text(upstream));
    if overrides.upstream.is_none() && !root.has("upstream") {
        root.errors().missing(
            "where do requests go? Write upstream = \"http://127.0.0.1:3000\", or give --upstream http://127.0.0.1:3000",
        );
    }
    overrides.upstream.clone().or(written)
}

/// Health and metrics are for this machine, unless somebody says that others may see them.
fn admin(root: &mut Table<'_>, overrides: &Overrides, listen: SocketAddr) -> Option<SocketAddr> {
    let written = root.read("admin", or_none("off", text(address)));
    let public = root.read("admin_public", truth).unwrap_or(false) || overrides.admin_public;
    let (admin, typed) = match overrides.admin {
        Some(Admin::Off) => (None, true),
        Some(Admin::At(address)) => (Some(address), true),
        None => (written.unwrap_or(Some(ADMIN)), false),
    };
    let address = admin?;
    let wrong = |message: &str| {
        if typed {
            root.errors().option("--admin", message);
        } else {
            root.wrong("admin", message);
        }
    };
    if !address.ip().is_loopback() && !public {
        wrong(&format!(
            "is {address}, which others than this machine may reach; write \"127.0.0.1:{}\", or admin_public = true if they shall",
            address.port()
        ));
    }
    if address == listen && address.port() != 0 {
        wrong(&format!("is {address}, where clients come; give it another port, or \"off\""));
    }
    admin
}

/// The file with the tokens of the admin side. What is wrong with it is reported with its own lines.
fn tokens(root: &mut Table<'_>, overrides: &Overrides) -> Option<PathBuf> {
    let written = root.read("tokens", any_text).map(PathBuf::from);
    let path = overrides.tokens.clone().or(written)?;
    if let Some(check) = overrides.tokens_check
        && let Err(errors) = check(&path)
    {
        let message = format!("names a file that cannot be:\n{errors}");
        if overrides.tokens.is_some() {
            root.errors().option("--tokens", message);
        } else {
            root.wrong("tokens", &message);
        }
    }
    Some(path)
}

fn scope_prefix(root: &mut Table<'_>, keys: &Keys) -> Vec<String> {
    let parts = root.read("scope_prefix", list(any_text)).unwrap_or_default();
    // The caller is one part of a key's scope, and the host is another where each has keys of its own.
    let parts_max = semel::SCOPE_PARTS_MAX.saturating_sub(if keys.hosts.is_separate() { 2 } else { 1 });
    if parts.len() > parts_max {
        root.wrong("scope_prefix", &format!("has {} parts; {parts_max} at most", parts.len()));
    } else if let Err(error) = semel::Key::scoped(parts.clone(), "http", "key") {
        root.wrong("scope_prefix", &format!("cannot be: {error}"));
    }
    parts
}

fn bounds(mut table: Table<'_>, limits: &mut Limits, upstream: &mut UpstreamLimits, http: &mut Settings) {
    limits.read(&mut table);
    table.set("held_bytes_max", &mut http.held_bytes_max, bytes(1..=1 << 40));
    http.caller_held_bytes_max = table.read("caller_held_bytes_max", bytes(1..=1 << 40));
    table.set("probes_in_flight_max", &mut http.probes_in_flight_max, count(1..=MANY));
    table.set("upstream_idle_max", &mut upstream.idle_max, count(0..=MANY));
    table.finish();
}

fn timeouts(
    mut table: Table<'_>,
    timeouts: &mut Timeouts,
    upstream: &mut UpstreamLimits,
    http: &mut Settings,
) {
    timeouts.read(&mut table);
    read_timeout(&mut table, "connect", &mut upstream.connect);
    read_timeout(&mut table, "response", &mut upstream.response);
    read_timeout(&mut table, "upgraded_idle", &mut upstream.upgraded_idle);
    read_timeout(&mut table, "upstream_idle", &mut upstream.idle);
    read_timeout(&mut table, "store", &mut http.store_timeout);
    http.body_timeout = timeouts.body;
    table.finish();
}

fn quotas(mut table: Table<'_>) -> Option<Quotas> {
    let quotas = Quotas {
        new_keys_per_minute: table.read("new_keys_per_minute", count(1..=u64::MAX)),
        records: table.read("records", count(1..=u64::MAX)),
        bytes: table.read("bytes", bytes(1..=1 << 50)),
    };
    table.finish();
    (quotas != Quotas::default()).then_some(quotas)
}

/// A body that is allowed must find room.
fn held(root: &Table<'_>, http: &Settings) {
    let most = |rules: &Rules| rules.request_bytes_max.max(rules.response_bytes_max);
    let rules =
        std::iter::once(&http.profile.rules).chain(http.routes.iter().map(|Route { rules, .. }| rules));
    let most = rules.map(most).max().unwrap_or(0);
    let share = http.admitted_bytes_max();
    if most > share {
        root.wrong(
            "bounds",
            &format!(
                "leaves one caller {share} bytes of memory, and a route allows a body of {most}; raise held_bytes_max, \
                 or caller_held_bytes_max if it is set"
            ),
        );
    }
}

/// What only shows when several settings are seen together.
fn together(root: &Table<'_>, upstream: &Uri, listen: SocketAddr) {
    let port = upstream.port_u16().unwrap_or(if upstream.scheme_str() == Some("https") { 443 } else { 80 });
    let host = upstream.host().unwrap_or("").trim_matches(['[', ']']);
    let is_me = if host == "localhost" {
        listen.ip().is_loopback() || listen.ip().is_unspecified()
    } else {
        host.parse().is_ok_and(|ip: std::net::IpAddr| {
            ip == listen.ip() || (listen.ip().is_unspecified() && ip.is_loopback())
        })
    };
    if is_me && port == listen.port() {
        root.wrong(
            "upstream",
            &format!("is {listen}, where the proxy itself listens; give one of them another port"),
        );
    }
    if root.has("upstream_authorities") && upstream.scheme_str() != Some("https") {
        root.wrong("upstream_authorities", "is for an upstream with https; this one is plain");
    }
}
