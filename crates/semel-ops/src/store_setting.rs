//! `store`: a URL, or where one with a password is to be found.

use semel_config::render::quoted;
use semel_config::value::{Read, Value, any_text, kind, wrong};
use semel_config::{Table, secret};

use crate::store_url::{Address, DEFAULT};

/// A store, and how to say where it is without its password.
#[derive(Clone, Debug)]
pub struct StoreSetting {
    /// Where it is.
    pub address: Address,
    /// Where that was found.
    pub from: StoreFrom,
}

/// Where the address of a store was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFrom {
    /// Written as it is.
    Written,
    /// `{ env = "NAME" }`.
    Variable(String),
    /// `{ file = "PATH" }`.
    File(String),
}

/// What the command line says, and the environment.
#[derive(Clone, Debug, Default)]
pub struct StoreOverrides {
    /// On the command line.
    pub store: Option<Address>,
    /// In this environment variable, which counts if neither the command line nor the file names a store.
    pub variable: Option<(&'static str, Address)>,
}

impl StoreSetting {
    /// What the command line, the file, the environment or the default says, in this order.
    pub fn read(root: &mut Table<'_>, overrides: &StoreOverrides) -> Self {
        let written = root.read("store", named);
        if let Some(address) = overrides.store.clone() {
            return Self { address, from: StoreFrom::Written };
        }
        let variable = overrides.variable.clone();
        let variable =
            variable.map(|(name, address)| Self { address, from: StoreFrom::Variable(name.to_owned()) });
        written.or(variable).unwrap_or_else(|| Self { address: Address::default(), from: StoreFrom::Written })
    }
}

impl StoreFrom {
    /// The value of `store` in a file that means the same, without the password.
    pub fn line(&self, store: &Address) -> String {
        match self {
            Self::Written if store.has_password() => {
                format!("{} # its password was on the command line", quoted(store))
            }
            Self::Written => quoted(store),
            Self::Variable(_) if !store.has_password() => quoted(store),
            Self::Variable(name) => format!("{{ env = {} }} # {store}", quoted(name)),
            Self::File(path) => format!("{{ file = {} }} # {store}", quoted(path)),
        }
    }
}

fn named(value: &Value<'_>) -> Read<StoreSetting> {
    if let Some(url) = value.get_ref().as_str() {
        let address = parsed(value, url)?;
        return if address.has_password() {
            wrong(
                value,
                "holds a password, and this file is no place for it; write { env = \"SEMEL_STORE\" } or { file = \"/run/secrets/…\" }",
            )
        } else {
            Ok(StoreSetting { address, from: StoreFrom::Written })
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
            let url = secret::variable(place, &text)?;
            Ok(StoreSetting { address: parsed(value, url.trim())?, from: StoreFrom::Variable(text) })
        }
        "file" => {
            let url = secret::secret_file(place, &text)?;
            let url = String::from_utf8(url).or_else(|_| wrong(place, "names a file that is no text"))?;
            Ok(StoreSetting { address: parsed(value, url.trim())?, from: StoreFrom::File(text) })
        }
        _ => wrong(value, "is a table; write { env = \"NAME\" } or { file = \"PATH\" }"),
    }
}

fn parsed(value: &Value<'_>, url: &str) -> Read<Address> {
    url.parse().or_else(|error| wrong(value, format!("is wrong: {error}")))
}
