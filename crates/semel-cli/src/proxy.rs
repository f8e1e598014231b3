//! `semel proxy`: safe retries for a service that is not changed.

use std::path::PathBuf;

use anyhow::{Context, Result};
use semel_listen::raise_open_files;
use semel_proxy::{AdminSide, Drained, Proxy, ProxySettings};
use semel_server::access::{Audit, Tokens};
use semel_server::admin;
use semel_server::state::AppState;

use crate::proxy_plan::ProxyPlan;
use crate::signals::{Signals, Told};
use crate::telemetry::Telemetry;
use crate::terminal::number::counted;

/// Files beside those of connections: the store's, the log's, the listeners'.
const OTHER_FILES: u64 = 256;

/// Runs until it is told to stop. What people read goes to standard error: standard output is for the access log.
pub(crate) async fn run(plan: &ProxyPlan) -> Result<()> {
    let settings = plan.settings()?;
    let telemetry = Telemetry::start("semel proxy", None)?;
    let mut signals = Signals::new().context("signals cannot be listened for")?;
    say_if_files_are_few(&settings);
    if settings.admin.is_some() {
        // Before anything is counted.
        admin::recorder();
    }
    let audit = settings.audit.clone();
    let (store, upstream) = (settings.store.clone(), settings.upstream.clone());
    let scheme = if settings.listener.tls.is_some() { "https" } else { "http" };
    let tokens = tokens(&settings)?;
    let proxy = Proxy::start_with_admin(settings, admin_side(tokens.clone(), audit)).await?;
    let listening = proxy.listening();
    let admin = proxy
        .admin()
        .map_or(String::new(), |admin| format!("; health, metrics and the dashboard on http://{admin}"));
    eprintln!(
        "semel proxy: listening on {scheme}://{listening}, before {upstream}; outcomes in {store} survive {}{admin}",
        proxy.survives()
    );
    while matches!(signals.next().await, Told::Reload) {
        reload(&proxy, &tokens, plan);
    }
    eprintln!("semel proxy: stopping; what runs may finish, nothing new is taken");
    tokio::select! {
        drained = proxy.drain() => say_how_it_ended(drained),
        // Whoever says so twice means it.
        () = signals.stopped() => eprintln!("semel proxy: stopped at once"),
    }
    telemetry.end().await;
    Ok(())
}

/// Who may look at the dashboard, and act; none if everybody on this machine may.
fn tokens(settings: &ProxySettings) -> Result<Tokens> {
    Ok(match &settings.admin_tokens_file {
        Some(path) => Tokens::read(path)?.tokens,
        None => Tokens::none(),
    })
}

/// Health, metrics and the dashboard, on the listener that the proxy has for them.
fn admin_side(tokens: Tokens, audit: Option<PathBuf>) -> AdminSide {
    Box::new(move |listener, running| {
        let address = running.store_address.to_string();
        let state = AppState {
            audit: Audit::to(audit)?,
            ..AppState::new(running.semel, running.store, address, tokens)
        };
        admin::Side::new(state, running.measure).serve(listener, running.phase)
    })
}

/// Takes up what the file says now; if that cannot be, everything stays as it is.
fn reload(proxy: &Proxy, known: &Tokens, plan: &ProxyPlan) {
    let reloaded = plan.settings().and_then(|settings| {
        let needs_restart = proxy.needs_restart(&settings);
        let tokens = tokens(&settings)?;
        if !known.is_empty() && !tokens.is_empty() {
            known.replace(&tokens)?;
        }
        proxy.reload(settings)?;
        Ok(needs_restart)
    });
    match reloaded {
        Ok(later) if later.is_empty() => eprintln!("semel proxy: reloaded"),
        Ok(later) => {
            eprintln!(
                "semel proxy: reloaded; a restart is needed for what else changed: {}",
                later.join(", ")
            );
        }
        Err(error) => eprintln!("semel proxy: not reloaded, everything stays as it was: {error:#}"),
    }
}

fn say_how_it_ended(drained: Drained) {
    let Drained { finished, cut_off } = drained;
    let finished = counted(finished as u64, "request");
    match cut_off {
        0 => eprintln!("semel proxy: stopped; {finished} finished, none was cut off"),
        _ => eprintln!(
            "semel proxy: stopped; {finished} finished, {} cut off: with a key, their lapse policy decides",
            counted(cut_off as u64, "request")
        ),
    }
}

/// Every connection is a file, and every one to the upstream is two: as many as requests in flight, and the idle ones.
fn say_if_files_are_few(settings: &ProxySettings) {
    let limits = settings.listener.limits;
    let connections = limits.connections_max as u64;
    let idle = settings.upstream_limits.idle_max as u64;
    let to_upstream = (limits.in_flight_max as u64).saturating_add(idle);
    let wanted = connections.saturating_add(to_upstream.saturating_mul(2)).saturating_add(OTHER_FILES);
    match raise_open_files(wanted) {
        Some(limit) if limit < wanted => eprintln!(
            "semel proxy: {limit} files may be open at once, and {connections} connections may need {wanted}: raise the \
             limit (`ulimit -n`), or lower connections_max"
        ),
        _ => {}
    }
}
