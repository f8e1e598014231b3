//! The words of a file: what may be chosen, and where each name belongs.

use semel::{Lapse, OnOutage};
use semel_http::{Bare, OnServerError, Presence, Reach};

use super::overrides::Named;
use crate::proxy::{AccessLog, UpstreamVersion};

/// Words, and what they mean: read and written by the same table.
pub(super) type Words<T> = [(&'static str, T)];

pub(super) const PROFILE: &Words<Named> = &[("ietf", Named::Ietf), ("stripe", Named::Stripe)];
pub(super) const ACCESS_LOG: &Words<AccessLog> =
    &[("text", AccessLog::Text), ("json", AccessLog::Json), ("off", AccessLog::Off)];
pub(super) const UPSTREAM_VERSION: &Words<UpstreamVersion> =
    &[("1.1", UpstreamVersion::Http1), ("2", UpstreamVersion::Http2)];
pub(super) const BARE: &Words<Bare> = &[("taken", Bare::Taken), ("refused", Bare::Refused)];
pub(super) const PRESENCE: &Words<Presence> =
    &[("optional", Presence::Optional), ("required", Presence::Required)];
pub(super) const REACH: &Words<Reach> = &[("caller", Reach::Caller), ("route", Reach::Route)];
pub(super) const LAPSE: &Words<Lapse> = &[("rerun", Lapse::Rerun), ("hold", Lapse::Hold)];
pub(super) const ON_SERVER_ERROR: &Words<OnServerError> =
    &[("release", OnServerError::Release), ("store", OnServerError::Store), ("hold", OnServerError::Hold)];
pub(super) const ON_OUTAGE: &Words<OnOutage> = &[("closed", OnOutage::Closed), ("open", OnOutage::Open)];

/// The word for a meaning.
pub(super) fn word_for<T: PartialEq>(words: &Words<T>, meaning: &T) -> &'static str {
    words.iter().find(|(_, found)| found == meaning).map_or("", |(word, _)| word)
}

/// Names that stand at the top of a file. In TOML, what follows a `[table]` is in it: the mistake that is made most.
const ROOT: [&str; 15] = [
    "upstream",
    "upstream_version",
    "upstream_authorities",
    "listen",
    "trusted_proxies",
    "store",
    "admin",
    "admin_public",
    "tokens",
    "audit",
    "profile",
    "access_log",
    "scope_prefix",
    "problem_base",
    "route",
];
/// Tables of a proxy.
const TABLES: [&str; 9] =
    ["principal", "headers", "key", "statuses", "rules", "quotas", "tls", "bounds", "timeouts"];
/// Names that every route may have of its own.
const RULES: [&str; 14] = [
    "methods",
    "scope",
    "lease",
    "retention",
    "lapse",
    "attempts_max",
    "on_server_error",
    "statuses_not_kept",
    "request_bytes_max",
    "response_bytes_max",
    "headers_kept",
    "fields_left_out",
    "while_running",
    "on_outage",
];

/// Everything that a file may say to a proxy, at its top.
pub(super) fn of_a_proxy() -> impl Iterator<Item = &'static str> {
    ROOT.into_iter().chain(TABLES)
}

/// Where a name belongs that was written elsewhere.
pub(super) fn home(name: &str) -> Option<&'static str> {
    if ROOT.contains(&name) {
        return Some("at the top of the file, before the first [table]");
    }
    RULES.contains(&name).then_some("in [rules] or in a [[route]]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_meaning_has_a_word_of_its_own() {
        assert_eq!(word_for(ON_SERVER_ERROR, &OnServerError::Store), "store");
        assert_eq!(word_for(ACCESS_LOG, &AccessLog::Off), "off");
        assert_eq!(word_for(LAPSE, &Lapse::Hold), "hold");
    }

    #[test]
    fn a_name_in_the_wrong_table_is_told_where_it_belongs() {
        assert!(home("listen").is_some_and(|home| home.contains("top")));
        assert!(home("lease").is_some_and(|home| home.contains("[rules]")));
        assert_eq!(home("colour"), None);
    }
}
