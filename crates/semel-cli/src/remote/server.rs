//! A running server, and what this caller may do there.

use std::path::Path;
use std::sync::Arc;

use semel::{Error, ErrorKind, Result};
use semel_ops::served_store::ServedStore;
use semel_ops::store_url::{Opened, ServerUrl};

use super::client::Client;
use super::store::{ServerOperated, ServerStore};
use super::token::Token;

/// A running server, and what this caller may do there.
pub(crate) struct Server {
    client: Arc<Client>,
    facts: ServedStore,
}

impl Server {
    /// Asks the server what it has. Nothing is sent to it before.
    pub(crate) async fn open(
        url: &ServerUrl,
        token: Option<Token>,
        ca_file: Option<&Path>,
    ) -> Result<(Opened, Self)> {
        let client = Arc::new(Client::new(url, token, ca_file)?);
        let facts: ServedStore = client.get("/v1/store").await?;
        let store = ServerStore::new(Arc::clone(&client));
        let operated = ServerOperated::new(Arc::clone(&client), facts.survives.clone());
        Ok((Opened::new(Arc::new(store), operated), Self { client, facts }))
    }

    /// Asks it.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Refuses what this caller's role is not enough for, before anything is asked or done.
    pub(crate) fn must_act(&self) -> Result<()> {
        if self.facts.may_act {
            return Ok(());
        }
        Err(self.too_little("release, resolve or move anything"))
    }

    /// Refuses to show what is blank in the records that this caller gets.
    pub(crate) fn must_show_content(&self) -> Result<()> {
        if self.shows_content() {
            return Ok(());
        }
        Err(self.too_little("see what is in an outcome"))
    }

    /// Whether records come whole.
    pub(crate) fn shows_content(&self) -> bool {
        self.facts.whole_records
    }

    fn too_little(&self, what: &str) -> Error {
        let ServedStore { caller, role, .. } = &self.facts;
        let message = format!(
            "the token \"{caller}\" has the role \"{role}\", which is not enough to {what}; use one with the role \"operate\""
        );
        Error::new(ErrorKind::Invalid, message)
    }
}
