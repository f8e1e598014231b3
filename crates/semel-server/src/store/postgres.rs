//! `postgres://…`, a store that many machines share.

use semel::{Error, ErrorKind, Result};

use super::opened::{Migrated, Opened};
use super::url::Url;

#[expect(clippy::unused_async, reason = "stores that are reached over a network are waited for")]
pub(super) async fn open(url: &Url) -> Result<Opened> {
    Err(not_here(url))
}

#[expect(clippy::unused_async, reason = "stores that are reached over a network are waited for")]
pub(super) async fn migrate(url: &Url) -> Result<Migrated> {
    Err(not_here(url))
}

fn not_here(url: &Url) -> Error {
    Error::new(ErrorKind::Invalid, format!("this build has no store for {url}; use `file:FOLDER`"))
}
