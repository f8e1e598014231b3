//! The words of a file: what may be chosen.

use semel::{Lapse, OnOutage};
use semel_config::value::Words;
use semel_http::{Bare, OnServerError, Presence, Reach};

use super::overrides::Named;
use crate::settings::{AccessLog, UpstreamVersion};

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

#[cfg(test)]
mod tests {
    use semel_config::value::word_for;

    use super::*;

    #[test]
    fn every_meaning_has_a_word_of_its_own() {
        assert_eq!(word_for(ON_SERVER_ERROR, &OnServerError::Store), "store");
        assert_eq!(word_for(ACCESS_LOG, &AccessLog::Off), "off");
        assert_eq!(word_for(LAPSE, &Lapse::Hold), "hold");
    }
}
