//! Started, reloaded, stopped.

use anyhow::{Context, Result};
use semel_listen::raise_open_files;
use semel_server::config::ServerMeaning;
use semel_server::serve::{Drained, Server};

use super::plan::ServePlan;
use crate::signals::{Signals, Told};
use crate::telemetry::Telemetry;
use crate::terminal::number::counted;

/// Files beside those of connections: the store's, the audit log's, the listener's.
const OTHER_FILES: u64 = 256;

/// Runs until it is told to stop.
pub(crate) async fn run(plan: &ServePlan) -> Result<()> {
    let ServerMeaning { mut settings, otlp, warnings, .. } = plan.meaning()?;
    for warning in &warnings {
        eprintln!("semel serve: {warning}");
    }
    let telemetry = Telemetry::start("semel serve", otlp.as_ref())?;
    settings.join_trace = telemetry.join_trace();
    let mut signals = Signals::new().context("signals cannot be listened for")?;
    say_if_files_are_few(settings.listener.limits.connections_max as u64);
    let store = settings.store.clone();
    let scheme = if settings.listener.tls.is_some() { "https" } else { "http" };
    let tokens = settings.tokens.clone();
    let server = Server::start(settings).await?;
    let who = if tokens.is_empty() {
        "no tokens: loopback only, everybody on this machine may do everything".to_owned()
    } else {
        counted(tokens.len() as u64, "token")
    };
    let (listening, survives) = (server.listening(), server.survives());
    eprintln!(
        "semel serve: listening on {scheme}://{listening}; records in {store} survive {survives}; {who}"
    );
    while matches!(signals.next().await, Told::Reload) {
        reload(&server, plan);
    }
    eprintln!("semel serve: stopping; what runs may finish, nothing new is taken");
    tokio::select! {
        drained = server.drain() => say_how_it_ended(drained),
        // Whoever says so twice means it.
        () = signals.stopped() => eprintln!("semel serve: stopped at once"),
    }
    telemetry.end().await;
    Ok(())
}

/// Takes up the tokens that there are now; if that cannot be, everything stays as it is.
fn reload(server: &Server, plan: &ServePlan) {
    let reloaded = plan.meaning().and_then(|meaning| {
        let tokens = &meaning.settings.tokens;
        server.reload(tokens)?;
        Ok(tokens.len())
    });
    match reloaded {
        Ok(count) => eprintln!("semel serve: reloaded, {}", counted(count as u64, "token")),
        Err(error) => eprintln!("semel serve: not reloaded, everything stays as it was: {error:#}"),
    }
}

fn say_how_it_ended(drained: Drained) {
    let Drained { finished, cut_off } = drained;
    let (finished, cut) = (counted(finished as u64, "request"), counted(cut_off as u64, "request"));
    match cut_off {
        0 => eprintln!("semel serve: stopped; {finished} finished, none was cut off"),
        _ => eprintln!(
            "semel serve: stopped; {finished} finished, {cut} cut off: ask again with the same permit"
        ),
    }
}

fn say_if_files_are_few(connections: u64) {
    let wanted = connections.saturating_add(OTHER_FILES);
    match raise_open_files(wanted) {
        Some(limit) if limit < wanted => eprintln!(
            "semel serve: {limit} files may be open at once, and {connections} connections may need {wanted}: raise the \
             limit (`ulimit -n`), or lower connections_max"
        ),
        _ => {}
    }
}
