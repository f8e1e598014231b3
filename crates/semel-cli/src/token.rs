//! `semel token`: a new token, and the digest that a server keeps of one.

use std::io::Read as _;

use anyhow::{Context, Result, bail};
use semel_server::access::{Role, TokenDigest, new_token};

use crate::terminal::out;

/// Longer than any token.
const TOKEN_BYTES_MAX: u64 = 4_096;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Token {
    New(NewToken),
    /// Of the token on standard input.
    Digest,
}

/// Whose token, and what it is good for.
#[derive(Debug)]
pub(crate) struct NewToken {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) scope: Vec<Box<str>>,
    pub(crate) asks_per_second: Option<u32>,
    pub(crate) asks_burst: Option<u32>,
}

pub(crate) fn run(plan: &Token) -> Result<()> {
    match plan {
        Token::New(new) => {
            let token = new_token();
            eprint!(
                "# Append this to the file that --tokens names; the token itself is printed once, and kept nowhere.\n{}",
                new.block(&token)
            );
            out::line(&token)
        }
        Token::Digest => out::line(&TokenDigest::of(&typed()?).to_string()),
    }
}

impl NewToken {
    fn block(&self, token: &str) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut lines = vec![
            String::new(),
            "[[token]]".to_owned(),
            format!("name = {}", quoted(&self.name)),
            format!("digest = \"{}\"", TokenDigest::of(token)),
            format!("role = \"{}\"", self.role.as_str()),
        ];
        if !self.scope.is_empty() {
            let parts: Vec<_> = self.scope.iter().map(|part| quoted(part)).collect();
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
            scope: vec!["acme".into(), "e\\u".into()],
            asks_per_second: Some(7),
            asks_burst: None,
        };
        let tokens = Tokens::parse(&new.block("semel_x"), "t.toml").expect("is fine");
        let caller = tokens.caller("semel_x").expect("is known");
        assert_eq!((caller.name(), caller.scope()), ("on \"call\"", &*new.scope));
        assert!(caller.may(Need::Act) && !caller.may(Need::Claim));
    }
}
