//! One connection at a time, kept open while the server keeps it.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::answer::Answer;
use super::ask::Ask;
use super::token::Token;

/// Longer than any answer takes here: one may wait for a minute.
const PATIENCE: Duration = Duration::from_secs(90);

/// Whoever asks a server.
pub struct Client {
    address: SocketAddr,
    token: Option<Token>,
    open: Option<BufReader<TcpStream>>,
}

impl Client {
    /// Of the server at this address.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, token: None, open: None }
    }

    /// Who sends a token with every request that has none.
    #[must_use]
    pub fn with_token(self, token: &Token) -> Self {
        Self { token: Some(token.clone()), ..self }
    }

    /// Asks, and reads the whole answer.
    pub fn ask(&mut self, ask: &Ask) -> Result<Answer> {
        let what = || format!("{} {}", ask.method, ask.target.chars().take(200).collect::<String>());
        if let Some(open) = self.open.take() {
            // The server may have closed it meanwhile, before it read a word of this.
            if let Ok(answer) = self.ask_over(open, ask) {
                return Ok(answer);
            }
        }
        let stream = TcpStream::connect(self.address).with_context(what)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        self.ask_over(BufReader::new(stream), ask).with_context(what)
    }

    fn ask_over(&mut self, mut open: BufReader<TcpStream>, ask: &Ask) -> Result<Answer> {
        let has_own = ask.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let bytes = match &self.token {
            Some(token) if !has_own => ask.clone().by(token).bytes(&self.address.to_string()),
            _ => ask.bytes(&self.address.to_string()),
        };
        // A server that refuses a body need not read it: the answer may be there all the same.
        let sent = open.get_mut().write_all(&bytes);
        let answer = Answer::read(&mut open, &ask.method)?;
        if sent.is_ok() && !answer.is_last() {
            self.open = Some(open);
        }
        Ok(answer)
    }

    /// Posts JSON to the API; anything but 200 is an error.
    pub fn call(&mut self, target: &str, body: &Value) -> Result<Value> {
        self.ask(&Ask::post(target, body))?.fine().with_context(|| target.to_owned())
    }

    /// Reads JSON from the API; anything but 200 is an error.
    pub fn look(&mut self, target: &str) -> Result<Value> {
        self.ask(&Ask::get(target))?.fine().with_context(|| target.to_owned())
    }
}
