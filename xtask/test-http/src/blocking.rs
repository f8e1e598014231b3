//! The client without a runtime: one connection at a time, kept open while the server keeps it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::answer::{Answer, Ending};
use crate::client;
use crate::request::Request;
use crate::token::Token;

/// Longer than any answer takes here: one may wait for a minute.
const PATIENCE: Duration = Duration::from_secs(90);

/// A caller of one server.
pub struct Client {
    address: SocketAddr,
    token: Option<Token>,
    open: Option<client::Client>,
    runtime: Runtime,
}

impl Client {
    /// A caller of the server at this address. Panics within a runtime.
    pub fn new(address: SocketAddr) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        Self { address, token: None, open: None, runtime }
    }

    /// Sends a token with every request that has none.
    #[must_use]
    pub fn with_token(self, token: &Token) -> Self {
        Self { token: Some(token.clone()), ..self }
    }

    /// Sends a request and reads its whole answer; of a stream of events, the head.
    pub fn ask(&mut self, request: &Request) -> Result<Answer> {
        let what = || format!("{} {}", request.method, request.target.chars().take(200).collect::<String>());
        let bytes = match &self.token {
            Some(token) if !request.has("authorization") => request.clone().by(token),
            _ => request.clone(),
        };
        let bytes = bytes.bytes_for(&self.address.to_string());
        let (address, kept) = (self.address, self.open.take());
        let (answer, client) = self.runtime.block_on(async {
            if let Some(mut kept) = kept {
                // The server may have closed it meanwhile, before it read a word of this.
                if let Ok(answer) = exchange(&mut kept, &bytes, &request.method).await {
                    return anyhow::Ok((answer, kept));
                }
            }
            let mut client = client::Client::try_connect(address).await.with_context(what)?;
            let answer = exchange(&mut client, &bytes, &request.method).await.with_context(what)?;
            Ok((answer, client))
        })?;
        self.open = (!answer.is_last()).then_some(client);
        Ok(answer)
    }

    /// Posts JSON to the API; anything but 200 is an error.
    pub fn call(&mut self, target: &str, body: &Value) -> Result<Value> {
        self.ask(&Request::post_json(target, body))?.ok_json().with_context(|| target.to_owned())
    }

    /// Reads JSON from the API; anything but 200 is an error.
    pub fn get(&mut self, target: &str) -> Result<Value> {
        self.ask(&Request::get(target))?.ok_json().with_context(|| target.to_owned())
    }
}

async fn exchange(client: &mut client::Client, bytes: &[u8], method: &str) -> Result<Answer> {
    // A server that refuses a body need not read it: the answer may be there all the same.
    let sent = timeout(PATIENCE, client.try_write(bytes)).await.context("nobody reads the request")?;
    let mut answer = timeout(PATIENCE, client.read(method)).await.context("no answer came")??;
    if sent.is_err() {
        answer.ending = Ending::Closed;
    }
    Ok(answer)
}
