//! `store`: a URL, or where one with a password is to be found.

use super::overrides::Overrides;
use super::table::Table;
use super::value::{Read, Value, any_text, kind, wrong};
use crate::store::{Address, DEFAULT};

/// A store, and how to say where it is without its password.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) address: Address,
    pub(super) from: From,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// Written as it is.
    Written,
    /// `{ env = "NAME" }`.
    Variable(String),
    /// `{ file = "PATH" }`.
    File(String),
}

/// What the command line, the file, the environment or nobody says, in this order.
pub(super) fn store(root: &mut Table<'_>, overrides: &Overrides) -> Named {
    let written = root.read("store", named);
    if let Some(address) = overrides.store.clone() {
        return Named { address, from: From::Written };
    }
    let variable = overrides.store_variable.clone();
    let variable = variable.map(|(name, address)| Named { address, from: From::Variable(name.to_owned()) });
    written.or(variable).unwrap_or_else(|| Named { address: Address::default(), from: From::Written })
}

fn named(value: &Value<'_>) -> Read<Named> {
    if let Some(url) = value.get_ref().as_str() {
        let address = parsed(value, url)?;
        return if address.has_password() {
            wrong(
                value,
                "holds a password, and this file is no place for it; write { env = \"SEMEL_STORE\" } or { file = \"/run/secrets/…\" }",
            )
        } else {
            Ok(Named { address, from: From::Written })
        };
    }
    let Some(fields) = value.get_ref().as_table() else {
        return wrong(value, format!("is {}; write a URL: \"{DEFAULT}\"", kind(value)));
    };
    let mut fields = fields.iter();
    let (Some((name, place)), None) = (fields.next(), fields.next()) else {
        return wrong(value, "is a table; write { env = \"NAME\" } or { file = \"PATH\" }");
    };
    let text = any_text(place)?;
    match name.get_ref().as_ref() {
        "env" => {
            let url = super::callers::variable(place, &text)?;
            Ok(Named { address: parsed(value, url.trim())?, from: From::Variable(text) })
        }
        "file" => {
            let url = super::callers::secret_file(place, &text)?;
            let url = String::from_utf8(url).or_else(|_| wrong(place, "names a file that is no text"))?;
            Ok(Named { address: parsed(value, url.trim())?, from: From::File(text) })
        }
        _ => wrong(value, "is a table; write { env = \"NAME\" } or { file = \"PATH\" }"),
    }
}

fn parsed(value: &Value<'_>, url: &str) -> Read<Address> {
    url.parse().or_else(|error| wrong(value, format!("is wrong: {error}")))
}
