//! `[server]`: everything that a claim server is told, read and rendered.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use http::Uri;
use semel_config::render::{Lines, listed, quoted, table};
use semel_config::value::{address, any_text, count, list, network, text, word, word_for};
use semel_config::{Errors, Source, Table, layout};
use semel_listen::ServerTls;
use semel_listen::config::MANY;
use semel_ops::access_log::{ACCESS_LOG, AccessLog};
use semel_ops::store_setting::{StoreFrom, StoreOverrides, StoreSetting};

use crate::access::{FromFile, Tokens};
use crate::serve::ServerSettings;

/// Where a server listens unless somebody says otherwise.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4747);
/// Where tokens are if neither the command line nor the file says: the text of such a file.
const TOKENS_VARIABLE: &str = "SEMEL_TOKENS";

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
    /// What is written of each request.
    pub access_log: Option<AccessLog>,
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
    store: StoreFrom,
    tokens: TokensFrom,
}

impl ServerMeaning {
    /// What it all means, as a file that means the same. Secrets are not in it, only where they are.
    pub fn effective(&self) -> String {
        let listener = &self.settings.listener;
        let mut text = table("", vec![("store", self.store.line(&self.settings.store))]);
        text.push_str(&table("[server]", lines(self)));
        let tls = listener.tls.as_ref().map(ServerTls::lines).unwrap_or_default();
        text.push_str(&table("[server.tls]", tls));
        let waiting = ("waiting_max", self.settings.waiting_max.to_string());
        text.push_str(&table("[server.bounds]", listener.limits.lines(waiting)));
        text.push_str(&table("[server.timeouts]", listener.timeouts.lines(&[])));
        text
    }
}

/// Where tokens come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum TokensFrom {
    Nowhere,
    File(PathBuf),
    Variable,
}

/// What a file and a command line mean for a server; or everything that is wrong with them.
pub fn server(source: &Source, overrides: &ServerOverrides) -> Result<ServerMeaning, Errors> {
    let mut meaning = source.judged(|root| Some(written(root, overrides)))?;
    let FromFile { tokens, warning } = match &meaning.tokens {
        TokensFrom::Nowhere => FromFile { tokens: Tokens::none(), warning: None },
        TokensFrom::File(path) => Tokens::read(path)?,
        TokensFrom::Variable => {
            let text = overrides.tokens_variable.as_deref().unwrap_or_default();
            FromFile { tokens: Tokens::parse(text, TOKENS_VARIABLE)?, warning: None }
        }
    };
    meaning.settings.tokens = tokens;
    meaning.warnings.extend(warning);
    let checked = meaning.settings.check();
    checked.map_err(|error| Errors::whole(source.name(), format!("`listen` cannot be: {error}")))?;
    Ok(meaning)
}

/// What was written, before the tokens are read from their own file.
fn written(mut root: Table<'_>, overrides: &ServerOverrides) -> ServerMeaning {
    let StoreSetting { address: store_address, from: store } =
        StoreSetting::read(&mut root, &overrides.store);
    let mut table = root.table("server");
    let listen = table.read("listen", text(address));
    let mut settings = ServerSettings::new(overrides.listen.or(listen).unwrap_or(LISTEN), store_address);
    let tokens = table.read("tokens", any_text).map(PathBuf::from);
    let audit = table.read("audit", any_text).map(PathBuf::from);
    settings.audit = overrides.audit.clone().or(audit);
    let access_log = table.read("access_log", word(ACCESS_LOG));
    settings.access_log = overrides.access_log.or(access_log).unwrap_or_default();
    settings.trusted_proxies = table.read("trusted_proxies", list(text(network))).unwrap_or_default();
    let otlp = table.read("otlp", text(collector));
    let tls = ServerTls::read(&mut table);
    settings.listener.tls = overrides.tls.clone().or(tls);
    let mut bounds = table.table("bounds");
    settings.listener.limits.read(&mut bounds);
    bounds.set("waiting_max", &mut settings.waiting_max, count(0..=MANY));
    bounds.finish();
    let mut timeouts = table.table("timeouts");
    settings.listener.timeouts.read(&mut timeouts);
    timeouts.finish();
    table.finish();
    // What a proxy is told in the same file is for a proxy to judge.
    for name in layout::of_a_proxy() {
        root.value(name);
    }
    root.finish();
    let variable = overrides.tokens_variable.as_ref().map(|_| TokensFrom::Variable);
    let file = overrides.tokens.clone().or(tokens).map(TokensFrom::File);
    ServerMeaning {
        settings,
        otlp: overrides.otlp.clone().or(otlp).or_else(|| overrides.otlp_variable.clone()),
        warnings: Vec::new(),
        store,
        tokens: file.or(variable).unwrap_or(TokensFrom::Nowhere),
    }
}

/// The names and values of `[server]`.
fn lines(meaning: &ServerMeaning) -> Lines {
    let settings = &meaning.settings;
    let mut lines = vec![("listen", quoted(settings.listener.listen))];
    let count = settings.tokens.len();
    match &meaning.tokens {
        TokensFrom::Nowhere => {}
        TokensFrom::File(path) => {
            lines.push(("tokens", format!("{} # {count} of them", quoted(path.display()))));
        }
        TokensFrom::Variable => {
            lines.push((
                "# tokens",
                format!("in the environment variable {TOKENS_VARIABLE}, {count} of them"),
            ));
        }
    }
    if let Some(audit) = &settings.audit {
        lines.push(("audit", quoted(audit.display())));
    }
    lines.push(("access_log", quoted(word_for(ACCESS_LOG, &settings.access_log))));
    lines.push(("trusted_proxies", listed(settings.trusted_proxies.iter().map(quoted))));
    if let Some(otlp) = &meaning.otlp {
        lines.push(("otlp", quoted(otlp)));
    }
    lines
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
