//! stub
use crate::profile::{KeyForm, Names};
use http::HeaderMap;
pub(crate) fn key_of(h: &HeaderMap, n: &Names, _: KeyForm) -> Result<Option<String>, String> {
    Ok(h.get(&n.key).map(|v| v.to_str().unwrap_or("").to_owned()))
}
