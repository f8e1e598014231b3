//! Which store: what was typed, what the environment says, or the folder beside you; and the store that is there, or what
//! to do about it.

use anyhow::{Result, anyhow};
use semel::{Error, ErrorKind, Semel};
use semel_ops::store_setting::StoreOverrides;
use semel_ops::store_url::{Address, DEFAULT, Opened};
use semel_stream::Pipeline;

use crate::args::{Scope, refused};

/// Where the store is, for whoever names none on the command line.
const VARIABLE: &str = "SEMEL_STORE";

#[derive(Debug, clap::Args)]
pub(crate) struct StoreArg {
    /// Where the store is: `file:FOLDER`, `postgres://…`, `redis://…`, `redis+cluster://…`
    ///
    /// If it is not given, `SEMEL_STORE` says where it is; if that is not set, it is `file:./semel-data`. A URL that holds a
    /// password is better kept in `SEMEL_STORE`: other users of the machine can see the arguments of a process.
    #[arg(long = "store", id = "store", global = true, value_name = "URL", help_heading = "Which store")]
    typed: Option<String>,
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

    /// For what fills a store: only one that was typed, so that nobody measures what the environment points at.
    pub(crate) fn address_to_fill(&self) -> Result<Address, clap::Error> {
        Ok(self.typed()?.unwrap_or(Address::Memory))
    }

    /// The store, which must be there: a mistyped address must not become an empty store.
    pub(crate) async fn open_existing(&self) -> Result<Opened> {
        let address = self.address()?;
        address.open_existing().await.map_err(|error| explained(&address, error))
    }

    /// The store, also if its server cannot keep the promise.
    pub(crate) async fn open_to_check(&self) -> Result<Opened> {
        let address = self.address()?;
        address.open_to_check().await.map_err(|error| explained(&address, error))
    }

    /// The store, which is made if it is a folder and missing.
    pub(crate) async fn open(&self) -> Result<Opened> {
        let address = self.address()?;
        address.open().await.map_err(|error| explained(&address, error))
    }

    /// A pipeline with its receipts and offsets in the store, which must be there.
    pub(crate) async fn open_pipeline(&self, name: &str, scope: Option<Scope>) -> Result<(Opened, Pipeline)> {
        let store = self.open_existing().await?;
        let semel = Semel::builder_shared(store.store()).no_sweep().build()?;
        let pipeline = Pipeline::builder(&semel, name).scope(scope.unwrap_or_default()).build()?;
        Ok((store, pipeline))
    }

    fn typed(&self) -> Result<Option<Address>, clap::Error> {
        self.typed.as_deref().map(|typed| address("--store", typed)).transpose()
    }
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
            "While a program holds the folder, only that program can look into it: `Semel::scan`, `Semel::resolve`.",
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
        StoreArg { typed: typed.map(Into::into), variable: variable.map(Into::into) }
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
