//! `redis://…`, a fast store that many machines share.

use semel::{Error, ErrorKind, Result};

use super::opened::Opened;
use super::url::Url;

#[expect(clippy::unused_async, reason = "stores that are reached over a network are waited for")]
pub(super) async fn open(url: &Url) -> Result<Opened> {
    Err(Error::new(ErrorKind::Invalid, format!("this build has no store for {url}; use `file:FOLDER`")))
}
