//! `semel serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use http::Uri;
use semel_listen::ServerTls;
use semel_ops::store_setting::StoreOverrides;
use semel_server::config::ServerOverrides;

use super::Command;
use super::place::{Place, VARIABLE};
use super::proxy::listen_address;
use super::refused::{Meaning, refused};
use crate::serve::ServePlan;

/// Tokens, as a file with them has them, for whoever names none.
const TOKENS_VARIABLE: &str = "SEMEL_TOKENS";
/// Where every program with OpenTelemetry looks for a collector.
const OTLP_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

#[derive(Debug, clap::Args)]
pub(super) struct TypedServe {
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

impl TypedServe {
    pub(super) fn meaning(self, place: &Place) -> Meaning<Command> {
        let (store, variable) = place.apart()?;
        let tls = self.tls_certificate.zip(self.tls_key);
        let overrides = ServerOverrides {
            listen: self.listen,
            store: StoreOverrides { store, variable: variable.map(|store| (VARIABLE, store)) },
            tokens: self.tokens,
            tokens_variable: set(TOKENS_VARIABLE),
            audit: self.audit,
            tls: tls.map(|(certificate, key)| ServerTls { certificate, key }),
            otlp: self.otlp,
            otlp_variable: otlp_variable()?,
        };
        let plan = ServePlan { file: self.config, overrides };
        Ok(if self.check { Command::CheckServe(plan) } else { Command::Serve(plan) })
    }
}

fn otlp_variable() -> Meaning<Option<Uri>> {
    let uri = set(OTLP_VARIABLE).map(|text| ServerOverrides::collector(&text)).transpose();
    uri.map_err(|error| refused(&format!("{OTLP_VARIABLE}: {error}")))
}

/// What a variable of the environment holds, if it holds anything.
fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.trim().is_empty())
}
