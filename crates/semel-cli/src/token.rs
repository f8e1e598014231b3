//! `semel token`: a new token, and the digest that a server keeps of one.

use std::io::Read as _;

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use clap::builder::TypedValueParser;
use semel_ops::format::scope;
use semel_server::access::{Role, TokenDigest, new_token};

use crate::args::{Scope, refused, words};
use crate::terminal::out;

/// Longer than any token.
const TOKEN_BYTES_MAX: u64 = 4_096;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token: it is printed once, and what the server's file needs goes to standard error
    #[command(after_help = "Examples:\n  \
        semel token new --name billing --role work --scope acme/billing 2>> tokens.toml\n  \
        semel token new --name on-call --role operate 2>> tokens.toml\n\n\
        Roles: work claims keys and settles what it claimed; read sees records and counts, never what is in an outcome;\n\
        operate sees everything, and may release and resolve. None may leave its scope.")]
    New(NewToken),
    /// Print the digest of the token on standard input
    #[command(after_help = "Examples:\n  \
        printf %s \"$TOKEN\" | semel token digest")]
    Digest,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NewToken {
    /// Whose it is: for the audit log, and for whoever takes it out of the file one day
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What it is for
    #[arg(long, value_name = "ROLE", value_parser = role())]
    role: Role,
    /// The scope that it cannot leave: `acme/billing`; everywhere unless said
    #[arg(long, value_name = "PATH", value_parser = scope::parse)]
    scope: Option<Scope>,
    /// How many asks a second it is good for, at each server; any number unless said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    asks_per_second: Option<u32>,
    /// How many asks at once, after a pause; as many as come in a second unless said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "asks_per_second")]
    asks_burst: Option<u32>,
}

fn role() -> impl TypedValueParser<Value = Role> {
    words([
        ("work", "Claim keys, and settle what was claimed", Role::Work),
        ("read", "See records and counts", Role::Read),
        ("operate", "See everything, release and resolve", Role::Operate),
    ])
}

impl TokenCommand {
    pub(crate) fn run(self) -> Result<()> {
        match self {
            Self::New(new) => new.run(),
            Self::Digest => out::line(&TokenDigest::of(&typed()?).to_string()),
        }
    }
}

impl NewToken {
    fn run(self) -> Result<()> {
        if self.name.trim().is_empty() || self.name.chars().any(char::is_control) {
            return Err(refused("--name is empty; say whose token it is: --name billing-worker").into());
        }
        let token = new_token();
        eprint!(
            "# Append this to the file that --tokens names; the token itself is printed once, and kept nowhere.\n{}",
            self.block(&token)
        );
        out::line(&token)
    }

    fn block(&self, token: &str) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut lines = vec![
            String::new(),
            "[[token]]".to_owned(),
            format!("name = {}", quoted(self.name.trim())),
            format!("digest = \"{}\"", TokenDigest::of(token)),
            format!("role = \"{}\"", self.role.as_str()),
        ];
        if let Some(scope) = self.scope.as_deref().filter(|scope| !scope.is_empty()) {
            let parts: Vec<_> = scope.iter().map(|part| quoted(part)).collect();
            lines.push(format!("scope = [{}]", parts.join(", ")));
        }
        let asks = [("asks_per_second", self.asks_per_second), ("asks_burst", self.asks_burst)];
        lines.extend(asks.into_iter().filter_map(|(name, asks)| Some(format!("{name} = {}", asks?))));
        lines.join("\n") + "\n"
    }
}

/// The token on standard input: arguments of a process can be seen by others.
fn typed() -> Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .take(TOKEN_BYTES_MAX)
        .read_to_string(&mut text)
        .context("standard input cannot be read")?;
    let token = text.trim();
    if token.is_empty() {
        bail!("there is no token on standard input: `printf %s \"$TOKEN\" | semel token digest`");
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use semel_server::access::{Need, Tokens};

    use super::*;

    #[test]
    fn what_is_printed_for_the_file_is_read_back_as_it_was_meant() {
        let new = NewToken {
            name: "on \"call\"".to_owned(),
            role: Role::Operate,
            scope: Some(vec!["acme".into(), "e\\u".into()]),
            asks_per_second: Some(7),
            asks_burst: None,
        };
        let tokens = Tokens::parse(&new.block("semel_x"), "t.toml").expect("is fine");
        let caller = tokens.caller("semel_x").expect("is known");
        assert_eq!((caller.name(), Some(caller.scope())), ("on \"call\"", new.scope.as_deref()));
        assert!(caller.may(Need::Act) && !caller.may(Need::Claim));
    }
}
