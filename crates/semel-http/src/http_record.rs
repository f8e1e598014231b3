//! A record that the layer made, as people read it: its caller, and the response in its outcome.

use semel::record::Record;
use semel::{Claim, Result};

use crate::scratch::with_text;
use crate::stored_response::StoredResponse;

/// Stands between the caller and the process in the owner of a run.
const VIA: &str = " via ";
/// How many digits of a digest are shown: as many as of a record's id.
const DIGEST_DIGITS_SHOWN: usize = 8;
/// How many digits a digest has.
const DIGEST_DIGITS: usize = 64;

/// A record that the layer or the proxy made.
#[derive(Clone, Copy, Debug)]
pub struct HttpRecord<'a> {
    record: &'a Record,
}

impl<'a> HttpRecord<'a> {
    /// The record, if its key and its label are what the layer gives every key.
    pub fn of(record: &'a Record) -> Option<Self> {
        let is_target = |text: &str| {
            text.split_once(' ').is_some_and(|(method, target)| {
                !method.is_empty()
                    && method.bytes().all(|byte| byte.is_ascii_uppercase())
                    && (target.starts_with('/') || target == "*" || target.starts_with("digest:"))
            })
        };
        let operation = record.key.operation();
        let is_http = operation == "http" || is_target(operation);
        (is_http && record.label.as_deref().is_some_and(is_target)).then_some(Self { record })
    }

    /// The caller as a person knows it: the name that the run was claimed with, or else the caller's part of the key's scope,
    /// with digests shortened.
    pub fn caller(&self) -> &'a str {
        match self.record.state.grant().owner.rsplit_once(VIA) {
            Some((caller, _process)) => caller,
            None => self.record.key.scope().last().map_or("", shortened),
        }
    }

    /// The id of the request that made the record, if it had one: see [`request_id()`](crate::request_id()).
    pub fn first_request(&self) -> Option<&'a str> {
        self.record.first_event.as_deref()
    }

    /// What the record keeps of the first response; `None` before there is an outcome.
    pub fn response(&self) -> Option<Result<StoredResponse>> {
        self.record.outcome().map(StoredResponse::of)
    }
}

/// The claim with its owner: the caller as a person knows it, and the process that runs.
pub(crate) fn owned(claim: Claim, caller: &str, process: &str) -> Claim {
    with_text(format_args!("{}{VIA}{process}", shortened(caller)), |owner| claim.owner(owner))
}

/// A caller's part of a scope, with a digest at its end shortened: `auth:3f2a9c0d`.
fn shortened(part: &str) -> &str {
    let Some(at) = part.len().checked_sub(DIGEST_DIGITS).filter(|at| part.is_char_boundary(*at)) else {
        return part;
    };
    let (source, digest) = part.split_at(at);
    let is_digest = source.ends_with([':', '#']) && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shown = at.saturating_add(DIGEST_DIGITS_SHOWN);
    part.get(..shown).filter(|_| is_digest).unwrap_or(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h66_a_digest_is_shortened_and_a_name_is_not() {
        let digest = "3f2a9c0d".repeat(8);
        assert_eq!(shortened(&format!("auth:{digest}")), "auth:3f2a9c0d");
        assert_eq!(shortened(&format!("header:x-api-key:{digest}")), "header:x-api-key:3f2a9c0d");
        assert_eq!(shortened("jwt:alice"), "jwt:alice");
        assert_eq!(shortened(&digest), digest.as_str());
        assert_eq!(shortened(&"é".repeat(50)), "é".repeat(50));
    }
}
