//! `semel proxy`: safe retries for a service that is not changed.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use http::Uri;
use semel_config::Errors;
use semel_proxy::config::{Admin, Config, Named, Overrides, Summary};
use semel_proxy::{AccessLog, AdminSide, Proxy, ProxySettings};
use semel_server::access::{Audit, Tokens};
use semel_server::admin;
use semel_server::state::AppState;

use crate::service::{Service, access_log, cannot_be, listen_address, say};
use crate::store_arg::StoreArg;
use crate::telemetry::Telemetry;
use crate::terminal::out;

#[derive(Debug, clap::Args)]
pub(crate) struct ProxyArgs {
    /// Where requests go: scheme, host and port
    ///
    /// With a path if every path is to begin with it.
    #[arg(long, value_name = "URL", value_parser = Overrides::upstream)]
    upstream: Option<Uri>,
    /// Where clients come; 127.0.0.1:8080 unless said
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    listen: Option<SocketAddr>,
    /// A file with everything that there is to say, route by route
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where /healthz, /readyz, /metrics and the dashboard are, or `off`; 127.0.0.1:9464 unless said
    #[arg(long, value_name = "ADDR|off")]
    admin: Option<Admin>,
    /// Let others than this machine reach --admin
    #[arg(long)]
    admin_public: bool,
    /// A file with the digests of tokens of those who may look at the dashboard there
    ///
    /// Without one, everybody on this machine may. `semel token new` makes one.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// A file that every action of an operator is appended to, before it is done; standard error unless said
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// What clients see: `ietf`, or `stripe` for those that know Stripe's answers
    #[arg(long, value_name = "NAME")]
    profile: Option<Named>,
    /// What is written of each request, to standard output
    #[arg(long, value_name = "FORM", value_parser = access_log())]
    access_log: Option<AccessLog>,
    /// Print what all of it means, and end: with code 1 if something is wrong, which is named by its line
    #[arg(long)]
    check: bool,
}

impl ProxyArgs {
    /// Runs until it is told to stop. What people read goes to standard error: standard output is for the access log.
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let overrides = self.overrides(store)?;
        if self.check {
            let text = self.config(&overrides).and_then(|config| config.effective());
            return out::print(&text.map_err(|errors| cannot_be(&errors))?);
        }
        let settings = self.settings(&overrides)?;
        let telemetry = Telemetry::start("semel proxy", None)?;
        let service = Service::new("semel proxy", "with a key, their lapse policy decides")?;
        let limits = settings.listener.limits;
        // Every one to the upstream is two: as many as requests in flight, and the idle ones.
        let to_upstream = limits.in_flight_max.saturating_add(settings.upstream_limits.idle_max);
        service.say_if_files_are_few(limits.connections_max, to_upstream.saturating_mul(2));
        if settings.admin.is_some() {
            // Before anything is counted.
            admin::recorder();
        }
        let audit = settings.audit.clone();
        let tokens = tokens(&settings)?;
        let proxy = Proxy::start_with_admin(settings.clone(), admin_side(tokens.clone(), audit)).await?;
        let summary = Summary {
            settings: &settings,
            listening: proxy.listening(),
            admin: proxy.admin(),
            survives: proxy.survives(),
        };
        say("semel proxy", &summary.lines().join("\n  "));
        let reload = |proxy: &Proxy| reload(proxy, &tokens, self.settings(&overrides)?);
        service.run(proxy, reload).await;
        telemetry.end().await;
        Ok(())
    }

    fn overrides(&self, store: &StoreArg) -> Result<Overrides, clap::Error> {
        Ok(Overrides {
            upstream: self.upstream.clone(),
            listen: self.listen,
            store: store.overrides()?,
            admin: self.admin,
            admin_public: self.admin_public,
            tokens: self.tokens.clone(),
            tokens_check: Some(|path| Tokens::read(path).map(drop)),
            audit: self.audit.clone(),
            profile: self.profile,
            access_log: self.access_log,
        })
    }

    /// What the file means now, with what the command line says; or all that is wrong with it, a line each.
    fn settings(&self, overrides: &Overrides) -> Result<ProxySettings> {
        self.config(overrides).and_then(|config| config.settings()).map_err(|errors| cannot_be(&errors))
    }

    fn config(&self, overrides: &Overrides) -> Result<Config, Errors> {
        let config = self.config.as_deref().map_or_else(|| Ok(Config::none("semel proxy")), Config::read)?;
        Ok(config.with_overrides(overrides.clone()))
    }
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

/// Takes up what the file says now, and says what needs a restart; if that cannot be, everything stays as it is.
fn reload(proxy: &Proxy, known: &Tokens, settings: ProxySettings) -> Result<String> {
    let needs_restart = proxy.needs_restart(&settings);
    let tokens = tokens(&settings)?;
    proxy.reload(settings)?;
    if !known.is_empty() && !tokens.is_empty() {
        known.replace(&tokens)?;
    }
    Ok(match needs_restart.join(", ") {
        later if later.is_empty() => later,
        later => format!("; a restart is needed for what else changed: {later}"),
    })
}
