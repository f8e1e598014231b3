//! Which store: what was typed, what the environment says, or the folder beside you; and the store that is there, or what
//! to do about it.

use std::net::IpAddr;
use std::ops::Deref;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use semel::{Error, ErrorKind, Semel};
use semel_ops::record_json::Content;
use semel_ops::store_setting::StoreOverrides;
use semel_ops::store_url::{Address, DEFAULT, Opened, ServerUrl};
use semel_stream::Pipeline;

use crate::args::{Scope, refused};
use crate::remote::{Server, Token};

/// Where the store is, for whoever names none on the command line.
const VARIABLE: &str = "SEMEL_STORE";

#[derive(Debug, clap::Args)]
pub(crate) struct StoreArg {
    /// Where the store is: `file:FOLDER`, `postgres://…`, `redis://…`, `redis+cluster://…`, or `http://HOST:PORT` of a server that has it
    ///
    /// If it is not given, `SEMEL_STORE` says where it is; if that is not set, it is `file:./semel-data`. A URL that holds a
    /// password is better kept in `SEMEL_STORE`: other users of the machine can see the arguments of a process. `http://` and
    /// `https://` name a running `semel serve`, or the admin side of a `semel proxy`: everything is read and done through it.
    #[arg(long = "store", id = "store", global = true, value_name = "URL", help_heading = "Which store")]
    typed: Option<String>,
    /// With --store http://…: the file with the token; `SEMEL_TOKEN` holds the token itself if no file is given
    #[arg(long, global = true, value_name = "FILE", help_heading = "Which store")]
    token_file: Option<PathBuf>,
    /// With --store https://…: a PEM file with the authority of the server's certificate, beside those that the system trusts
    #[arg(long, global = true, value_name = "FILE", help_heading = "Which store")]
    ca_file: Option<PathBuf>,
    #[arg(skip = std::env::var(VARIABLE).ok().filter(|url| !url.is_empty()))]
    variable: Option<String>,
}

impl StoreArg {
    pub(crate) fn address(&self) -> Result<Address, clap::Error> {
        match (self.typed()?, &self.variable) {
            (Some(typed), _) => Ok(typed),
            (None, Some(variable)) => address(VARIABLE, variable),
            (None, None) => address("the default", DEFAULT),
        }
    }

    /// What was typed and what the environment says, apart: a file may say something between the two.
    pub(crate) fn overrides(&self) -> Result<StoreOverrides, clap::Error> {
        let variable = self.variable.as_deref().map(|variable| address(VARIABLE, variable)).transpose();
        Ok(StoreOverrides { store: self.typed()?, variable: variable?.map(|store| (VARIABLE, store)) })
    }

    /// For what a server does not do for others: the address of the store itself.
    pub(crate) fn address_of_store(&self) -> Result<Address> {
        not_a_server(self.address()?)
    }

    /// For what fills a store: only one that was typed, so that nobody measures what the environment points at.
    pub(crate) fn address_to_fill(&self) -> Result<Address> {
        not_a_server(self.typed()?.unwrap_or(Address::Memory))
    }

    /// The store, which must be there: a mistyped address must not become an empty store. Through its server, if the address is one's.
    pub(crate) async fn open_existing(&self) -> Result<StoreHandle> {
        let address = self.address()?;
        if let Address::Server(url) = &address {
            return self.open_server(url).await;
        }
        let opened = self.without_server(&address)?.open_existing().await;
        opened.map(StoreHandle::direct).map_err(|error| explained(&address, error))
    }

    /// The store, also if its server cannot keep the promise.
    pub(crate) async fn open_to_check(&self) -> Result<StoreHandle> {
        let address = self.address()?;
        if let Address::Server(url) = &address {
            return self.open_server(url).await;
        }
        let opened = self.without_server(&address)?.open_to_check().await;
        opened.map(StoreHandle::direct).map_err(|error| explained(&address, error))
    }

    async fn open_server(&self, url: &ServerUrl) -> Result<StoreHandle> {
        let token = Token::find(self.token_file.as_deref())?;
        if token.is_some() && !url.is_secured() && !is_this_machine(url.host()) {
            eprintln!(
                "warning: the token goes to {} unencrypted; use https:// unless you trust the network",
                url.host()
            );
        }
        match Server::open(url, token, self.ca_file.as_deref()).await {
            Ok((opened, server)) => Ok(StoreHandle { opened, server: Some(server) }),
            Err(error) => Err(explained(&Address::Server(url.clone()), error)),
        }
    }

    /// The address, if nothing was typed that only a server would take: it must not seem to count.
    fn without_server<'a>(&self, address: &'a Address) -> Result<&'a Address, clap::Error> {
        for (option, file) in [("--token-file", &self.token_file), ("--ca-file", &self.ca_file)] {
            if file.is_some() {
                return Err(refused(&format!(
                    "{option} is for a server, and {address} is none: use --store http://HOST:PORT"
                )));
            }
        }
        Ok(address)
    }

    /// The store, which is made if it is a folder and missing.
    pub(crate) async fn open(&self) -> Result<Opened> {
        let address = self.address()?;
        address.open().await.map_err(|error| explained(&address, error))
    }

    /// A pipeline with its receipts and offsets in the store, which must be there.
    pub(crate) async fn open_pipeline(
        &self,
        name: &str,
        scope: Option<Scope>,
    ) -> Result<(StoreHandle, Pipeline)> {
        let store = self.open_existing().await?;
        let semel = Semel::builder_shared(store.store()).no_sweep().build()?;
        let pipeline = Pipeline::builder(&semel, name).scope(scope.unwrap_or_default()).build()?;
        Ok((store, pipeline))
    }

    fn typed(&self) -> Result<Option<Address>, clap::Error> {
        self.typed.as_deref().map(|typed| address("--store", typed)).transpose()
    }
}

/// A store that a command works on: opened here, or behind a server.
pub(crate) struct StoreHandle {
    opened: Opened,
    server: Option<Server>,
}

impl StoreHandle {
    fn direct(opened: Opened) -> Self {
        Self { opened, server: None }
    }

    /// The server that the store is behind.
    pub(crate) fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// Refuses to show what is in outcomes, if the server keeps that from this caller.
    pub(crate) fn must_show_content(&self) -> Result<()> {
        Ok(self.server.as_ref().map_or(Ok(()), Server::must_show_content)?)
    }

    /// How much of an outcome there is to show.
    pub(crate) fn content(&self) -> Content {
        let is_hidden = self.server.as_ref().is_some_and(|server| !server.shows_content());
        if is_hidden { Content::Hidden } else { Content::Base64 }
    }
}

impl Deref for StoreHandle {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.opened
    }
}

fn not_a_server(address: Address) -> Result<Address> {
    if let Address::Server(url) = &address {
        return Err(url.is_no_store().into());
    }
    Ok(address)
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn address(by: &str, text: &str) -> Result<Address, clap::Error> {
    text.parse().map_err(|error| refused(&format!("{by}: {error}")))
}

fn explained(address: &Address, error: Error) -> anyhow::Error {
    let kind = error.kind();
    let error = anyhow!(error);
    match next_step(address, kind) {
        Some(next) => anyhow!("cannot open {address}: {error:#}\n{next}"),
        None => anyhow!("cannot open {address}: {error:#}"),
    }
}

fn next_step(address: &Address, kind: ErrorKind) -> Option<&'static str> {
    match (address, kind) {
        (Address::File(_), ErrorKind::Invalid) => Some(
            "Name the store with --store URL or SEMEL_STORE. A folder becomes a store when a program first uses it.",
        ),
        (Address::File(_), ErrorKind::Unavailable) => Some(
            "While a process holds the folder, look into it through that process:\n  \
             semel --store http://127.0.0.1:9464 keys list    if it is `semel proxy`: its admin address\n  \
             semel --store http://127.0.0.1:4747 keys list    if it is `semel serve`",
        ),
        (Address::Postgres(_) | Address::Redis(_), ErrorKind::Unavailable) => {
            Some("Is the server up, and is this its URL? It comes from --store or SEMEL_STORE.")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(typed: Option<&str>, variable: Option<&str>) -> StoreArg {
        let (typed, variable) = (typed.map(Into::into), variable.map(Into::into));
        StoreArg { typed, variable, token_file: None, ca_file: None }
    }

    #[test]
    fn what_was_typed_goes_before_the_variable_and_that_before_the_default() {
        let address = |typed, variable| named(typed, variable).address().expect("is fine").to_string();
        assert_eq!(address(Some("file:a"), Some("file:b")), "file:a");
        assert_eq!(address(None, Some("file:b")), "file:b");
        assert_eq!(address(None, None), DEFAULT);
    }

    #[test]
    fn a_measurement_never_fills_what_the_environment_points_at() {
        let store = named(None, Some("postgres://db/production"));
        assert_eq!(store.address_to_fill().expect("is fine"), Address::Memory);
    }

    #[test]
    fn whoever_named_no_store_is_told_where_it_was_looked_for() {
        let store = named(None, Some("nowhere"));
        assert!(store.address().expect_err("is none").to_string().contains("SEMEL_STORE"));
    }
}
