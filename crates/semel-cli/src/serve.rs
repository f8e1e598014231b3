//! `semel serve`: keys for workers in every language, and pages for people.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Result;
use http::Uri;
use semel_config::Source;
use semel_listen::ServerTls;
use semel_ops::access_log::AccessLog;
use semel_server::config::{ServerMeaning, ServerOverrides, server};
use semel_server::serve::Server;

use crate::args::refused;
use crate::service::{Service, access_log, cannot_be, listen_address, say};
use crate::store_arg::StoreArg;
use crate::telemetry::Telemetry;
use crate::terminal::{counted, out};

/// Tokens, as a file with them has them, for whoever names none.
const TOKENS_VARIABLE: &str = "SEMEL_TOKENS";
/// Where every program with OpenTelemetry looks for a collector.
const OTLP_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// Where callers come; 127.0.0.1:4747 unless said
    #[arg(long, value_name = "ADDR", value_parser = listen_address)]
    listen: Option<SocketAddr>,
    /// A file with everything that there is to say, in its table [server]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A file with the digests of tokens, as `semel token new` prints them
    ///
    /// Without one, `SEMEL_TOKENS` may hold the text of such a file. Without either, everybody who reaches the server may do
    /// everything, so it listens on loopback only. SIGHUP reads the file again.
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// A file that every action of an operator is appended to, before it is done; standard error unless said
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// What is written of each request, to standard output
    #[arg(long, value_name = "FORM", value_parser = access_log())]
    access_log: Option<AccessLog>,
    /// A certificate for TLS, with its chain, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The certificate's private key, as a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// A collector for traces, over OTLP/HTTP: `http://127.0.0.1:4318`
    ///
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` names one for whoever names none here or in the file.
    #[arg(long, value_name = "URL", value_parser = ServerOverrides::collector)]
    otlp: Option<Uri>,
    /// Print what all of it means, and end: with code 1 if something is wrong, which is named by its line
    #[arg(long)]
    check: bool,
}

impl ServeArgs {
    /// Runs until it is told to stop. What people read goes to standard error: standard output is for the access log.
    pub(crate) async fn run(self, store: &StoreArg) -> Result<()> {
        let overrides = self.overrides(store)?;
        let meaning = self.meaning(&overrides)?;
        for warning in &meaning.warnings {
            say("semel serve", warning);
        }
        if self.check {
            return out::print(&meaning.effective());
        }
        let ServerMeaning { mut settings, otlp, .. } = meaning;
        let telemetry = Telemetry::start("semel serve", otlp.as_ref())?;
        settings.join_trace = telemetry.join_trace();
        let service = Service::new("semel serve", "ask again with the same permit")?;
        service.say_if_files_are_few(settings.listener.limits.connections_max, 0);
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
        let started =
            format!("listening on {scheme}://{listening}; records in {store} survive {survives}; {who}");
        say("semel serve", &started);
        let reload = |server: &Server| {
            let settings = self.meaning(&overrides)?.settings;
            let certificate = server.prepare_certificate(settings.listener.tls.as_ref())?;
            server.reload(&settings.tokens)?;
            if let Some(certificate) = certificate {
                certificate.put_in_place();
            }
            Ok(format!(", {}", counted(settings.tokens.len() as u64, "token")))
        };
        service.run(server, reload).await;
        telemetry.end().await;
        Ok(())
    }

    fn overrides(&self, store: &StoreArg) -> Result<ServerOverrides, clap::Error> {
        let tls = self.tls_certificate.clone().zip(self.tls_key.clone());
        Ok(ServerOverrides {
            listen: self.listen,
            store: store.overrides()?,
            tokens: self.tokens.clone(),
            tokens_variable: set(TOKENS_VARIABLE),
            audit: self.audit.clone(),
            access_log: self.access_log,
            tls: tls.map(|(certificate, key)| ServerTls { certificate, key }),
            otlp: self.otlp.clone(),
            otlp_variable: otlp_variable()?,
        })
    }

    /// What the file means now, with what the command line says; or all that is wrong with it, a line each.
    fn meaning(&self, overrides: &ServerOverrides) -> Result<ServerMeaning> {
        let source = self.config.as_deref().map_or_else(|| Ok(Source::none("semel serve")), Source::read);
        source.and_then(|source| server(&source, overrides)).map_err(|errors| cannot_be(&errors))
    }
}

fn otlp_variable() -> Result<Option<Uri>, clap::Error> {
    let uri = set(OTLP_VARIABLE).map(|text| ServerOverrides::collector(&text)).transpose();
    uri.map_err(|error| refused(&format!("{OTLP_VARIABLE}: {error}")))
}

/// What a variable of the environment holds, if it holds anything.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.trim().is_empty())
}
