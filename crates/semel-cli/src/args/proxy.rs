//! `semel proxy`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use http::Uri;
use semel_config::value;
use semel_ops::store_setting::StoreOverrides;
use semel_proxy::AccessLog;
use semel_proxy::config::{Admin, Named, Overrides};
use semel_server::access::Tokens;

use super::Command;
use super::place::{Place, VARIABLE};
use super::refused::Meaning;
use crate::proxy_plan::ProxyPlan;

#[derive(Debug, clap::Args)]
pub(super) struct TypedProxy {
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
    #[arg(long, value_name = "FORM", value_enum)]
    access_log: Option<TypedLog>,
    /// Print what all of it means, and end: with code 1 if something is wrong, which is named by its line
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TypedLog {
    /// A line for people
    Text,
    /// A line of JSON
    Json,
    /// Nothing
    Off,
}

impl TypedProxy {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Command> {
        let (store, variable) = place.apart()?;
        let access_log = self.access_log.map(|form| match form {
            TypedLog::Text => AccessLog::Text,
            TypedLog::Json => AccessLog::Json,
            TypedLog::Off => AccessLog::Off,
        });
        let overrides = Overrides {
            upstream: self.upstream,
            listen: self.listen,
            store: StoreOverrides { store, variable: variable.map(|store| (VARIABLE, store)) },
            admin: self.admin,
            admin_public: self.admin_public,
            tokens: self.tokens,
            tokens_check: Some(|path| Tokens::read(path).map(drop)),
            audit: self.audit,
            profile: self.profile,
            access_log,
        };
        let plan = ProxyPlan { file: self.config, overrides };
        Ok(if self.check { Command::CheckProxy(plan) } else { Command::Proxy(plan) })
    }
}

/// Reads an address to listen on as a configuration file does.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    value::address(text).map_err(|error| format!("this is {error}"))
}
