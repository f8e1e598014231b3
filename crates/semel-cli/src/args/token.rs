//! `semel token`.

use clap::{Subcommand, ValueEnum};
use semel_server::access::Role;

use super::Command;
use super::refused::{Meaning, refused};
use super::scope::{Scope, scope};
use crate::token::{NewToken, Token};

#[derive(Debug, Subcommand)]
pub(super) enum TypedToken {
    /// Make a token: it is printed once, and what the server's file needs goes to standard error
    #[command(after_help = "Examples:\n  \
        semel token new --name billing --role work --scope acme/billing 2>> tokens.toml\n  \
        semel token new --name on-call --role operate 2>> tokens.toml\n\n\
        Roles: work claims keys and settles what it claimed; read sees records and counts, never what is in an outcome;\n\
        operate sees everything, and may release and resolve. None may leave its scope.")]
    New(TypedNew),
    /// Print the digest of the token on standard input
    #[command(after_help = "Examples:\n  \
        printf %s \"$TOKEN\" | semel token digest")]
    Digest,
}

#[derive(Debug, clap::Args)]
pub(super) struct TypedNew {
    /// Whose it is: for the audit log, and for whoever takes it out of the file one day
    #[arg(long, value_name = "NAME")]
    name: String,
    /// What it is for
    #[arg(long, value_name = "ROLE", value_enum)]
    role: TypedRole,
    /// The scope that it cannot leave: `acme/billing`; everywhere unless said
    #[arg(long, value_name = "PATH", value_parser = scope)]
    scope: Option<Scope>,
    /// How many asks a second it is good for, at each server; any number unless said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    asks_per_second: Option<u32>,
    /// How many asks at once, after a pause; as many as come in a second unless said
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "asks_per_second")]
    asks_burst: Option<u32>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TypedRole {
    /// Claim keys, and settle what was claimed
    Work,
    /// See records and counts
    Read,
    /// See everything, release and resolve
    Operate,
}

impl TypedToken {
    pub(super) fn meaning(self) -> Meaning<Command> {
        Ok(Command::Token(match self {
            Self::New(new) => Token::New(new.meaning()?),
            Self::Digest => Token::Digest,
        }))
    }
}

impl TypedNew {
    fn meaning(self) -> Meaning<NewToken> {
        let role = match self.role {
            TypedRole::Work => Role::Work,
            TypedRole::Read => Role::Read,
            TypedRole::Operate => Role::Operate,
        };
        if self.name.trim().is_empty() || self.name.chars().any(char::is_control) {
            return Err(refused("--name is empty; say whose token it is: --name billing-worker"));
        }
        Ok(NewToken {
            name: self.name.trim().to_owned(),
            role,
            scope: self.scope.unwrap_or_default().0,
            asks_per_second: self.asks_per_second,
            asks_burst: self.asks_burst,
        })
    }
}
