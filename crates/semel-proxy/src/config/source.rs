//! What was written: a file's text, and what the command line said, which goes before it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use http::Uri;
use semel_config::{Errors, Source, value};
use semel_ops::access_log::AccessLog;
use semel_ops::store_setting::StoreOverrides;

use super::render;
use super::root::{self, Meaning};
use super::values::{self, PROFILE};
use crate::settings::ProxySettings;

/// What was written, in a file or on the command line.
#[derive(Clone, Debug)]
pub struct Config {
    source: Source,
    overrides: Overrides,
}

impl From<Source> for Config {
    fn from(source: Source) -> Self {
        Self { source, overrides: Overrides::default() }
    }
}

impl Config {
    /// No file: only what the command line says. The name of the command is for errors.
    pub fn none(command: &str) -> Self {
        Source::none(command).into()
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Errors> {
        Source::read(path).map(Self::from)
    }

    /// The text of a file, if it is TOML at all. The name is for errors.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        Source::parse(text, name).map(Self::from)
    }

    /// The same, with what the command line said.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Overrides) -> Self {
        self.overrides = overrides;
        self
    }

    /// What it all means, or everything that is wrong with it.
    pub fn settings(&self) -> Result<ProxySettings, Errors> {
        self.meaning().map(|meaning| meaning.settings)
    }

    /// What it all means, as a file that means the same. Secrets are not in it, only where they are.
    pub fn effective(&self) -> Result<String, Errors> {
        self.meaning().map(|meaning| render::written(&meaning))
    }

    fn meaning(&self) -> Result<Meaning, Errors> {
        self.source.judged(|root| root::meaning(root, &self.overrides))
    }
}

/// Says whether a file of tokens is fine.
pub type TokensCheck = fn(&Path) -> Result<(), Errors>;

/// What the command line says. Whatever is `None` is up to the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Where requests go.
    pub upstream: Option<Uri>,
    /// Where clients come.
    pub listen: Option<SocketAddr>,
    /// Where outcomes are kept.
    pub store: StoreOverrides,
    /// Where health, metrics and the dashboard are.
    pub admin: Option<Admin>,
    /// Consent to an admin listener that others than this machine can reach.
    pub admin_public: bool,
    /// The file with tokens of those who may look at the dashboard.
    pub tokens: Option<PathBuf>,
    /// What says whether such a file is fine; `None` if nothing reads it.
    pub tokens_check: Option<TokensCheck>,
    /// Where operators' actions are written down.
    pub audit: Option<PathBuf>,
    /// Which profile to begin with.
    pub profile: Option<Named>,
    /// What is written of each request.
    pub access_log: Option<AccessLog>,
}

impl Overrides {
    /// Reads the URL of an upstream as the file does.
    pub fn upstream(text: &str) -> Result<Uri, String> {
        values::upstream(text).map_err(|error| format!("this is {error}"))
    }
}

/// Where health and metrics are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admin {
    /// Nowhere.
    Off,
    /// On a listener of its own.
    At(SocketAddr),
}

impl FromStr for Admin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" { Ok(Self::Off) } else { value::address(text).map(Self::At) }
    }
}

/// A profile by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Named {
    /// The IETF draft, and what is sensible where it is silent.
    #[default]
    Ietf,
    /// What Stripe's clients know.
    Stripe,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = PROFILE.iter().find(|(word, _)| *word == text);
        found.map(|(_, named)| *named).ok_or_else(|| "there are ietf and stripe".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_listener_is_somewhere_or_off() {
        assert_eq!("off".parse(), Ok(Admin::Off));
        assert_eq!("127.0.0.1:1".parse(), Ok(Admin::At(([127, 0, 0, 1], 1).into())));
        assert!("no".parse::<Admin>().is_err());
    }

    #[test]
    fn a_profile_that_is_none_is_told_which_there_are() {
        assert_eq!("stripe".parse(), Ok(Named::Stripe));
        assert!("paypal".parse::<Named>().expect_err("is none").contains("ietf and stripe"));
    }
}
