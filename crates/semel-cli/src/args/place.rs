//! Which store: what was typed, what the environment says, or the folder beside you.

use semel_ops::store_url::{Address, DEFAULT};

use super::refused::{Meaning, refused};

/// Where the store is, for whoever names none on the command line.
pub(super) const VARIABLE: &str = "SEMEL_STORE";

/// The places where a store may be named.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) typed: Option<String>,
    pub(super) variable: Option<String>,
}

impl Place {
    pub(super) fn store(&self) -> Meaning<Address> {
        match (&self.typed, &self.variable) {
            (Some(typed), _) => address("--store", typed),
            (None, Some(variable)) => address(VARIABLE, variable),
            (None, None) => address("the default", DEFAULT),
        }
    }

    /// What was typed and what the environment says, apart: a file may say something between the two.
    pub(super) fn apart(&self) -> Meaning<(Option<Address>, Option<Address>)> {
        let typed = self.typed.as_deref().map(|typed| address("--store", typed)).transpose()?;
        let variable = self.variable.as_deref().map(|variable| address(VARIABLE, variable)).transpose()?;
        Ok((typed, variable))
    }

    /// For what fills a store: only one that was typed, so that nobody measures what the environment points at.
    pub(super) fn store_to_fill(&self) -> Meaning<Address> {
        self.typed.as_deref().map_or(Ok(Address::Memory), |typed| address("--store", typed))
    }
}

fn address(by: &str, text: &str) -> Meaning<Address> {
    text.parse().map_err(|error| refused(&format!("{by}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_goes_before_the_variable_and_that_before_the_default() {
        let place = |typed: Option<&str>, variable: Option<&str>| {
            let place = Place { typed: typed.map(Into::into), variable: variable.map(Into::into) };
            place.store().expect("is fine").to_string()
        };
        assert_eq!(place(Some("file:a"), Some("file:b")), "file:a");
        assert_eq!(place(None, Some("file:b")), "file:b");
        assert_eq!(place(None, None), DEFAULT);
    }

    #[test]
    fn a_measurement_never_fills_what_the_environment_points_at() {
        let place = Place { typed: None, variable: Some("postgres://db/production".to_owned()) };
        assert_eq!(place.store_to_fill().expect("is fine"), Address::Memory);
    }

    #[test]
    fn whoever_named_no_store_is_told_where_it_was_looked_for() {
        let place = Place { typed: None, variable: Some("nowhere".to_owned()) };
        assert!(place.store().expect_err("is none").to_string().contains("SEMEL_STORE"));
    }
}
