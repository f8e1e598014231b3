//! Which store: what was typed, what the environment says, or the folder beside you.

use clap::Error;
use semel_ops::store_setting::StoreOverrides;
use semel_ops::store_url::{Address, DEFAULT};

use crate::args::refused;

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
    pub(crate) fn address(&self) -> Result<Address, Error> {
        match (self.typed()?, &self.variable) {
            (Some(typed), _) => Ok(typed),
            (None, Some(variable)) => address(VARIABLE, variable),
            (None, None) => address("the default", DEFAULT),
        }
    }

    /// What was typed and what the environment says, apart: a file may say something between the two.
    pub(crate) fn overrides(&self) -> Result<StoreOverrides, Error> {
        let variable = self.variable.as_deref().map(|variable| address(VARIABLE, variable)).transpose();
        Ok(StoreOverrides { store: self.typed()?, variable: variable?.map(|store| (VARIABLE, store)) })
    }

    /// For what fills a store: only one that was typed, so that nobody measures what the environment points at.
    pub(crate) fn address_to_fill(&self) -> Result<Address, Error> {
        Ok(self.typed()?.unwrap_or(Address::Memory))
    }

    fn typed(&self) -> Result<Option<Address>, Error> {
        self.typed.as_deref().map(|typed| address("--store", typed)).transpose()
    }
}

fn address(by: &str, text: &str) -> Result<Address, Error> {
    text.parse().map_err(|error| refused(&format!("{by}: {error}")))
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
